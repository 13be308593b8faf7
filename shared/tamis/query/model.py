"""The typed query model: what SQL means once it is parsed and resolved, with positions for messages.

`tamis.query.parse` makes it; planning, EXPLAIN, `tamis run` and the DuckDB reference read it. Names are
resolved: every `Column` in an `AlertDef` or `DerivedDef` names a source alias of its query and a column of
that alias's *base* stream (derived filters are inlined, functions too).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.errors import Position
from tamis.expressions.nodes import Call, Column, Expr, Type
from tamis.query.reach import ANYWHERE, Reach


@dataclass(frozen=True)
class ColumnDef:
    """One column of a raw stream; `check` is its declared domain, an expression over `Column("", name)`."""

    name: str
    type: Type
    key: bool = False
    not_null: bool = False
    check: Expr | None = None


@dataclass(frozen=True)
class Rate:
    """At most `count` tuples of one key in any span of `per` microseconds."""

    count: int
    per: int


@dataclass(frozen=True)
class StreamDef:
    """CREATE STREAM s (…): a raw stream. Durations are microseconds; `time` is None for a stream without
    watermark.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    time: str | None
    delay: int  # WATERMARK FOR time AS time - delay
    keys: int | None = None
    rate: Rate | None = None
    max_stall: int = 3_600_000_000
    idle_timeout: int | None = None
    max_ahead: int | None = None
    finite: bool = False
    until: int | None = None
    functions: tuple[str, ...] = ()  # called by its text, here and below: they can't be dropped before it
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)

    def column(self, name: str) -> ColumnDef | None:
        """The column of that name, if there is one."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the KEY columns."""
        return tuple(c.name for c in self.columns if c.key)


@dataclass(frozen=True)
class TableDef:
    """CREATE TABLE r (…) WITH (path = '…'): a static relation, whose rows are read from a CSV or Parquet
    file.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    path: str
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class FunctionDef:
    """CREATE FUNCTION: kept for SHOW and DROP; calls are already inlined wherever they stand."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    returns: Type
    body: Expr  # over Column("", parameter)
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)


WINDOW_START, WINDOW_END = "window_start", "window_end"
WINDOW_COLUMNS = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True)
class Window:
    """HOP or TUMBLE over event time, in microseconds: [k * slide, k * slide + size) for every whole number
    k, counted from 1970 in UTC. The slide divides the size, and is the size for TUMBLE.
    """

    slide: int
    size: int


@dataclass(frozen=True)
class Source:
    """One occurrence of a stream, or of a table, in FROM. `via` names the derived streams that were inlined
    on the way to the base `stream`. With a `window` it has a row for every tuple and window that holds it,
    and the columns `window_start` and `window_end` besides the stream's.
    """

    alias: str
    stream: str
    via: tuple[str, ...] = ()
    window: Window | None = None


def same_window(expr: Expr, windowed: frozenset[str]) -> frozenset[str] | None:
    """The two sources whose windows `expr` says to be the same; `windowed` are the aliases with windows."""
    if isinstance(expr, Call) and expr.op == "=":
        left, right = expr.args
        if isinstance(left, Column) and isinstance(right, Column) and left.name == right.name:
            pair = frozenset((left.alias, right.alias))
            if left.name in WINDOW_COLUMNS and len(pair) == 2 and pair <= windowed:
                return pair
    return None


@dataclass(frozen=True)
class Conjunct:
    """One conjunct of WHERE and ON, or of an inlined derived stream's WHERE."""

    expr: Expr
    text: str
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Output:
    """One column of SELECT."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Aggregate:
    """`function` (count, sum, avg, min, max, median) of a column; of no column for COUNT(*). `distinct`: each
    value once.
    """

    function: str
    column: Column | None
    distinct: bool
    type: Type


@dataclass(frozen=True)
class Grouping:
    """GROUP BY, HAVING and the aggregates of a query. SELECT and HAVING are over the columns `by` and, for
    the k-th aggregate, `Grouping.value(k)`.
    """

    by: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None = None

    def value(self, number: int) -> Column:
        """The column that stands for an aggregate's value."""
        return Column("", str(number), self.aggregates[number].type)


@dataclass(frozen=True)
class Query:
    """A conjunctive query over sources. What Tamis can't execute yet is refused at parsing, by name and
    position.

    Either no source has a window, or all have the same one and conjuncts equate `window_start` (or
    `window_end`) of all of them; no other conjunct has these columns.

    Either all its streams have event time or, where it is `timeless`, none; or it is evaluated `in_time`:
    then it may mix these and join tables, and has neither windows nor a grouping. Only a timeless query or
    one in time may be `distinct`, each row once, when it first holds, or be the union of `members`, whose
    sources it then has all, and conjuncts none; its names are the first one's. A timeless query with a
    `grouping` has a row per change of a group's; one over the windows of one stream, grouped by them, a row
    per window and group.
    """

    sources: tuple[Source, ...]
    conjuncts: tuple[Conjunct, ...]
    select: tuple[Output, ...]
    distinct: bool = False
    timeless: bool = False
    grouping: Grouping | None = None
    members: tuple[Query, ...] = ()
    in_time: bool = False

    @property
    def window(self) -> Window | None:
        """The window that all tuples of a combination share, if the query has one."""
        return self.sources[0].window


@dataclass(frozen=True)
class AlertOptions:
    """WITH (…) of an alert. Durations are microseconds."""

    max_delay: int | None = None
    gap: int | None = None
    for_: int | None = None
    severity: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    certify: str | None = None
    allow_unbounded: bool = False


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
    """CREATE STREAM s AS SELECT … FROM … WHERE …: a filter and projection of one stream as a stream of its
    own; or a join, which is inlined where it is read and nothing else.
    """

    name: str
    query: Query
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)

    @property
    def joins(self) -> bool:
        """Is it a join?"""
        return len(self.query.sources) > 1


@dataclass(frozen=True)
class Drop:
    """DROP ALERT, STREAM or FUNCTION."""

    kind: str  # "alert", "stream", "table", "function"
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
    """SHOW ALERTS and SHOW STREAMS."""

    kind: str  # "alerts", "streams"
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Explain:
    """EXPLAIN q, or EXPLAIN SELECT … as an alert that is called by its place (`line 3`)."""

    target: str | AlertDef
    position: Position = field(default=Position(1, 1), compare=False)


Statement = StreamDef | TableDef | FunctionDef | AlertDef | DerivedDef | Drop | SetPaused | Show | Explain


@dataclass
class Catalog:
    """What is defined so far, by name. `parse` resolves against it; `apply` is the only way in which it
    changes.
    """

    streams: dict[str, StreamDef] = field(default_factory=dict)
    derived: dict[str, DerivedDef] = field(default_factory=dict)
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    alerts: dict[str, AlertDef] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    tables: dict[str, TableDef] = field(default_factory=dict)
    reach: Reach = ANYWHERE  # of the paths of tables

    def copy(self) -> Catalog:
        """An independent copy; definitions themselves are immutable."""
        return Catalog(
            dict(self.streams),
            dict(self.derived),
            dict(self.functions),
            dict(self.alerts),
            set(self.paused),
            dict(self.tables),
            self.reach,
        )
