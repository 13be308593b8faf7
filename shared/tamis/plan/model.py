"""The plan as data: what the registry tells every edge and the joiner to do, one version at a time.

A plan is a JSON document in every partition of `tamis.plans`. `docs/protocol.md` gives the rules;
the names are the model's: a *definition* is an alert's query as of the plan version `n` that made it;
`since` lists the shards and the version that lists each. Expressions travel in the JSON form of
`tamis.expressions.json_form`, never as SQL or code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from tamis.declarations.definitions import Window
from tamis.declarations.watches import AnyWatch, Watch, WindowFunction
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Column, Expr, Type
from tamis.plan.nodes import Cover, Grouping, Node

Sides = Literal["both", "above", "below"]
# Numbers and texts without one of these types are numbers from 0 and texts of at most 1,000 characters.
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Signed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


@dataclass(frozen=True)
class Representation:
    """The tuples of a stream that stand for all others in a query without event time (docs/bounded.md,
    "Representatives"). An edge publishes a tuple if it is the first, or better than those before it, in any
    of `covers`.

    All columns carry the empty alias. `most`: the greatest number of tuples that the covers of a shard keep.
    A shard that has more, since a key has more values than declared, publishes every tuple.
    """

    covers: tuple[Cover, ...]
    most: int


@dataclass(frozen=True)
class Entry:
    """An entry of a topic: of the tuples that pass `filter`, those that omission on `value` retains.

    `interval` 0 means no omission: every tuple that passes. With `window`, `interval` is its size, and
    omission keeps each window's extremes. All columns carry the empty alias. `serves`: the version of the
    newest definition that the entry serves; an entry that begins to serve a new definition is a new entry
    and starts without brackets (`restart_served`).
    """

    filter: Expr | None
    omission_key: tuple[str, ...]  # column names, the partition key's first
    value: Expr | None
    interval: int  # L, microseconds
    sides: Sides
    max_delay: int | None  # microseconds; the least of those that it serves
    serves: int
    window: Window | None = None
    exact: bool = False  # `value` is a sum of products, whose exact values are compared (see `polynomials`)
    # It serves alerts over this stream alone, which also need tuples with NULL in the partition key.
    null_keys: bool = False
    # Of the tuples that pass `filter` only representatives are published; `interval` is 0 then. Every tuple
    # may be published, and is where `StreamPlan.representatives` is None.
    representation: Representation | None = None

    @property
    def complete(self) -> bool:
        """True if every tuple that passes is published."""
        return self.interval == 0 and self.representation is None


@dataclass(frozen=True)
class PaneGrid:
    """The boundaries of panes that one query needs: the times `offset + n * slide`, in microseconds.

    `query` ("alert@version") counts from plan version `version` on, until the version `until` that replaces
    it.
    """

    query: str
    version: Positive
    slide: Positive
    offset: Signed = 0
    until: int | None = None

    def serves(self, version: int) -> bool:
        """True if the query counts readings that are read under this plan version."""
        return self.version <= version and (self.until is None or version < self.until)


@dataclass(frozen=True)
class PartialAggregation:
    """Partial aggregates of panes, which edges publish by cuts in place of tuples (docs/cuts.md), for window
    aggregates with the same filter and groups.

    `grouping` has the columns of groups, the aggregates of all readers, and the columns that are computed for
    both, all with the empty alias; it has no SELECT and no HAVING. A pane begins at each boundary of any
    grid.
    """

    grouping: Grouping
    grids: tuple[PaneGrid, ...]


@dataclass(frozen=True)
class TopicPlan:
    """One shared topic of a stream, or the topic of a derived stream.

    `partition_key` is the message key (empty: all tuples are in partition 0 under the key `[]`).
    """

    name: str
    partition_key: tuple[str, ...]
    columns: tuple[str, ...]  # the projection: what a message carries besides the key and time
    entries: Sequence[Entry]
    # Of a derived stream: the columns of its SELECT over Column("", …), which are then all that a message
    # carries. `columns` are then those that definitions read, under the names of the base stream.
    select: tuple[tuple[str, Expr], ...] = ()
    # A standing query reads it: each tuple says where in its source it stood, and is never shed.
    counted: bool = False
    # The number of its values' schema in the schema registry; None for JSON.
    schema: int | None = None
    # All of its readers are aggregates of windows that edges can begin: partial aggregates take the place of
    # tuples. A shard that has published tuples to it goes on until it can change without loss.
    partials: PartialAggregation | None = None

    @property
    def fields(self) -> dict[str, str]:
        """Of a derived stream: the columns of the base stream that messages carry as they are, with their
        names in messages.
        """
        return {expr.name: name for name, expr in self.select if isinstance(expr, Column)}


@dataclass(frozen=True)
class StreamColumn:
    """A column as edges check it; `check` is over Column("", name) and admits NULL."""

    name: str
    type: Type
    not_null: bool
    check: Expr | None


@dataclass(frozen=True)
class FormerColumns:
    """The columns that a stream had until plan version `until`."""

    until: Positive
    columns: tuple[StreamColumn, ...]


@dataclass(frozen=True)
class StreamPlan:
    """A raw stream as an edge serves it. Durations are microseconds."""

    name: str
    columns: tuple[StreamColumn, ...]
    time: str | None
    delay: int
    idle_timeout: int | None
    max_ahead: int | None  # None: a tuple may lie any time ahead of the clock
    max_stall: int
    topics: tuple[TopicPlan, ...]
    # The stream declares `max_ahead`: then it holds for replayed recordings too.
    max_ahead_given: bool = False
    # The plan version in which the stream's time began anew: forget what its shards had reached before.
    anew: int = 0
    # The format of its topics' values.
    value_format: Literal["json", "avro", "protobuf"] = "json"
    # The unit of TIMESTAMPs that are numbers, for sources that name none.
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    # Of a watched stream: the raw stream whose shards serve it, its KEY columns, whose values tell series
    # apart, and the patterns and window functions whose columns the shards add.
    base: str | None = None
    series_key: tuple[str, ...] = ()
    watches: tuple[Watch, ...] = ()
    window_functions: tuple[WindowFunction, ...] = ()
    # Its columns before changes, in the order of the versions: for readings that a shard reads again under
    # an older plan, as long as a definition from before a change still runs.
    former: tuple[FormerColumns, ...] = ()
    # Of a backfill stream: the raw stream whose sources are read from their beginning for it, and the least
    # event time of its readings. Others are left out.
    origin: str | None = None
    begin: Signed | None = None
    # When the joiner's state began, wall clock, microseconds: edges begin their representatives anew with
    # each other one. None: not all services can say or read it, so edges publish every tuple.
    representatives: int | None = None

    @property
    def all_watches(self) -> tuple[AnyWatch, ...]:
        """All watches whose columns the shards add."""
        return (*self.watches, *self.window_functions)

    @property
    def shards_of(self) -> str:
        """The raw stream whose shards serve this stream."""
        return self.base or self.name

    def columns_under(self, version: int) -> tuple[StreamColumn, ...]:
        """The columns that the stream had under an older plan version."""
        return next((one.columns for one in self.former if one.until > version), self.columns)


# The greatest number that a plan can say, as JSON writes them.
GREATEST = 2**63 - 1


def sayable(bound: int | None) -> int | None:
    """A bound as a plan has it: None for a number that is too large for JSON's integers of 64 bits."""
    return None if bound is None or bound > GREATEST else bound


