"""Durable state of the registry: statements, replaced definitions, leases, shards, topics and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from tamis.declarations.backfill import raw_name
from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.messaging.topics import outside_topic, stream_topic
from tamis.persistent.dicts import PersistentDict
from tamis.planning.queries.definitions import definition_id
from tamis.planning.queries.former_definitions import Former
from tamis.planning.topic_readers import Reader
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.sharing.selectivity import StreamStatistics
from tamis.sharing.topic_choice import TopicId
from tamis.sharing.topic_plans import Subscription

# The prefix of the reader of a lease in plans; no alert can have such a name.
LEASE = "lease/"

Kind = Literal["stream", "table", "derived", "function", "pattern", "alert"]
Defined = StreamDef | TableDef | DerivedDef | FunctionDef | PatternDef | AlertDef
KINDS: dict[type[Defined], Kind] = {
    StreamDef: "stream",
    TableDef: "table",
    DerivedDef: "derived",
    FunctionDef: "function",
    PatternDef: "pattern",
    AlertDef: "alert",
}


@dataclass(frozen=True)
class Stored:
    """A stored statement. `version` is the plan version that made it, `order` its position among all
    statements.

    `refusal`: the reason why a statement that was once accepted can't be used any more (after an upgrade).
    `topics`: for an alert, the topic that serves each of its sources: its number, or the name of the derived
    stream whose topic it is. It is empty in records of earlier releases, in which a stream and key had only
    one topic. For a derived stream whose topic the joiner reads, the number of its topic under "".
    """

    kind: Kind
    name: str
    sql: str
    order: int
    version: int
    paused: bool = False
    topics: dict[str, TopicId] = field(default_factory=dict)
    definition: Defined | None = field(default=None, compare=False)
    refusal: str | None = field(default=None, compare=False)

    @property
    def alert(self) -> AlertDef | None:
        """The alert; None if the statement isn't an alert or is refused."""
        return self.definition if isinstance(self.definition, AlertDef) else None

    @cached_property
    def as_reader(self) -> Reader | None:
        """The reader in the plan; None if there is none."""
        if self.alert is None or self.paused:
            return None
        return Reader(definition_id(self.name, self.version), self.alert, self.version, self.topics)


@dataclass(frozen=True)
class Retiring:
    """The old definition of a replaced alert. It still runs beside the definition of version `successor`.

    `former`: the statements of streams, functions, tables and derived streams that have changed since and
    that it reads as they were, each behind the plan version that replaced it and its key.
    """

    alert: str
    version: int
    sql: str
    order: int
    successor: int
    topics: dict[str, TopicId] = field(default_factory=dict)
    definition: AlertDef | None = field(default=None, compare=False)
    former: tuple[tuple[int, str, str], ...] = ()
    former_definitions: tuple[Former, ...] = field(default=(), compare=False)

    def with_former(self, definitions: tuple[Former, ...]) -> Retiring:
        """A copy that reads these definitions as they were."""
        texts = tuple((one.until, key_of(one.definition), one.definition.sql) for one in definitions)
        return replace(self, former=texts, former_definitions=definitions)

    @property
    def id(self) -> str:
        """The name of the definition in plans and frontiers."""
        return definition_id(self.alert, self.version)

    @cached_property
    def as_reader(self) -> Reader | None:
        """The reader in the plan; None if there is none."""
        if self.definition is None:
            return None
        return Reader(self.id, self.definition, self.version, self.topics, self.former_definitions)


@dataclass(frozen=True)
class Lease:
    """A subscription from outside the fleet, made by plan `version`.

    It ends when nobody has renewed it for `seconds`. The time of the last renewal isn't durable: after a
    restart every lease has its whole term again.
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
    def reader_id(self) -> str:
        """The name of its reader in plans."""
        return LEASE + self.id

    @cached_property
    def as_reader(self) -> Reader | None:
        """The reader in the plan; None if there is none."""
        meaning = self.subscription
        return Reader(self.reader_id, meaning, meaning.version, self.topics) if meaning else None


# Reasons of shards that nothing shows as long as no edge reports them.
FORGOTTEN = ("given_up", "dropped")


@dataclass(frozen=True)
class Shard:
    """A shard that is or was listed: by version `since`, or delisted by version `gone` for `reason`: its
    source has ended, nothing new came from it for longer than `max_stall`, somebody gave it up, or its stream
    was dropped. `edge`: the one for which it was listed; `View.edge` has the one that has it now.
    """

    name: str
    stream: str
    edge: str
    since: int | None
    gone: int | None = None
    reason: Literal["", "ended", "silent", "given_up", "dropped"] = ""


@dataclass(frozen=True)
class StreamTopics:
    """The shared topics that a stream ever had: partition key to number. No number is used twice.

    `outside`: the numbers of topics that the joiner doesn't read; `anew`: the plan version in which the
    stream's time was last restarted. `base`: the raw stream of a watched stream. `aggregated`: the numbers of
    topics that have or had partial aggregates, and carry no tuples any more.
    """

    next: int = 1
    numbers: tuple[tuple[tuple[str, ...], int], ...] = ()
    outside: frozenset[int] = frozenset()
    anew: int = 0
    base: str | None = None
    aggregated: frozenset[int] = frozenset()

    def name(self, stream: str, number: int) -> str:
        """The name of a topic."""
        return outside_topic(stream, number) if number in self.outside else stream_topic(stream, number)


class TopicSchema(NamedTuple):
    """The schema of a topic's values. `digest`: that of its text, which changes with its columns."""

    schema: ValueSchema
    digest: int


