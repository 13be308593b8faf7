"""What the registry must never forget, and its form in the compacted topic `tamis.statements`.

Keys are `<kind>/<name>`; one key, `fleet`, has what belongs to no statement. A change is written as the
difference between the records of two states, so nothing can be changed and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import orjson

from tamis.errors import InputError
from tamis.messaging.topics import outside_topic, stream_topic
from tamis.planning.build import definition_id
from tamis.planning.remembered import same_ends
from tamis.planning.seats import Asked
from tamis.planning.subscriptions import Subscription
from tamis.planning.traffic import Estimate
from tamis.predicates.selectivity import Observed
from tamis.query.model import AlertDef, Catalog, DerivedDef, FunctionDef, StreamDef, TableDef

FLEET = b"fleet"

# How planning calls the reader of a lease; no alert can have such a name.
LEASE = "lease/"

Kind = Literal["stream", "table", "derived", "function", "alert"]
Defined = StreamDef | TableDef | DerivedDef | FunctionDef | AlertDef


@dataclass(frozen=True)
class Stored:
    """A statement in force. `version` is the plan version that made it, `order` its place among all.

    `refusal` says why a statement that was once accepted can't be obeyed any more (after an upgrade).
    `topics`: of an alert, the number of the topic that serves each of its sources; empty in records from
    before there were several.
    """

    kind: Kind
    name: str
    sql: str
    order: int
    version: int
    paused: bool = False
    topics: dict[str, int] = field(default_factory=dict)
    definition: Defined | None = field(default=None, compare=False)
    refusal: str | None = field(default=None, compare=False)

    @property
    def alert(self) -> AlertDef | None:
        """Its alert, where it is one that can be obeyed."""
        return self.definition if isinstance(self.definition, AlertDef) else None

    @cached_property
    def asked(self) -> Asked | None:
        """The reader that planning sees."""
        if self.alert is None or self.paused:
            return None
        return Asked(definition_id(self.name, self.version), self.alert, self.version, self.topics)


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert: it runs on beside its successor, made by version
    `successor`.
    """

    alert: str
    version: int
    sql: str
    order: int
    successor: int
    topics: dict[str, int] = field(default_factory=dict)
    definition: AlertDef | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """How plans and frontiers name a definition."""
        return definition_id(self.alert, self.version)

    @cached_property
    def asked(self) -> Asked | None:
        """The reader that planning sees."""
        return Asked(self.id, self.definition, self.version, self.topics) if self.definition else None


@dataclass(frozen=True)
class Lease:
    """A subscription from outside the fleet, made by plan `version`: it ends when nobody has asked for it for
    `seconds`. When that was last isn't durable: after a restart every lease is as new.
    """

    id: str
    stream: str  # as it was asked for, derived or raw
    predicate: str
    consumer: str
    seconds: int
    version: int
    topics: dict[str, int] = field(default_factory=dict)
    subscription: Subscription | None = field(default=None, compare=False)

    @property
    def reader(self) -> str:
        """How planning calls it."""
        return LEASE + self.id

    @cached_property
    def asked(self) -> Asked | None:
        """The reader that planning sees."""
        meaning = self.subscription
        return Asked(self.reader, meaning, meaning.version, self.topics) if meaning else None


@dataclass(frozen=True)
class Shard:
    """A shard that is or was listed: by version `since`, or delisted by version `gone` for `reason`."""

    name: str
    stream: str
    edge: str
    since: int | None
    gone: int | None = None
    reason: Literal["", "ended", "silent", "dropped"] = ""


@dataclass(frozen=True)
class StreamTopics:
    """The shared topics that a stream ever had: partition key to number. No number is used twice. `outside`:
    the numbers of those that the joiner doesn't find.
    """

    next: int = 1
    numbers: tuple[tuple[tuple[str, ...], int], ...] = ()
    outside: frozenset[int] = frozenset()

    def name(self, stream: str, number: int) -> str:
        """A topic's name."""
        return outside_topic(stream, number) if number in self.outside else stream_topic(stream, number)


@dataclass
class State:
    """Everything durable. `owner` is the process that writes; `version` the newest plan's, or greater."""

    partitions: int
    owner: str = ""
    version: int = 0
    order: int = 0
    statements: dict[str, Stored] = field(default_factory=dict)  # "kind/name"
    retiring: dict[str, Retiring] = field(default_factory=dict)  # "alert@version"
    leases: dict[str, Lease] = field(default_factory=dict)  # by id
    shards: dict[str, Shard] = field(default_factory=dict)
    topics: dict[str, StreamTopics] = field(default_factory=dict)  # by stream, dropped ones too
    estimates: dict[str, Estimate] = field(default_factory=dict)  # by stream
    # The statements' meaning: not stored, since it follows from their SQL.
    catalog: Catalog = field(default_factory=Catalog, compare=False)

    def draft(self) -> State:
        """A copy that may be changed without changing this."""
        return replace(
            self,
            statements=dict(self.statements),
            retiring=dict(self.retiring),
            leases=dict(self.leases),
            shards=dict(self.shards),
            topics=dict(self.topics),
            estimates=dict(self.estimates),
            catalog=self.catalog.copy(),
        )

    def of_kind(self, *kinds: Kind) -> list[Stored]:
        """The statements of these kinds, in order."""
        return sorted((s for s in self.statements.values() if s.kind in kinds), key=lambda s: s.order)

    def alert(self, name: str) -> Stored | None:
        """The alert of that name."""
        return self.statements.get(f"alert/{name}")

    def listed(self, streams: Iterable[str]) -> list[Shard]:
        """The listed shards of these streams, by name."""
        wanted = set(streams)
        return sorted(
            (s for s in self.shards.values() if s.since is not None and s.stream in wanted),
            key=lambda s: s.name,
        )


