"""JSON records that the services exchange over Kafka, and their parts.

A record of a stream topic is a tuple, a progress record or a final record. A tuple's value is the projected
columns (the time column in microseconds) and an envelope under `_`; progress and final records are an
envelope alone:

    {"station": "k1", "ts": 1700000000000000, "temp": 21.5,
     "_": {"shard": "edge-a/air", "plan": 3, "activation": 1690000000000000}}
    {"_": {"kind": "progress", "shard": "edge-a/air", "plan": 3,
           "activation": 1690000000000000, "event_time": 1700000000000000}}
    {"_": {"kind": "final", "shard": "edge-a/air", "plan": 4}}

`activation` and `event_time` are in microseconds. The envelope of a late tuple also has `"late": true`. A
tuple without an envelope was not written by an edge and becomes a dead letter. "event_time" of a progress
record is the least event time that the shard can still publish to that partition. `"shed": [first, last]`
in a progress record says that the edge dropped retained tuples of this span of event time under overload;
such a record has no "event_time" if none is known yet.

If a standing query reads the topic, the envelope of a tuple has its `"place"`: its position in the shard's
source. The places of a shard increase in each partition, except that tuples are repeated after a restart. The
"place" of a progress record says that all tuples before it have been published. Progress of a stream without
time has no "event_time", and its `activation` is a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal

import orjson

from tamis.messaging.json_bytes import json_bytes

ENVELOPE = "_"

# The event time in the progress of a source that has ended. At most 2^53, so that every JSON reader keeps it
# exactly.
END_OF_TIME = 2**53 - 1

# Below every event time: no shard has left that sent a tuple.
NOTHING_LEFT = -(2**62)

ShardState = Literal["waiting", "active", "final"]

# Types whose values `canonical_value` never changes.
_UNCHANGED = frozenset({str, int, bool, type(None)})


def canonical_value(value: Any) -> Any:
    """A number with an integer value as an integer (also -0.0), any other value unchanged.

    >>> canonical_value(1.0), canonical_value(1.5), canonical_value(True), canonical_value(1e300)
    (1, 1.5, True, 1e+300)
    """
    # SQL has no integers beyond 64 bits, and orjson doesn't write them.
    if isinstance(value, float) and value.is_integer() and -(2.0**63) <= value < 2.0**63:
        return int(value)
    return value


def canonical_key(values: tuple[Any, ...]) -> bytes:
    """The message key: a JSON array of the key's values; values that are equal in SQL give equal keys.

    >>> canonical_key((1.0, "a")), canonical_key((1, "a"))
    (b'[1,"a"]', b'[1,"a"]')
    """
    if not _UNCHANGED.issuperset(map(type, values)):
        values = tuple(canonical_value(value) for value in values)
    return json_bytes(values)  # an edge keeps those of all its keys


def progress_record(
    shard: str,
    plan: int,
    activation: int,
    event_time: int | None,
    shed: tuple[int, int] | None = None,
    *,
    place: int | None = None,
) -> bytes:
    """The value of a progress record in JSON; see `progress_envelope`."""
    envelope = progress_envelope(shard, plan, activation, event_time, shed, place=place)
    return orjson.dumps({ENVELOPE: envelope})


def final_record(shard: str, plan: int) -> bytes:
    """The value of a final record in JSON; see `final_envelope`."""
    return orjson.dumps({ENVELOPE: final_envelope(shard, plan)})


def progress_envelope(
    shard: str,
    plan: int,
    activation: int,
    event_time: int | None,
    shed: tuple[int, int] | None = None,
    *,
    place: int | None = None,
) -> dict[str, Any]:
    """The envelope of a progress record. `shed`: the first and the last event time of a span in which
    retained tuples were dropped; then `event_time` may be None, if none is known yet. `place`: all tuples of
    the shard before this place were published before the record.
    """
    envelope = {"kind": "progress", "shard": shard, "plan": plan, "activation": activation}
    if event_time is not None:
        envelope["event_time"] = event_time
    if place is not None:
        envelope["place"] = place
    return envelope if shed is None else envelope | {"shed": shed}


def final_envelope(shard: str, plan: int) -> dict[str, Any]:
    """The envelope of a final record: the shard publishes nothing more until a plan lists it again."""
    return {"kind": "final", "shard": shard, "plan": plan}


def _known(kind: type[Ack | Frontier | StreamState], raw: Any) -> dict[str, Any]:
    """The fields of a record that this release knows. A newer release may write more."""
    if not isinstance(raw, dict):
        raise TypeError(f"a JSON object is expected, not {type(raw).__name__}")
    return {one.name: raw[one.name] for one in fields(kind) if one.name in raw}


@dataclass(frozen=True)
class Ack:
    """State of a shard on `tamis.acks` (key: the shard), sent at every change and at every heartbeat. An edge
    without shards sends a record of its own (`of_edge`).

    A shard that obeys no plan yet has `plan` 0. `state` is waiting (not listed yet), active, or final (its
    source has ended, or its edge leaves on purpose; sent after the final records are safe).
    """

    shard: str
    stream: str
    edge: str
    plan: int
    activation: int
    state: ShardState
    time: int  # wall clock of the edge, microseconds
    quiet: int = 0  # microseconds without new readings and without a move of the watermark
    # The greatest event time of a shard whose readings follow the clock.
    reached: int | None = None
    # False if the source can't be read again from its beginning: it has no history for a backfill stream.
    rereadable: bool | None = None
    # Of a shard of a backfill stream: the first offset that was read, and the least event time of all
    # readings so far; None without event time, or before the first reading.
    first_offset: int | None = None
    earliest: int | None = None
    # The failing sources of the edge, each with the reason; None if none fails.
    failing: dict[str, str] | None = None
    # Tuples by the edge's decision (published, omitted, filtered, late, dead) since it began to serve the
    # shard. They begin again at 0 when the edge restarts or the shard moves. Of a shard that isn't listed:
    # empty if it never had a reading.
    tuples: dict[str, int] | None = None
    # Event time before which the shard's readings are late, in microseconds; None without event time.
    watermark: int | None = None
    # What is doubtful about the shard's newest readings, for people; None if nothing is.
    doubts: list[str] | None = None
    # Of a shard that isn't listed: true if its edge has a reading of it that waits; None from an earlier
    # release.
    unread: bool | None = None
    # True of a shard that never had a reading, and whose stream the configuration of the edge doesn't name:
    # nobody knows if readings will come this way. None from an earlier release.
    unused: bool | None = None

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps({name: value for name, value in self.__dict__.items() if value is not None})

    @staticmethod
    def from_bytes(value: bytes) -> Ack:
        """The record of a value written by `to_bytes`, of this release or a newer one."""
        return Ack(**_known(Ack, orjson.loads(value)))

    @staticmethod
    def of_edge(edge: str, time: int, failing: dict[str, str] | None) -> Ack:
        """The sign of life of an edge that has no shards, with its failing sources. `stream` is empty, and
        `shard` is the name of the edge: names of shards have a colon.
        """
        return Ack(edge, "", edge, 0, 0, "waiting", time, failing=failing)

    @property
    def is_of_edge(self) -> bool:
        """True for the sign of life of an edge that has no shards."""
        return not self.stream


@dataclass(frozen=True)
class Observation:
    """Sample of a shard's readings on `tamis.sketches` (key: the shard). `sketch` has the bytes of a
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
    """State of one topic in one output partition of the joiner."""

    frontier: int | None  # microseconds; None: not every listed shard has reported yet
    tuples: int
    bytes: int
    void: bool  # no shard is listed for its stream
    shards: tuple[str, ...] = ()  # the listed shards whose final records have not been read
    left: int = NOTHING_LEFT  # no tuple of a shard that has left is later than this event time
    # All tuples that the listed shards sent under plans before this one have been read; None without shards.
    obeyed: int | None = None
    keys: int = 0  # different partition keys of the tuples


