"""Spark's stateful processor: rows of a batch in, records for Kafka out, state in one map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tamis.query.file_access import FileAccess

# These must never change: Spark refuses new fields, and empties renamed variables without a warning.
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

    def __init__(self, groups: list[int], file_access: FileAccess) -> None:
        self._file_access = file_access
        self._partition_of = {number: partition for partition, number in enumerate(groups)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this once for each task."""
        self._state = SparkState(handle.getMapState(STATE, STATE_KEY, STATE_VALUE))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        """Process the batch and yield the records to publish; rows are as `pack` makes them."""
        # Imported here: it takes a second, which the service and the process that tells Spark the names of
        # the state don't need. The workers have it imported already.
        from tamis_joiner.spark.batch import process

        partition = self._partition_of[int(key[0])]
        packed = (row.packed for row in rows)
        yield from process(partition, len(self._partition_of), packed, self._state, self._file_access)

    def close(self) -> None:
        """Nothing has to be closed."""