@dataclass
class State:
    """All durable state. `owner`: the process that writes. `version`: the newest plan's version, or a greater
    one.
    """

    partitions: int
    owner: str = ""
    version: int = 0
    order: int = 0
    statements: PersistentDict[str, Stored] = field(default_factory=PersistentDict)  # "kind/name"
    retiring: PersistentDict[str, Retiring] = field(default_factory=PersistentDict)  # "alert@version"
    leases: PersistentDict[str, Lease] = field(default_factory=PersistentDict)  # by id
    shards: dict[str, Shard] = field(default_factory=dict)
    topics: dict[str, StreamTopics] = field(default_factory=dict)  # by stream, dropped ones too
    statistics: dict[str, StreamStatistics] = field(default_factory=dict)  # by stream
    schemas: dict[str, TopicSchema] = field(default_factory=dict)  # by topic, where values aren't JSON
    # Not stored: it follows from the SQL of the statements.
    catalog: Catalog = field(default_factory=Catalog, compare=False)

    def draft(self) -> State:
        """A copy that can be changed independently."""
        return replace(
            self,
            statements=self.statements.copy(),
            retiring=self.retiring.copy(),
            leases=self.leases.copy(),
            shards=dict(self.shards),
            topics=dict(self.topics),
            statistics=dict(self.statistics),
            schemas=dict(self.schemas),
            catalog=self.catalog.copy(),
        )

    def of_kind(self, *kinds: Kind) -> list[Stored]:
        """The statements of these kinds, in the order in which they were made."""
        # The keys are nearer in memory than the statements, of which there may be many thousands.
        starts = tuple(f"{kind}/" for kind in kinds)
        found = [one for key, one in self.statements.items() if key.startswith(starts)]
        return sorted(found, key=lambda s: s.order)

    def alert(self, name: str) -> Stored | None:
        """The alert of that name."""
        return self.statements.get(f"alert/{name}")

    def raw_stream(self, name: str) -> StreamDef | None:
        """The raw stream of that name, or the one that a backfill stream of that name reads."""
        stored = self.statements.get(f"stream/{raw_name(name)}")
        return stored.definition if stored and isinstance(stored.definition, StreamDef) else None

    def base(self, stream: str) -> str:
        """The raw stream whose shards serve a stream: itself, or the base of a watched stream."""
        known = self.catalog.streams.get(stream) or self.topics.get(stream)
        return (known.base if known else None) or stream

    def watched(self, base: str) -> list[str]:
        """The watched streams that a raw stream has or had, by name."""
        names = {name for name, topics in self.topics.items() if topics.base == base}
        names |= {name for name, stream in self.catalog.streams.items() if stream.base == base}
        return sorted(names)

    def listed(self, streams: Iterable[str]) -> list[Shard]:
        """The listed shards of these streams, by name."""
        wanted = {self.base(stream) for stream in streams}
        return sorted(
            (s for s in self.shards.values() if s.since is not None and s.stream in wanted),
            key=lambda s: s.name,
        )


def key_of(definition: Defined) -> str:
    """The key of a definition's statement: its kind and its name."""
    return f"{KINDS[type(definition)]}/{definition.name}"


def definitions(state: State) -> Iterator[Defined]:
    """All definitions in force, the old definitions that still run, and all streams that they read, watched
    ones too.
    """
    yield from (one.definition for one in state.statements.values() if one.definition is not None)
    old = [one.definition for one in state.retiring.values() if one.definition is not None]
    yield from old
    yield from state.catalog.reading(*old).streams.values()
    for one in state.retiring.values():
        yield from (former.definition for former in one.former_definitions)
        if one.definition is not None:
            yield from one.definition.query.watched
