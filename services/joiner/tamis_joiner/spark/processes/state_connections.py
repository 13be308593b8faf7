"""Connections of Python workers to the state, kept open until Spark has closed its end.

Spark 4.2.0 never closes its end of the connection over which a task reads the state, if the task says that
it is done with the state or closes its own end: each task of each batch would leave a socket and a port of
the JVM behind (SPARK-58932, mended in 4.2.1). But at the end of a task Spark interrupts the thread that
serves the connection. If that thread still waits for a request, Java closes the socket.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

# A worker may begin its next tasks while Spark still commits the state of the last one.
KEPT = 4


class StateConnections:
    """The last connections of this process."""

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
