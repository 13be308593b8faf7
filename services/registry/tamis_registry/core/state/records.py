"""Records of the state in the compacted topic `tamis.statements`.

Keys are `<kind>/<name>`; the key `fleet` has the state that belongs to no statement. A change is written as
the difference between the records of two states, so no change of the state can be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tamis.errors import InputError
from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.persistent.dicts import PersistentDict, changed_keys
from tamis.predicates.sketch import Observed
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.state.model import (
    LEASE,
    Lease,
    Retiring,
    Shard,
    State,
    Stored,
    StreamTopics,
    TopicSchema,
)

FLEET = b"fleet"

# At most 2^53, so that every JSON reader keeps them exactly. Times in microseconds are below it, too.
Natural = Annotated[int, Meta(ge=0, le=2**53)]
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Numbers = dict[str, Positive]  # alias -> the number of a topic
Topics = dict[str, Positive | str]  # alias -> the number of a topic, or the name of a derived stream
Part = Stored | Retiring | Lease | Shard | StreamStatistics
R = TypeVar("R", bound=Struct)


class _Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records."""


class _Topics(_Record, frozen=True):
    next: Positive
    numbers: list[tuple[list[str], Positive]]
    outside: list[Positive] | UnsetType = UNSET  # records of earlier releases have none
    anew: Natural = 0
    base: str | None = None
    aggregated: list[Positive] | UnsetType = UNSET  # records of earlier releases have none


class _Fleet(_Record, frozen=True):
    partitions: Annotated[int, Meta(ge=1, le=10_000)]
    owner: str
    version: Natural
    order: Natural
    topics: dict[str, _Topics]
    # Format, number, columns and digest, by topic. Fleets without a schema registry have none.
    schemas: dict[str, tuple[Literal["avro", "protobuf"], Positive, Natural, Natural]] = {}


class _Statement(_Record, frozen=True):
    sql: str
    order: Natural
    version: Natural
    paused: bool
    topics: Topics = {}


class _Retiring(_Record, frozen=True):
    sql: str
    order: Natural
    successor: Natural
    topics: Topics = {}
    # Statements that have changed since; earlier releases can't read records that have some.
    former: tuple[tuple[Positive, str, str], ...] = ()


class _Lease(_Record, frozen=True):
    stream: str
    predicate: str
    consumer: str
    seconds: Positive
    version: Natural
    topics: Numbers


class _Shard(_Record, frozen=True):
    stream: str
    edge: str
    since: Natural | None
    gone: Natural | None
    # Earlier releases can't read records of shards that were given up.
    reason: Literal["", "ended", "silent", "given_up", "dropped"]


class _Observed(_Record, frozen=True):
    values: list[bool | int | float]
    null: float


class _Statistics(_Record, frozen=True):
    count: Natural
    attributes: dict[str, _Observed]


_KINDS: dict[type[Part], type[_Record]] = {
    Stored: _Statement,
    Retiring: _Retiring,
    Lease: _Lease,
    Shard: _Shard,
    StreamStatistics: _Statistics,
}
# By the kind in their keys.
_READ: dict[str, type[_Record]] = {
    **dict.fromkeys(("stream", "table", "derived", "function", "pattern", "alert"), _Statement),
    "retiring": _Retiring,
    "lease": _Lease,
    "shard": _Shard,
    "estimate": _Statistics,
}
_encode = msgspec.json.Encoder().encode


def records(state: State) -> dict[bytes, bytes]:
    """The state as records of `tamis.statements`."""
    return {key: value for key, value in difference(None, state).items() if value is not None}


def difference(old: State | None, new: State) -> dict[bytes, bytes | None]:
    """The records to write so that the records of `old` become those of `new`; None is a tombstone."""
    changed: dict[bytes, bytes | None] = {}
    fleet = _fleet(new)
    if old is None or _fleet(old) != fleet:
        changed[FLEET] = fleet
    before = _tables(old or State(new.partitions))
    for prefix, parts in _tables(new).items():
        known = before[prefix]
        gone, added = changed_keys(known, parts)
        for key in added:
            value = _part(parts[key])
            if key not in known or _part(known[key]) != value:
                changed[(prefix + key).encode()] = value
        changed.update({(prefix + key).encode(): None for key in gone})
    return changed


def owner(fleet: bytes) -> str:
    """The process that wrote the record of the fleet. Raises InputError if it can't be read."""
    return _read(_Fleet, FLEET, fleet).owner


def owned_by(fleet: bytes, owner: str) -> bytes:
    """The record of the fleet as this process writes it. Raises InputError if it can't be read."""
    return _encode(msgspec.structs.replace(_read(_Fleet, FLEET, fleet), owner=owner))