@dataclass(frozen=True)
class Frontier:
    """State of one output partition on `tamis.frontiers` (key: the partition as decimal digits).

    Every alarm below these frontiers is in Kafka before this record: the record of a batch with alarms comes
    with the next batch. `topics` is by topic name. `definitions` has the live tuples, or the entries of
    synopses, of the partition by "alert@version". The counters only grow.
    """

    partition: int
    plan: int
    topics: dict[str, StreamState]
    definitions: dict[str, int]
    alarms: dict[str, int]  # by alert, since the state's beginning
    late: int
    parked: int
    time: int  # wall clock, microseconds
    dead: dict[str, int] = field(default_factory=dict)  # dead letters by reason
    unable: dict[str, str] = field(default_factory=dict)  # by alert that isn't evaluated: the reason
    # Bound on the entries of a standing query, over all partitions, by "alert@version".
    bounds: dict[str, int] = field(default_factory=dict)
    # Tuples that came too late to count for a standing query, by alert, since the state's beginning.
    missed: dict[str, int] = field(default_factory=dict)
    # Bytes of state by "alert@version": of its synopses, or its share of the state of its topics.
    sizes: dict[str, int] = field(default_factory=dict)
    # By replaced definition, "alert@version": tuples from before its successor that can still be joined.
    waiting: dict[str, int] = field(default_factory=dict)
    # By standing query, "alert@version": the columns of its rows that are times, if there are any. The alerts
    # service can't tell them from the plan, which has the query as SQL.
    times: dict[str, Sequence[str]] = field(default_factory=dict)
    # True if the partition's next record is made, and comes with the next batch.
    next_waits: bool = False

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(self)

    @staticmethod
    def from_bytes(value: bytes) -> Frontier:
        """The record of a value written by `to_bytes`, of this release or a newer one."""
        raw = _known(Frontier, orjson.loads(value))
        raw["topics"] = {
            name: StreamState(**_known(StreamState, state) | {"shards": tuple(state.get("shards", ()))})
            for name, state in raw["topics"].items()
        }
        for name, state in raw["topics"].items():
            if type(state.frontier) not in (int, NoneType):
                raise ValueError(f"the frontier of {name} is no event time: {state.frontier!r}")
        return Frontier(**raw)
