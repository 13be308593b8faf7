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

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import orjson
from msgspec import Meta


def json_bytes(value: Any) -> bytes:
    """A value as JSON that needs no more memory than its length.

    `orjson.dumps` reserves memory in case all characters have to be escaped, and its result keeps it: JSON of
    20 kB takes 260 kB, and that of a key of six characters takes 4 kB.
    """
    return bytes(memoryview(orjson.dumps(value)))


ENVELOPE = "_"

# The event time in the progress of a source that has ended. At most 2^53, so that every JSON reader keeps it
# exactly.
END_OF_TIME = 2**53 - 1

# Below every event time: no shard has left that sent a tuple.
NOTHING_LEFT = -(2**62)

ShardState = Literal["waiting", "active", "final"]

# Whatever a record has is in answers and metrics later: no number that JSON writers refuse, also not as a sum
# over many shards, and no counts below 0.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
# Names: those of streams have at most 200 characters, and that of a shard has three names.
Text = Annotated[str, Meta(max_length=2_000)]

# The registry keeps the newest acknowledgement of each shard.
MOST_ACK_BYTES = 2**20

_T = TypeVar("_T")

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


def progress_envelope(
    shard: str,
    plan: int,
    activation: int,
    event_time: int | None,
    shed: tuple[int, int] | None = None,
    *,
    place: int | None = None,
    form: int | None = None,
    fence: int = 0,
) -> dict[str, Any]:
    """The envelope of a progress record. `shed`: the first and the last event time of a span in which
    retained tuples were dropped; then `event_time` may be None, if none is known yet. `place`: all tuples of
    the shard before this place were published before the record. `form`: the plan that a reader needs to
    understand the cuts before the record, if it is newer. `fence`: the number of the shard's last fence, 0
    without one.
    """
    envelope = {"kind": "progress", "shard": shard, "plan": plan, "activation": activation}
    if event_time is not None:
        envelope["event_time"] = event_time
    if place is not None:
        envelope["place"] = place
    if form is not None and form > plan:
        envelope["form"] = form
    if fence:
        envelope["fence"] = fence
    return envelope if shed is None else envelope | {"shed": shed}


def final_envelope(shard: str, plan: int, fence: int = 0) -> dict[str, Any]:
    """The envelope of a final record: the shard publishes nothing more until a plan lists it again. `fence`:
    as for progress.
    """
    envelope = {"kind": "final", "shard": shard, "plan": plan}
    return envelope | {"fence": fence} if fence else envelope


def fence_envelope(shard: str, plan: int, fence: int) -> dict[str, Any]:
    """The envelope of a fence: tuples and progress of the shard behind it count only with this number, or a
    greater one.
    """
    return {"kind": "fence", "shard": shard, "plan": plan, "fence": fence}


def decoded(decoder: msgspec.json.Decoder[_T], value: bytes) -> _T:
    """The record of a value, whose fields have the types of its class. Fields that this release doesn't know
    are ignored: a newer release may write more. Raises ValueError.
    """
    try:
        return decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Ack:
    """State of a shard on `tamis.acks` (key: the shard), sent at every change and at every heartbeat. An edge
    without shards sends a record of its own (`of_edge`).

    A shard that obeys no plan yet has `plan` 0. `state` is waiting (not listed yet), active, or final (its
    source has ended, or its edge leaves on purpose; sent after the final records are safe).
    """

    shard: Text
    stream: Text
    edge: Text
    plan: Count
    activation: Integer
    state: ShardState
    time: Integer  # wall clock of the edge, microseconds
    # Microseconds without new readings and without a move of the watermark; below 0 if the clock went back.
    quiet: Integer = 0
    # The greatest event time of a shard whose readings follow the clock.
    reached: Integer | None = None
    # False if the source can't be read again from its beginning: it has no history for a backfill stream.
    rereadable: bool | None = None
    # Of a shard of a backfill stream: the first offset that was read, and the least event time of all
    # readings so far; None without event time, or before the first reading.
    first_offset: Integer | None = None
    earliest: Integer | None = None
    # The failing sources of the edge, each with the reason; None if none fails.
    failing: dict[Text, str] | None = None
    # Tuples by the edge's decision (published, omitted, filtered, late, dead, aggregated) since it began to
    # serve the shard. They begin again at 0 when the edge restarts or the shard moves. Of a shard that isn't
    # listed: empty if it never had a reading.
    tuples: dict[Text, Count] | None = None
    # Event time before which the shard's readings are late, in microseconds; None without event time.
    watermark: Integer | None = None
    # What is doubtful about the shard's newest readings, for people; None if nothing is.
    doubts: list[str] | None = None
    # Of a shard that isn't listed: true if its edge has a reading of it that waits; None from an earlier
    # release.
    unread: bool | None = None
    # True of a shard that never had a reading, and whose stream the configuration of the edge doesn't name:
    # nobody knows if readings will come this way. None from an earlier release.
    unused: bool | None = None
    # True of an edge that can publish partial aggregates; None from an earlier release.
    partials: bool | None = True
    # True of an edge that can publish representatives; None from an earlier release.
    representatives: bool | None = True

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps({name: value for name, value in self.__dict__.items() if value is not None})

    @staticmethod
    def from_bytes(value: bytes) -> Ack:
        """The record of a value written by `to_bytes`, of this release or a newer one. Raises ValueError."""
        if len(value) > MOST_ACK_BYTES:
            raise ValueError(f"it has {len(value)} bytes; at most {MOST_ACK_BYTES} are read")
        found = decoded(_ACK, value)
        return Ack(*(getattr(found, one.name) for one in fields(Ack)))

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
class _AckRecord(Ack):
    """An acknowledgement as it is read: an earlier release doesn't say what its edges can do."""

    partials: bool | None = None
    representatives: bool | None = None