def damage(key: bytes, value: bytes) -> str | None:
    """The reason why a record of `tamis.statements` is one of no release; None for a record of this release,
    or of a later one as far as this one can tell.

    A later release may have other kinds of keys and more members, and a registry that doesn't know these must
    not go on without them.
    """
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error)
    prefix, _, name = key.decode(errors="replace").partition("/")
    kind = _Fleet if key == FLEET else _READ.get(prefix)
    if not isinstance(document, dict):
        return "not a JSON object"
    if kind is None:
        return None if name else "no release has such a key"
    if document.keys() <= set(kind.__struct_fields__):
        try:
            msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            return str(error)
        if prefix == "retiring" and not name.rpartition("@")[2].isdecimal():
            return "the key has no version"
    return None


def recover(found: Mapping[bytes, bytes]) -> State | None:
    """The state of the records of `tamis.statements`; None if there was none yet.

    Definitions are parsed later. Raises InputError for a record that this version of Tamis can't read.
    """
    if FLEET not in found:
        return None
    fleet = _read(_Fleet, FLEET, found[FLEET])
    state = State(fleet.partitions, fleet.owner, fleet.version, fleet.order)
    for stream, topics in fleet.topics.items():
        numbers = tuple((tuple(key), number) for key, number in topics.numbers)
        outside = frozenset(() if topics.outside is UNSET else topics.outside)
        aggregated = frozenset(() if topics.aggregated is UNSET else topics.aggregated)
        state.topics[stream] = StreamTopics(
            topics.next, numbers, outside, topics.anew, topics.base, aggregated
        )
    state.schemas = {
        topic: TopicSchema(ValueSchema(form, number, columns), digest)
        for topic, (form, number, columns, digest) in fleet.schemas.items()
    }
    for key, value in found.items():
        if key != FLEET:
            _recover_part(state, key, value)
    # Kafka has them in the order of their last change.
    state.statements = PersistentDict(sorted(state.statements.items(), key=lambda pair: pair[1].order))
    state.leases = PersistentDict(sorted(state.leases.items(), key=lambda pair: (pair[1].version, pair[0])))
    return state


def _recover_part(state: State, key: bytes, value: bytes) -> None:
    kind, _, name = key.decode(errors="replace").partition("/")
    match kind:
        case "shard":
            state.shards[name] = Shard(name, **_fields(_Shard, key, value))
        case "estimate":
            found = _read(_Statistics, key, value)
            attributes = {column: Observed(one.values, one.null) for column, one in found.attributes.items()}
            state.statistics[name] = StreamStatistics(found.count, attributes)
        case "lease":
            state.leases[name] = Lease(name, **_fields(_Lease, key, value))
        case "retiring":
            alert, _, version = name.rpartition("@")
            if not version.isdecimal():
                raise _unreadable(key, "the key has no version")
            state.retiring[name] = Retiring(alert, int(version), **_fields(_Retiring, key, value))
        case "stream" | "table" | "derived" | "function" | "pattern" | "alert":
            state.statements[f"{kind}/{name}"] = Stored(kind, name, **_fields(_Statement, key, value))
        case _:
            raise _unreadable(key, "an unknown kind of key")


def _tables(state: State) -> dict[str, Mapping[str, Part]]:
    """The parts of the state that have records of their own, by the prefix of their keys."""
    return {
        "": state.statements,
        "retiring/": state.retiring,
        LEASE: state.leases,
        "shard/": state.shards,
        "estimate/": state.statistics,
    }


def _fleet(state: State) -> bytes:
    topics = {
        stream: _Topics(
            next=one.next,
            numbers=[(list(key), number) for key, number in one.numbers],
            outside=sorted(one.outside),
            anew=one.anew,
            base=one.base,
            aggregated=sorted(one.aggregated) or UNSET,
        )
        for stream, one in state.topics.items()
    }
    schemas: dict[str, Any] = {topic: (*one.schema, one.digest) for topic, one in state.schemas.items()}
    return _encode(_Fleet(state.partitions, state.owner, state.version, state.order, topics, schemas))


def _part(part: Part) -> bytes:
    if isinstance(part, StreamStatistics):
        attributes = {
            name: _Observed(list(found.values), found.null)  # type: ignore[arg-type] # texts aren't observed
            for name, found in part.attributes.items()
        }
        return _encode(_Statistics(part.count, attributes))
    kind = _KINDS[type(part)]
    return _encode(kind(**{name: getattr(part, name) for name in kind.__struct_fields__}))


def _fields(kind: type[R], key: bytes, value: bytes) -> dict[str, Any]:
    return msgspec.structs.asdict(_read(kind, key, value))


def _read(kind: type[R], key: bytes, value: bytes) -> R:
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(key, str(error)) from error


def _unreadable(key: bytes, why: str) -> InputError:
    return InputError(
        f"this version of Tamis can't read the record: {why}",
        where=f"topic tamis.statements, key {key.decode(errors='replace')}",
        hint="start the version of the registry that wrote it",
    )