@dataclass(frozen=True)
class Kept:
    """Bound of the tuples of a source that a definition can keep.

    Over all keys at most `tuples` come in any `per`, and each is kept while event time moves on by `span`,
    in microseconds. For aggregates of windows these are synopsis entries: those of a pane, and the length
    of a pane. Besides, there are at most `besides` entries that the span doesn't change.
    """

    span: int
    tuples: int
    per: Positive
    besides: int = 0

    def most(self, longer: int = 0) -> int:
        """The bound, if each tuple is kept `longer` microseconds longer than the definition alone needs.

        A closed span is covered by one more spans of `per` than fit into it.
        """
        return self.tuples * ((self.span + longer) // self.per + 1) + self.besides


@dataclass(frozen=True)
class Input:
    """One source of a definition: topic, filter, partition key and omission interval.

    With windows, the interval is their size.
    """

    alias: str
    stream: str
    topic: str
    time: str
    partition_key: tuple[str, ...]  # column names in the order that all inputs share
    filter: Expr | None  # over Column(alias, …): a shared topic carries other queries' tuples too
    interval: int  # L; 0 without omission
    # What the definition reads, besides key and time, and its alarms carry: its share of the topic's
    # projection.
    columns: tuple[str, ...] = ()
    certificate: str | None = None  # the rule that omission rests on; "heuristic…" where it is no proof
    kept: Kept | None = None  # None as the bound of `Definition`
    representation: Representation | None = None  # as that of its entry


@dataclass(frozen=True)
class TimeBound:
    """lo <= left.time - right.time <= hi, in microseconds, closed; None is unbounded."""

    left: str
    right: str
    lo: Signed | None
    hi: Signed | None


@dataclass(frozen=True)
class Absence:
    """Inputs of a definition under NOT EXISTS: no tuples of theirs may meet these conditions with a row."""

    aliases: tuple[str, ...]
    equalities: tuple[tuple[Column, Column], ...]  # beyond the partition key
    bounds: tuple[TimeBound, ...]
    condition: Expr | None
    margins: tuple[Margin, ...] = ()


@dataclass(frozen=True)
class Definition:
    """An alert's query as the joiner runs it. `version`: the plan version that made it (`n` in the model)."""

    alert: str
    version: Positive
    inputs: tuple[Input, ...]
    equalities: tuple[tuple[Column, Column], ...]  # further key equalities, beyond the partition key
    bounds: tuple[TimeBound, ...]
    condition: Expr | None  # the remaining conjuncts over several sources, as one AND
    select: tuple[tuple[str, Expr], ...]
    severity: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    gap: int | None = None
    for_: int | None = None
    # Proven number of live tuples, over all keys; None if keys or rate are not declared.
    bound: int | None = None
    # All tuples of a combination lie in the same one, and there is a row for each that holds them all.
    # `window_start` and `window_end` are columns of every input then, for `select` only.
    window: Window | None = None
    # Values that edges compare in another order than exact numbers have, and by how much they may err.
    margins: tuple[Margin, ...] = ()
    # Inputs under EXISTS: there is one row for the tuples of the other inputs, however many tuples of these
    # join them. The fields above hold for them as for all inputs that are not in `absences`.
    exists: tuple[str, ...] = ()
    absences: tuple[Absence, ...] = ()


@dataclass(frozen=True)
class StandingQuery:
    """An alert that keeps synopses and gives rows as tuples come. `version` is the plan version that made it.

    `node` says what runs. `inputs` has each stream that it reads once, under the empty alias; `filter` lets
    pass what any of its occurrences may need; `time` is empty if the stream has none. `key` names the columns
    of SELECT by which its rows are grouped to episodes. `bound` limits its synopses' entries; None if nothing
    was proven.
    """

    alert: str
    version: Positive
    node: Node
    inputs: tuple[Input, ...]
    key: tuple[str, ...]
    bound: int | None
    severity: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    gap: int | None = None
    for_: int | None = None
    proven: bool = True  # its memory was; else it runs since it was allowed to


@dataclass(frozen=True)
class Plan:
    """One version of what the whole fleet is to do."""

    version: Positive
    partitions: Positive  # of every joined topic: edges and joiner refuse a fleet with a different count
    streams: tuple[StreamPlan, ...] = ()
    definitions: Sequence[Definition] = ()
    since: dict[str, Positive] = field(default_factory=dict)  # shard -> the version that lists it
    shard_streams: dict[str, str] = field(default_factory=dict)  # shard -> its raw stream
    # "alert@version" -> the version that replaced it
    retiring: dict[str, Positive] = field(default_factory=dict)
    standing: Sequence[StandingQuery] = ()

    @property
    def queries(self) -> tuple[Definition | StandingQuery, ...]:
        """All that raises alarms."""
        return (*self.definitions, *self.standing)

    def stream(self, name: str) -> StreamPlan | None:
        """The stream of that name, if the plan has it."""
        return next((s for s in self.streams if s.name == name), None)

    def watched(self, base: str) -> tuple[StreamPlan, ...]:
        """The watched streams of a raw stream."""
        return tuple(stream for stream in self.streams if stream.base == base)


def partial_topics(plan: Plan) -> frozenset[str]:
    """The topics that have partial aggregates."""
    return frozenset(topic.name for s in plan.streams for topic in s.topics if topic.partials is not None)
