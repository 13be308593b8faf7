"""The plan as data: what the registry tells every edge and the joiner to do, one version at a time.

A plan is a JSON document in every partition of `tamis.plans`. `protocol.md` of the design gives the rules;
the names are the model's: a *definition* is an alert's query as of the plan version `n` that made it;
`since` lists the shards and the version that lists each. Expressions travel in the JSON form of
`tamis.expressions.json_form`, never as SQL or code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tamis.expressions.nodes import Column, Expr, Type
from tamis.query.model import Window

Sides = Literal["both", "above", "below"]


@dataclass(frozen=True)
class Entry:
    """What a topic keeps for its queries: of the tuples that pass `filter`, those that omission on `value`
    retains.

    `interval` 0 means no omission: every tuple that passes. With `window`, `interval` is its size, and
    omission keeps each window's extremes. All columns carry the empty alias. `serves` is
    the newest definition's version that it serves: an entry that comes to serve a new definition is a new
    entry and starts anew (`restart_served`).
    """

    filter: Expr | None
    omission_key: tuple[str, ...]  # column names, the partition key's first
    value: Expr | None
    interval: int  # L, microseconds
    sides: Sides
    max_delay: int | None  # microseconds; the least of those that it serves
    serves: int
    window: Window | None = None


@dataclass(frozen=True)
class TopicPlan:
    """One shared topic of a stream. `partition_key` is the message key (empty: all in partition 0 under the
    key `[]`).
    """

    name: str
    partition_key: tuple[str, ...]
    columns: tuple[str, ...]  # the projection: what a message carries besides the key and time
    entries: tuple[Entry, ...]
    # Of a derived stream: the columns of its SELECT over Column("", …), which are then all that a message
    # carries. No definition reads such a topic: queries over a derived stream are over its base.
    select: tuple[tuple[str, Expr], ...] = ()
    # A standing query reads it: each tuple says where in its source it stood, and is never shed.
    counted: bool = False


@dataclass(frozen=True)
class StreamColumn:
    """A column as edges check it; `check` is over Column("", name) and admits NULL."""

    name: str
    type: Type
    not_null: bool
    check: Expr | None


@dataclass(frozen=True)
class StreamPlan:
    """A raw stream as an edge serves it. Durations are microseconds."""

    name: str
    columns: tuple[StreamColumn, ...]
    time: str | None
    delay: int
    idle_timeout: int | None
    max_ahead: int | None
    max_stall: int
    topics: tuple[TopicPlan, ...]


# The greatest number that a plan can say, as JSON writes them.
GREATEST = 2**63 - 1


def sayable(bound: int | None) -> int | None:
    """A bound as a plan says it: one beyond what it can say is as good as none."""
    return None if bound is None or bound > GREATEST else bound


@dataclass(frozen=True)
class Kept:
    """How many tuples of a source a definition can ever keep: over all keys at most `tuples` come in any
    `per`, and each is kept while event time moves on by `span`, in microseconds. Of aggregates of windows
    these are synopsis entries: those of a pane, and how long a pane is.
    """

    span: int
    tuples: int
    per: int

    def most(self, longer: int = 0) -> int:
        """How many, where each is kept longer by so many microseconds than the definition alone asks for: a
        closed span is covered by one more spans of `per` than fit into it.
        """
        return self.tuples * ((self.span + longer) // self.per + 1)


@dataclass(frozen=True)
class Input:
    """One source of a definition: where its tuples come from, its filter, its partition key, and its
    omission interval, which with windows is their size.
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


@dataclass(frozen=True)
class TimeBound:
    """lo <= left.time - right.time <= hi, in microseconds, closed; None is unbounded."""

    left: str
    right: str
    lo: int | None
    hi: int | None


@dataclass(frozen=True)
class Definition:
    """An alert's query as the joiner runs it. `version` is the plan version that made it (`n` in the
    model).
    """

    alert: str
    version: int
    inputs: tuple[Input, ...]
    equalities: tuple[tuple[Column, Column], ...]  # further key equalities, beyond the partition key
    bounds: tuple[TimeBound, ...]
    condition: Expr | None  # the remaining conjuncts over several sources, as one AND
    select: tuple[tuple[str, Expr], ...]
    severity: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    gap: int | None = None
    for_: int | None = None
    # Proven number of live tuples, over all keys; None where keys or rate are not declared.
    bound: int | None = None
    # All tuples of a combination lie in the same one, and there is a row for each that holds them all.
    # `window_start` and `window_end` are columns of every input then, for `select` only.
    window: Window | None = None


@dataclass(frozen=True)
class StandingQuery:
    """An alert that keeps synopses and gives rows as tuples come. `version` is the plan version that made it.

    `sql` is self-contained: the streams, tables and functions that the alert needs, and the alert. `inputs`
    has each stream that it reads once, under the empty alias; `filter` lets pass what any of its occurrences
    may need; `time` is empty where the stream has none. `key` names the columns of SELECT by which its rows
    are grouped to episodes. `bound` limits its synopses' entries; None where nothing was proven.
    """

    alert: str
    version: int
    sql: str
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

    version: int
    partitions: int  # of every joined topic: edges and joiner refuse a fleet with a different count
    streams: tuple[StreamPlan, ...] = ()
    definitions: tuple[Definition, ...] = ()
    since: dict[str, int] = field(default_factory=dict)  # shard -> the version that lists it
    shard_streams: dict[str, str] = field(default_factory=dict)  # shard -> its raw stream
    retiring: dict[str, int] = field(default_factory=dict)  # "alert@version" -> the version that replaced it
    standing: tuple[StandingQuery, ...] = ()

    @property
    def queries(self) -> tuple[Definition | StandingQuery, ...]:
        """All that raises alarms."""
        return (*self.definitions, *self.standing)

    def stream(self, name: str) -> StreamPlan | None:
        """The stream of that name, if the plan has it."""
        return next((s for s in self.streams if s.name == name), None)
