"""Spark's stateful processor: offsets of a batch in, records for Kafka out, state in one map."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tamis.declarations.file_access import FileAccess
from tamis_joiner.reading.offsets import decode
from tamis_joiner.spark.processes.connection_exchange import EXCHANGE

# Connections. A worker may begin its next tasks while Spark still commits the state of the last one.
KEPT = 4

# These must never change: Spark refuses new fields, and empties renamed variables without a warning.
STATE = "state"
# As objects: Spark would ask the JVM four times in each task to parse them as text.
STATE_KEY = StructType([StructField("name", StringType())])
STATE_VALUE = StructType([StructField("blob", BinaryType())])

OUTPUT = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"


class StateConnections:
    """Connections of this Python worker to the state, kept open until Spark has closed its end.

    Spark 4.2.0 never closes its end of the connection over which a task reads the state, if the task says
    that it is done with the state or closes its own end: each task of each batch would leave a socket and a
    port of the JVM behind (SPARK-58932, mended in 4.2.1). But at the end of a task Spark interrupts the
    thread that serves the connection. If that thread still waits for a request, Java closes the socket.
    """

    def __init__(self) -> None:
        self._kept: deque[Any] = deque()

    def keep(self, handle: StatefulProcessorHandle) -> None:
        """Keep the connection open after its task has ended, and don't tell Spark that the task needs its
        state no more.
        """
        client: Any = handle._statefulProcessorApiClient
        if client.handle_state == StatefulProcessorHandleState.PRE_INIT:
            return  # of the driver, which asks for the names of the state once for each query
        tell = client.set_handle_state

        def set_handle_state(state: StatefulProcessorHandleState) -> None:
            if state == StatefulProcessorHandleState.CLOSED:
                client.handle_state = state
            else:
                tell(state)

        client.set_handle_state = set_handle_state
        self._kept.append(client)
        if len(self._kept) > KEPT:
            ended = self._kept.popleft()
            ended.sockfile.close()
            ended._client_socket.close()


STATE_CONNECTIONS = StateConnections()
"""Those of this process."""


class FrozenObjects:
    """The objects of this process that the garbage collector doesn't scan.

    Spark makes a worker collect garbage after each task. To scan the objects of the libraries would take as
    long as a small batch itself, and they never become garbage.
    """

    def __init__(self) -> None:
        self._modules = 0  # how many were imported when objects were frozen last

    def add_imported(self) -> None:
        """Freeze all objects if modules were imported since the last call. Libraries import some of their
        modules only when they are used first.

        Other objects are frozen together with those of the modules. They are deleted as before, unless they
        are part of a reference cycle. Such cycles are few, because few calls freeze anything.
        """
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            gc.collect()
            gc.freeze()


FROZEN = FrozenObjects()
"""Those of this process. A worker has it from the daemon that it is forked from."""


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
