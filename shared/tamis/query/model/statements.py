"""Statements: alerts, derived streams, and what changes or shows definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tamis.declarations.backfill import From
from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.errors import Position
from tamis.query.model.queries import NestedQuery, Query, WindowGroupBy, last_query


@dataclass(frozen=True)
class AlertOptions:
    """WITH (…) of an alert. Durations are in microseconds."""

    max_delay: int | None = None
    gap: int | None = None
    for_: int | None = None
    severity: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    certify: str | None = None
    allow_unbounded: bool = False
    read_derived: bool = True
    # 'raw': edges publish the readings of an aggregate, and no partial aggregates of them.
    edge: Literal["auto", "raw"] = "auto"
    # One alarm of each key in any span of this length is enough, microseconds.
    within: int | None = None
    # Readings from before the alert was created count, too; see `tamis.declarations.backfill`.
    from_: From | None = None


@dataclass(frozen=True)
class AlertDef:
    """CREATE [OR REPLACE] ALERT."""

    name: str
    query: Query
    options: AlertOptions = AlertOptions()
    replace: bool = False
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class DerivedDef:
    """CREATE STREAM s AS SELECT … FROM … WHERE …: a filter and projection of one stream, which is a stream
    of its own; or a join or aggregates of windows, which only exist in the queries that read them.
    """

    name: str
    query: Query
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)

    @property
    def inlined(self) -> bool:
        """True for a join and for aggregates: it has no topic, and is put in where it is read."""
        return len(self.query.sources) > 1 or self.aggregates or isinstance(self.query, NestedQuery)

    @property
    def aggregates(self) -> bool:
        """True if its tuples are rows of aggregates of windows."""
        return isinstance(last_query(self.query), WindowGroupBy)


@dataclass(frozen=True)
class Redefine:
    """ALTER STREAM, or CREATE OR REPLACE of a stream or function that exists.

    `made` is the resulting definition, and `readers` are all definitions that read it, directly or not,
    resolved again with it and in the order in which they are applied. A reader that means the same as before
    is the same object as before.
    """

    verb: Literal["alter", "replace"]
    made: StreamDef | FunctionDef
    readers: tuple[StreamDef | TableDef | FunctionDef | DerivedDef | AlertDef, ...] = ()
    position: Position = field(default=Position(1, 1), compare=False)

    @property
    def kind(self) -> Literal["stream", "function"]:
        """The kind of the definition that changes."""
        return "stream" if isinstance(self.made, StreamDef) else "function"

    @property
    def name(self) -> str:
        """The name of the definition that changes."""
        return self.made.name


@dataclass(frozen=True)
class Drop:
    """DROP ALERT, STREAM, TABLE, FUNCTION or PATTERN."""

    kind: str  # "alert", "stream", "table", "function", "pattern"
    name: str
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class SetPaused:
    """PAUSE ALERT and RESUME ALERT."""

    name: str
    paused: bool
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Show:
    """SHOW ALERTS, SHOW STREAMS and SHOW PATTERNS."""

    kind: str  # "alerts", "streams", "patterns"
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Explain:
    """EXPLAIN q, EXPLAIN CREATE ALERT …, or EXPLAIN SELECT … as an alert that is called by its place
    (`line 3`). `creates`: it is EXPLAIN CREATE ALERT.
    """

    target: str | AlertDef
    position: Position = field(default=Position(1, 1), compare=False)
    creates: bool = False


Statement = (
    StreamDef
    | TableDef
    | FunctionDef
    | PatternDef
    | AlertDef
    | DerivedDef
    | Redefine
    | Drop
    | SetPaused
    | Show
    | Explain
)
