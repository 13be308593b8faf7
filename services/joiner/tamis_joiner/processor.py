"""Spark's side of a group: rows of a batch in, records for Kafka out, state in one map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tamis.query.reach import Reach

# Spark refuses new fields and silently empties renamed variables: neither may ever change.
STATE = "state"
STATE_KEY = "name string"
STATE_VALUE = "blob binary"

OUTPUT = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"


class SparkState:
    """Spark's map state as a `StateMap`."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        """As `StateMap.get`."""
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, value: bytes) -> None:
        """As `StateMap.put`."""
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        """As `StateMap.remove`."""
        self._state.removeKey((name,))


class GroupProcessor(StatefulProcessor):
    """One call of `handleInputRows` is one batch of one output partition."""

    def __init__(self, groups: list[int], reach: Reach) -> None:
        self._reach = reach
        self._partition_of = {number: partition for partition, number in enumerate(groups)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once a task."""
        self._state = SparkState(handle.getMapState(STATE, STATE_KEY, STATE_VALUE))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        """Process the batch and yield the records to publish; rows are as `pack` makes them."""
        # Here, not above: neither the service nor the process in which Spark asks for the state's names, at
        # the query's start, should spend a second on compiled libraries. The workers have it imported.
        from tamis_joiner.batch import process

        partition = self._partition_of[int(key[0])]
        packed = (row.packed for row in rows)
        yield from process(partition, len(self._partition_of), packed, self._state, self._reach)

    def close(self) -> None:
        """Nothing to let go of."""