def records(state: State) -> dict[bytes, bytes]:
    """The state as records of `tamis.statements`."""
    return {key: value for key, value in difference(None, state).items() if value is not None}


Part = State | Stored | Retiring | Lease | Shard | Estimate


def _tables(state: State) -> dict[str, Mapping[str, Part]]:
    """What has records of its own, by the beginning of their keys."""
    return {
        "": state.statements,
        "retiring/": state.retiring,
        LEASE: state.leases,
        "shard/": state.shards,
        "estimate/": state.estimates,
    }


def _document(part: Part) -> dict[str, Any]:
    match part:
        case State():
            return {
                "partitions": part.partitions,
                "owner": part.owner,
                "version": part.version,
                "order": part.order,
                "topics": {
                    stream: {
                        "next": t.next,
                        "numbers": [[list(key), number] for key, number in t.numbers],
                        "outside": sorted(t.outside),
                    }
                    for stream, t in part.topics.items()
                },
            }
        case Stored():
            document = {
                "sql": part.sql,
                "order": part.order,
                "version": part.version,
                "paused": part.paused,
            }
            return document | ({"topics": part.topics} if part.topics else {})
        case Retiring():
            document = {"sql": part.sql, "order": part.order, "successor": part.successor}
            return document | ({"topics": part.topics} if part.topics else {})
        case Lease():
            return {
                "stream": part.stream,
                "predicate": part.predicate,
                "consumer": part.consumer,
                "seconds": part.seconds,
                "version": part.version,
                "topics": part.topics,
            }
        case Estimate():
            return {
                "count": part.count,
                "attributes": {
                    name: {"values": found.values, "null": found.null}
                    for name, found in part.attributes.items()
                },
            }
        case Shard():
            return {
                "stream": part.stream,
                "edge": part.edge,
                "since": part.since,
                "gone": part.gone,
                "reason": part.reason,
            }


def difference(old: State | None, new: State) -> dict[bytes, bytes | None]:
    """What to write so that `old`'s records become `new`'s; None is a tombstone."""
    changed: dict[bytes, bytes | None] = {}
    fleet = orjson.dumps(_document(new))
    if old is None or orjson.dumps(_document(old)) != fleet:
        changed[FLEET] = fleet
    before = _tables(old or State(new.partitions))
    for prefix, parts in _tables(new).items():
        known = before[prefix]
        first, last = same_ends(list(known.values()), list(parts.values()))
        for key in list(parts)[first : len(parts) - last]:
            if known.get(key) is parts[key]:
                continue
            value = orjson.dumps(_document(parts[key]))
            if key not in known or orjson.dumps(_document(known[key])) != value:
                changed[(prefix + key).encode()] = value
        gone = [key for key in list(known)[first : len(known) - last] if key not in parts]
        changed.update({(prefix + key).encode(): None for key in gone})
    return changed


def recover(found: dict[bytes, bytes]) -> State | None:
    """The state of what `tamis.statements` holds; None where there was none yet. Definitions are parsed
    later.

    Raises InputError for a record that this version of Tamis can't read, naming its key.
    """
    if FLEET not in found:
        return None
    fleet = _load(FLEET, found[FLEET])
    try:
        state = State(fleet["partitions"], fleet["owner"], fleet["version"], fleet["order"])
        for stream, topics in fleet["topics"].items():
            numbers = tuple((tuple(key), number) for key, number in topics["numbers"])
            outside = frozenset(topics.get("outside", ()))  # records from before have none
            state.topics[stream] = StreamTopics(topics["next"], numbers, outside)
    except (KeyError, TypeError) as error:
        raise _unreadable(FLEET) from error
    for key, value in found.items():
        if key != FLEET:
            try:
                _recover_one(state, key, value)
            except (KeyError, TypeError, ValueError) as error:
                raise _unreadable(key) from error
    # Kafka has them in the order of their last change.
    state.statements = dict(sorted(state.statements.items(), key=lambda pair: pair[1].order))
    state.leases = dict(sorted(state.leases.items(), key=lambda pair: (pair[1].version, pair[0])))
    return state


def _recover_one(state: State, key: bytes, value: bytes) -> None:
    kind, _, name = key.decode().partition("/")
    raw = _load(key, value)
    match kind:
        case "shard":
            state.shards[name] = Shard(name, **raw)
        case "estimate":
            attributes = {column: Observed(**found) for column, found in raw["attributes"].items()}
            state.estimates[name] = Estimate(raw["count"], attributes)
        case "lease":
            state.leases[name] = Lease(name, **raw)
        case "retiring":
            alert, _, version = name.rpartition("@")
            state.retiring[name] = Retiring(alert, int(version), **raw)
        case "stream" | "table" | "derived" | "function" | "alert":
            state.statements[f"{kind}/{name}"] = Stored(kind, name, **raw)
        case _:
            raise _unreadable(key)


def _load(key: bytes, value: bytes) -> dict[str, Any]:
    try:
        raw = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise _unreadable(key) from error
    if not isinstance(raw, dict):
        raise _unreadable(key)
    return raw


def _unreadable(key: bytes) -> InputError:
    return InputError(
        "a record that this version of Tamis can't read",
        where=f"topic tamis.statements, key {key.decode(errors='replace')}",
        hint="start the version of the registry that wrote it",
    )
