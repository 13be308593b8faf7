"""The JSON records that travel between the services, and their parts. Everything is UTF-8 JSON by orjson.

A record of a stream topic is a tuple, a progress record or a final record. A tuple's value is the projected
columns (the time column in microseconds) and an envelope under `_`; progress and final records are an
envelope alone:

    {"station": "k1", "ts": 1700000000000000, "temp": 21.5, "_": {"shard": "edge-a/air", "plan": 3,
    "activation": 1690000000000000}} {"_": {"kind": "progress", "shard": "edge-a/air", "plan": 3,
    "activation": 1690000000000000, "event_time": 1700000000000000}} {"_": {"kind": "final", "shard":
    "edge-a/air", "plan": 4}}

A late tuple's envelope also has `"late": true`. `activation` and `event_time` are microseconds. A tuple
without envelope is foreign and is refused as a dead letter. Progress "event_time" is the least event time
that the shard can still publish to that partition. A progress record with `"shed": [first, last]` says that
of this span of event time retained tuples were dropped under overload; where nothing is known yet it comes
without "event_time".

Where a standing query reads a topic, a tuple's envelope says at which `"place"` of its shard's source it
stood: of one shard places rise in each partition, but for tuples that come again after a restart. Progress
then has a `"place"` too: all before it are there. Of a stream without time progress has no "event_time", and
`activation` is a place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

ENVELOPE = "_"

# Event times of what has no end: a finished source's progress. Within 2^53, so that every JSON reader keeps
# it exactly.
END_OF_TIME = 2**53 - 1

# Below every event time: no shard that sent a tuple has left.
NOTHING_LEFT = -(2**62)

ShardState = Literal["waiting", "active", "final"]


def canonical_value(value: Any) -> Any:
    """A number that is an integer as an integer (also -0.0), anything else as it is.

    >>> canonical_value(1.0), canonical_value(1.5), canonical_value(True), canonical_value(1e300)
    (1, 1.5, True, 1e+300)
    """
    # Beyond 64 bits there is no integer that it could be equal to, and orjson writes none.
    if isinstance(value, float) and value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return int(value)
    return value


def canonical_key(values: tuple[Any, ...]) -> bytes:
    """The message key: a JSON array of the key's values, equal for values that SQL holds equal.

    >>> canonical_key((1.0, "a")), canonical_key((1, "a"))
    (b'[1,"a"]', b'[1,"a"]')
    """
    return orjson.dumps([canonical_value(value) for value in values])


def progress_record(
    shard: str,
    plan: int,
    activation: int,
    event_time: int | None,
    shed: tuple[int, int] | None = None,
    *,
    place: int | None = None,
) -> bytes:
    """A progress record's value. `shed`: the first and the last event time of a span of which retained tuples
    were dropped; with it, `event_time` may be None where nothing is known yet. `place`: all tuples of the
    shard before it were published before this record.
    """
    envelope = {"kind": "progress", "shard": shard, "plan": plan, "activation": activation}
    if event_time is not None:
        envelope["event_time"] = event_time
    if place is not None:
        envelope["place"] = place
    return orjson.dumps({ENVELOPE: envelope if shed is None else envelope | {"shed": shed}})


def final_record(shard: str, plan: int) -> bytes:
    """A final record's value: nothing of this shard comes after it until a plan lists it anew."""
    return orjson.dumps({ENVELOPE: {"kind": "final", "shard": shard, "plan": plan}})


@dataclass(frozen=True)
class Ack:
    """What a shard says of itself on `tamis.acks` (key: the shard), at every change and at least every
    heartbeat.

    `plan` 0 announces a shard that obeys no plan yet. `state`: waiting (not listed yet), active, or final
    (its source has ended, or the edge leaves on purpose; sent after its final records are safe).
    """

    shard: str
    stream: str
    edge: str
    plan: int
    activation: int
    state: ShardState
    time: int  # wall clock of the edge, microseconds
    quiet: int = 0  # microseconds for which its source has had nothing new and its watermark hasn't moved

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(self.__dict__)

    @staticmethod
    def from_bytes(value: bytes) -> Ack:
        """The record of a value written by `to_bytes`."""
        return Ack(**orjson.loads(value))


@dataclass(frozen=True)
class Observation:
    """What a shard says of its readings on `tamis.sketches` (key: the shard). `sketch`: bytes of
    `tamis.predicates.selectivity.Sketch`.
    """

    shard: str
    stream: str
    sketch: bytes

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(
            {"shard": self.shard, "stream": self.stream, "sketch": orjson.Fragment(self.sketch)}
        )

    @staticmethod
    def from_bytes(value: bytes) -> Observation:
        """The record of a value written by `to_bytes`."""
        raw = orjson.loads(value)
        return Observation(raw["shard"], raw["stream"], orjson.dumps(raw["sketch"]))


@dataclass(frozen=True)
class StreamState:
    """Live state of one topic in one output partition of the joiner."""

    frontier: int | None  # microseconds; None: not every listed shard has reported yet
    tuples: int
    bytes: int
    void: bool  # no shard is listed for its stream
    shards: tuple[str, ...] = ()  # those that are listed: their final records have not been taken
    left: int = NOTHING_LEFT  # no tuple of a shard that has left is later than this event time
    # All tuples that the listed shards sent under older plans than this are there; None without shards.
    obeyed: int | None = None


@dataclass(frozen=True)
class Frontier:
    """What the joiner says of one output partition on `tamis.frontiers` (key: the partition as decimal
    digits).

    Written a batch behind: every alarm from below these frontiers was in Kafka before this record was.
    `topics` is by topic name; `definitions` is live tuples, or entries of synopses, by "alert@version"
    over the partition; the counters only grow.
    """

    partition: int
    plan: int
    topics: dict[str, StreamState]
    definitions: dict[str, int]
    alarms: dict[str, int]  # by alert, since the state's beginning
    late: int
    parked: int
    time: int  # wall clock, microseconds
    dead: dict[str, int] = field(default_factory=dict)  # records set aside as dead letters, by reason
    unable: dict[str, str] = field(default_factory=dict)  # why an alert isn't evaluated, by alert
    # The most entries that a standing query may have, over all partitions, by "alert@version".
    bounds: dict[str, int] = field(default_factory=dict)
    # Tuples that came too late to count for a standing query, by alert, since the state's beginning.
    missed: dict[str, int] = field(default_factory=dict)
    # Bytes of state that are for a definition, by "alert@version": its synopses, or its part of its topics'.
    sizes: dict[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(self)

    @staticmethod
    def from_bytes(value: bytes) -> Frontier:
        """The record of a value written by `to_bytes`."""
        raw = orjson.loads(value)
        raw["topics"] = {
            name: StreamState(**{**state, "shards": tuple(state.get("shards", ()))})
            for name, state in raw["topics"].items()
        }
        return Frontier(**raw)
