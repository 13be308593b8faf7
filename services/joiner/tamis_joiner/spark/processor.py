"""Spark's stateful processor: offsets of a batch in, records for Kafka out, state in one map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tamis.query.file_access import FileAccess
from tamis_joiner.reading.offsets import decode
from tamis_joiner.spark.processes.connection_exchange import EXCHANGE
from tamis_joiner.spark.processes.frozen_objects import FROZEN
from tamis_joiner.spark.processes.state_connections import STATE_CONNECTIONS

# These must never change: Spark refuses new fields, and empties renamed variables without a warning.
STATE = "state"
# As objects: Spark would ask the JVM four times in each task to parse them as text.
STATE_KEY = StructType([StructField("name", StringType())])
STATE_VALUE = StructType([StructField("blob", BinaryType())])

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
    """One call of `handleInputRows` is one batch of one output partition. `kafka` is the configuration of the
    client that reads the records.
    """

    def __init__(self, groups: list[int], kafka: Mapping[str, str], file_access: FileAccess) -> None:
        self._kafka, self._file_access = kafka, file_access
        self._partition_of = {number: partition for partition, number in enumerate(groups)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this once for each task."""
        STATE_CONNECTIONS.keep(handle)
        self._state = SparkState(handle.getMapState(STATE, STATE_KEY, STATE_VALUE))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        """Process the batch and yield the records to publish; rows are those of `source`."""
        # Imported here: it takes a second, which the service and the process that tells Spark the names of
        # the state don't need. The workers have it imported already.
        from tamis_joiner.spark.batch import process, read

        partition = self._partition_of[int(key[0])]
        EXCHANGE.note(partition)
        ranges = [one for row in rows for one in decode(row.ranges)]
        records = read(self._kafka, ranges)
        yield from process(partition, len(self._partition_of), records, self._state, self._file_access)

    def close(self) -> None:
        """End the task; nothing has to be closed."""
        FROZEN.add_imported()
