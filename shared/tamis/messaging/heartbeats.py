"""Records of `tamis.heartbeats`: signs of life of the joiner and of the workers of the alerts service.

The joiner writes frontiers only with batches, and it has none in a quiet fleet. So it also sends heartbeats.
Those of a worker of the alerts service say what waits for its sinks.
"""

from __future__ import annotations

import os
import socket
import time

import msgspec
from msgspec import Struct

from tamis.messaging.records import Count, Integer, Text, decoded

# The key of the joiner's record. A worker of the alerts service has a key of its own.
JOINER = "joiner"
ALERTS = "alerts/"

# A sink whose notifications wait for longer is behind, for readiness and for the registry.
LATE_SECONDS = 15


class SinkState(Struct, frozen=True, kw_only=True):
    """Notifications that wait for one sink, in the partitions of one worker.

    `waiting` counts those that will be sent. `unread`: events in Kafka that the sink's queue has not read
    yet, of which some may be no notification for the sink. `oldest`: when the oldest of those that wait was
    written, in microseconds since 1970. `error`: the reason why the sink took none at the last attempt; it
    never has an address or a secret of the sink.
    """

    waiting: Count = 0
    unread: Count = 0
    oldest: Integer | None = None
    error: str | None = None


class Heartbeat(Struct, frozen=True, kw_only=True):
    """A sign of life. `time` is the wall clock in microseconds. `host` and `pid` name the process, for
    those who have to end it when it hangs. `sinks` has the sinks of a worker by name. `nodes`: always
    true of a joiner, for a registry of the release before, which writes SQL for joiners older than itself.
    `partials`: true of a joiner that takes partial aggregates. `lost`: when it last noticed that records of
    stream topics were deleted before it read them, 0 if never since it started.
    """

    time: Integer
    host: Text = ""
    pid: Count = 0
    sinks: dict[str, SinkState] = {}
    nodes: bool = False
    partials: bool = False
    lost: Integer = 0

    @staticmethod
    def of_this_process(
        sinks: dict[str, SinkState] | None = None, *, joiner: bool = False, lost: int = 0
    ) -> Heartbeat:
        """A sign of life of the process that calls it, now."""
        return Heartbeat(
            time=time.time_ns() // 1000,
            host=socket.gethostname(),
            pid=os.getpid(),
            sinks=sinks or {},
            nodes=joiner,
            partials=joiner,
            lost=lost,
        )

    def to_bytes(self) -> bytes:
        """The record's value."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_bytes(value: bytes) -> Heartbeat:
        """The record of a value; members that this version doesn't know are ignored. Raises ValueError."""
        return decoded(_decoder, value)


def read_heartbeat(key: bytes | None, value: bytes) -> tuple[str, Heartbeat]:
    """The key and the heartbeat of a record. Raises ValueError, also for a key that no service has."""
    name = (key or b"").decode(errors="replace")
    if name != JOINER and not name.startswith(ALERTS):
        raise ValueError("no service has this key")
    return name, Heartbeat.from_bytes(value)


_decoder = msgspec.json.Decoder(Heartbeat)