@dataclass(frozen=True)
class Observation:
    """Sample of a shard's readings on `tamis.sketches` (key: the shard). `sketch` has the bytes of a
    `tamis.predicates.selectivity.Sketch`.
    """

    shard: Text
    stream: Text
    sketch: bytes

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(
            {"shard": self.shard, "stream": self.stream, "sketch": orjson.Fragment(self.sketch)}
        )

    @staticmethod
    def from_bytes(value: bytes) -> Observation:
        """The record of a value written by `to_bytes`. Raises ValueError."""
        found = decoded(_OBSERVATION, value)
        return Observation(found.shard, found.stream, bytes(found.sketch))


@dataclass(frozen=True)
class StreamState:
    """State of one topic in one output partition of the joiner."""

    frontier: Integer | None  # microseconds; None: not every listed shard has reported yet
    tuples: Count
    bytes: Count
    void: bool  # no shard is listed for its stream
    shards: tuple[Text, ...] = ()  # the listed shards whose final records have not been read
    left: Integer = NOTHING_LEFT  # no tuple of a shard that has left is later than this event time
    # All tuples that the listed shards sent under plans before this one have been read; None without shards.
    obeyed: Integer | None = None
    keys: Count = 0  # different partition keys of the tuples


@dataclass(frozen=True)
class Frontier:
    """State of one output partition on `tamis.frontiers` (key: the partition as decimal digits).

    Every alarm below these frontiers is in Kafka before this record: the record of a batch with alarms comes
    with the next batch. `topics` is by topic name. `definitions` has the live tuples, or the entries of
    synopses, of the partition by "alert@version". The counters only grow.
    """

    partition: Count
    plan: Count
    topics: dict[str, StreamState]
    definitions: dict[str, Count]
    alarms: dict[str, Count]  # by alert, since the state's beginning
    late: Count
    parked: Count
    time: Integer  # wall clock, microseconds
    dead: dict[str, Count] = field(default_factory=dict)  # dead letters by reason
    unable: dict[str, str] = field(default_factory=dict)  # by alert that isn't evaluated: the reason
    # Bound on the entries of a standing query, over all partitions, by "alert@version".
    bounds: dict[str, Integer] = field(default_factory=dict)
    # Tuples that came too late to count for a standing query, by alert, since the state's beginning.
    missed: dict[str, Count] = field(default_factory=dict)
    # Bytes of state by "alert@version": of its synopses, or its share of the state of its topics.
    sizes: dict[str, Count] = field(default_factory=dict)
    # By replaced definition, "alert@version": tuples from before its successor that can still be joined.
    waiting: dict[str, Count] = field(default_factory=dict)
    # True if the partition's next record is made, and comes with the next batch.
    next_waits: bool = False
    # Cuts of partial aggregates that didn't follow the one before, by alert, since the state's beginning.
    disordered: dict[str, Count] = field(default_factory=dict)
    # When the state began, microseconds; 0 in the record of an earlier release.
    began: Count = 0

    def to_bytes(self) -> bytes:
        """The record's value."""
        return orjson.dumps(self)

    @staticmethod
    def from_bytes(value: bytes) -> Frontier:
        """The record of a value written by `to_bytes`, of this release or a newer one. Raises ValueError."""
        return decoded(_FRONTIER, value)


def read_frontier(key: bytes | None, value: bytes) -> Frontier:
    """The frontier of one partition, from its record. Raises ValueError, also for the key of another."""
    found = Frontier.from_bytes(value)
    if key != str(found.partition).encode():
        raise ValueError(f"it is the frontier of partition {found.partition}, and has another key")
    return found


def read_ack(key: bytes | None, value: bytes) -> Ack:
    """The acknowledgement of a shard, from its record. Raises ValueError, also for the key of another."""
    found = Ack.from_bytes(value)
    if key != found.shard.encode():
        raise ValueError(f"it is of the shard {found.shard!r:.300}, and has another key")
    return found


class _ObservationRecord(msgspec.Struct):
    """A record of `Observation`, whose sketch is decoded by those who use it."""

    shard: Text
    stream: Text
    sketch: msgspec.Raw


_ACK = msgspec.json.Decoder(_AckRecord)
_OBSERVATION = msgspec.json.Decoder(_ObservationRecord)
_FRONTIER = msgspec.json.Decoder(Frontier)
