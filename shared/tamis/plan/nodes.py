"""Physical plan of a query that keeps synopses: a tree of operators, which joiner and `tamis run` execute.

Each node is data alone: which sources it reads, what it keeps of their tuples, and its expressions. It says
everything that its operator in `tamis.operators` needs; neither SQL nor a proof is left to be worked out. The
registry writes these nodes (`tamis.planning.physical`), and plans carry them as JSON (`tamis.plan.wire`). A
join by key and time is a `tamis.plan.model.Definition`, because the joiner keeps its tuples for all of them.

Columns of expressions have the alias of a source. Durations and times are microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, assert_never

from msgspec import Meta

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import Session, Window
from tamis.expressions.json_form import MAX_TEXT
from tamis.expressions.nodes import Column, Expr, Type
from tamis.plan.conjunction import Conjunction, Extreme

Columns = tuple[tuple[str, Type], ...]  # names and types
Outputs = tuple[tuple[str, Expr], ...]  # the columns of SELECT: names and expressions
Text = Annotated[str, Meta(max_length=MAX_TEXT)]  # a constant of an expression


@dataclass(frozen=True)
class Scan:
    """One occurrence of a stream. `time`: its event time, empty if it has none. `filter`: the conditions on
    its tuples alone. `columns`: those that are kept of a tuple.
    """

    alias: str
    stream: str
    time: str = ""
    filter: tuple[Expr, ...] = ()
    columns: Columns = ()


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; `check` is over Column("", name)."""

    name: str
    type: Type
    not_null: bool = False
    check: Expr | None = None


@dataclass(frozen=True)
class Table:
    """A static relation: the rows of a file. `digest` is that of the rows with which the query was proven
    (`tamis.operators.tables`): with other rows it might keep more, or miss rows.
    """

    name: str
    path: str
    columns: tuple[TableColumn, ...]
    digest: str


@dataclass(frozen=True)
class JoinStep:
    """One source that is joined to those before it: the equal expressions of these and of the source itself,
    and the conditions that can be evaluated afterwards.
    """

    alias: str
    before: tuple[Expr, ...]
    own: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class TableJoin:
    """A table that is joined with tuples; `read`: the names of the columns that are read of its rows."""

    table: Table
    step: JoinStep
    read: tuple[str, ...]


@dataclass(frozen=True)
class Computed:
    """A column that is computed from others before it is grouped or aggregated. `source`: the alias that it
    has, or, without event time, the stream of which it is a further column. Of represented sources it is an
    alias, and the expression may have columns of several of them.
    """

    source: str
    name: str
    expr: Expr


@dataclass(frozen=True)
class Grouping:
    """GROUP BY, aggregates, HAVING and SELECT. The k-th aggregate is `Column("", str(k), type)` in the
    latter two.
    """

    by: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    select: Outputs
    having: Expr | None = None
    computed: tuple[Computed, ...] = ()


@dataclass(frozen=True)
class Windows:
    """Aggregates of the windows of one stream, which may be joined with tables: a row for each window and
    group, when the watermark has passed its end.
    """

    scan: Scan
    window: Window
    grouping: Grouping
    tables: tuple[TableJoin, ...] = ()


@dataclass(frozen=True)
class Sessions:
    """Aggregates of the sessions of one stream: a row for each session, when the watermark has passed it."""

    scan: Scan
    session: Session
    grouping: Grouping


@dataclass(frozen=True)
class LatestJoin:
    """One ASOF JOIN, with the scan `scan`: the last tuple between `least` and `most` before the tuple of the
    first scan, of those that agree in `keys`, pairs of an earlier column and a column of this scan. `outer`:
    without such a tuple the columns are NULL; otherwise there is no row.
    """

    scan: Scan
    keys: tuple[tuple[Column, Column], ...]
    least: int = 0
    most: int | None = None
    outer: bool = False


@dataclass(frozen=True)
class LatestValues:
    """ASOF JOIN: each tuple of `first` with the latest tuples of others. `filter` is over joined tuples."""

    first: Scan
    joins: tuple[LatestJoin, ...]
    filter: tuple[Expr, ...]
    select: Outputs


@dataclass(frozen=True)
class TimeDistance:
    """`later - earlier <= most`, of the event times of two scans."""

    later: str
    earlier: str
    most: Annotated[int, Meta()]


@dataclass(frozen=True)
class TimeJoin:
    """A join by time whose rows another operator reads in order. The event time of a row is that of the scan
    `first`; the others are joined to it by `steps`. With `window` all tuples of a row share one of TUMBLE.
    """

    first: str
    scans: tuple[Scan, ...]
    distances: tuple[TimeDistance, ...]
    steps: tuple[JoinStep, ...]
    select: Outputs
    window: Window | None = None


@dataclass(frozen=True)
class Alternative:
    """One conjunction of differences between tuples. `conditions`: for each occurrence, the expressions over
    its source, each with True if it must be true, and False if it must not be true. `stands`: pairs of a
    source that isn't joined, because the tuple of the other one takes its place. `extreme`: the node whose
    greatest or least values decide which tuples are kept.
    """

    conjunction: Conjunction
    conditions: tuple[tuple[tuple[Expr, bool], ...], ...]
    stands: tuple[tuple[str, str], ...] = ()
    extreme: tuple[int, Extreme] | None = None

    @property
    def keeps(self) -> Literal["nothing", "representatives", "counts"]:
        """Of each group of limited values the tuples that stand for all, which is enough for DISTINCT, or how
        often these values came.
        """
        if len(self.conjunction.streams) == 1:
            return "nothing"
        return "representatives" if self.conjunction.distinct else "counts"


@dataclass(frozen=True)
class StreamColumns:
    """The columns that are kept of a stream's tuples."""

    stream: str
    columns: Columns


@dataclass(frozen=True)
class Matching:
    """The combinations of tuples under SELECT: those of all alternatives. `joins`: conditions over several
    sources that are no differences. `codes`: the constant texts, in the order of their numbers in
    conjunctions.
    """

    alternatives: tuple[Alternative, ...]
    joins: tuple[Expr, ...] = ()
    codes: tuple[Text, ...] = ()

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the constant texts in conjunctions."""
        return {text: number for number, text in enumerate(self.codes)}


@dataclass(frozen=True)
class Rows:
    """The rows of SELECT without aggregates, over streams without event time. `distinct`: each is given once,
    and remembered.
    """

    streams: tuple[str, ...]
    kept: tuple[StreamColumns, ...]
    matching: Matching
    select: Outputs
    distinct: bool = False


@dataclass(frozen=True)
class Union:
    """The rows of several SELECTs without event time, under the names of the first one."""

    members: tuple[Rows, ...]
    distinct: bool = False


@dataclass(frozen=True)
class Cover:
    """Tuples of one source that stand for all of its tuples in a case of the condition.

    Of the tuples that meet `conditions` and have equal values of `equal`, the one with the greatest (`least`:
    the least) value is kept; of equal ones, and without `value`, the first. Conditions `a != b` with other
    sources have their own side in `unequal`: then as many tuples are kept as are needed for any other sides.
    With `most` so many tuples with the greatest values are kept, which is enough to count up to this number;
    0: all tuples.
    """

    equal: tuple[Expr, ...]
    value: Expr | None = None
    least: bool = False
    unequal: tuple[Expr, ...] = ()
    conditions: tuple[Expr, ...] = ()
    most: int = 1


@dataclass(frozen=True)
class RepresentedSource:
    """A source whose tuples are represented, and the steps by which a tuple of it is joined with the kept
    tuples of all other sources.
    """

    alias: str
    stream: str
    columns: Columns
    covers: tuple[Cover, ...]
    steps: tuple[JoinStep, ...]
    filter: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Representatives:
    """The rows of SELECT DISTINCT over several sources without event time, of which only tuples are kept that
    stand for all others (docs/bounded.md, "Representatives").
    """

    sources: tuple[RepresentedSource, ...]
    select: Outputs


@dataclass(frozen=True)
class GroupsPart:
    """The part of a query with aggregates that gives some of them. `counted`: with duplicates, for all
    aggregates. `extreme`: the number of the MIN or MAX that it gives; None for the groups themselves.
    """

    matching: Matching
    counted: bool = False
    extreme: int | None = None


@dataclass(frozen=True)
class Groups:
    """Groups that don't read event time: after each tuple a row for every group whose row changed.
    `represented`: in place of parts, the sources of which only tuples are kept that stand for all others.
    """

    streams: tuple[str, ...]
    kept: tuple[StreamColumns, ...]
    parts: tuple[GroupsPart, ...]
    grouping: Grouping
    represented: tuple[RepresentedSource, ...] = ()


@dataclass(frozen=True)
class TimedMatching:
    """One SELECT in application time. `sources`: the stream or table of each alias."""

    sources: tuple[tuple[str, str], ...]
    kept: tuple[StreamColumns, ...]
    matching: Matching
    select: Outputs
    distinct: bool = False


@dataclass(frozen=True)
class ApplicationTime:
    """Joins in which tuples are taken in order of event time, of streams that may have none, and of tables.
    `distinct`: each row is given once, whichever member gives it.
    """

    streams: tuple[tuple[str, str], ...]  # names, and event times: empty if a stream has none
    members: tuple[TimedMatching, ...]
    tables: tuple[Table, ...] = ()
    distinct: bool = False


@dataclass(frozen=True)
class InnerRows:
    """The rows of a query as the tuples of the stream `stream` with these columns, besides its event time."""

    stream: str
    time: str
    columns: Columns
    node: Node


@dataclass(frozen=True)
class Nested:
    """A query over the rows of others."""

    inner: tuple[InnerRows, ...]
    outer: Node


Node = (
    Windows
    | Sessions
    | LatestValues
    | TimeJoin
    | Rows
    | Union
    | Representatives
    | Groups
    | ApplicationTime
    | Nested
)


def streams_of(node: Node) -> tuple[str, ...]:
    """The raw streams that a node and those below it read, in the order of FROM."""
    match node:
        case Windows() | Sessions():
            names = [node.scan.stream]
        case LatestValues():
            names = [node.first.stream, *(join.scan.stream for join in node.joins)]
        case TimeJoin():
            names = [scan.stream for scan in node.scans]
        case Rows() | Groups():
            names = list(node.streams)
        case Union():
            names = [name for member in node.members for name in member.streams]
        case Representatives():
            names = [source.stream for source in node.sources]
        case ApplicationTime():
            names = [name for name, _ in node.streams]
        case Nested():
            made = {one.stream for one in node.inner}
            names = [name for one in node.inner for name in streams_of(one.node)]
            names += [name for name in streams_of(node.outer) if name not in made]
        case _:
            assert_never(node)
    return tuple(dict.fromkeys(names))


def select_of(node: Node) -> Outputs:
    """The columns of a node's rows."""
    match node:
        case Windows() | Sessions() | Groups():
            return node.grouping.select
        case LatestValues() | TimeJoin() | Rows() | Representatives():
            return node.select
        case Union() | ApplicationTime():
            return node.members[0].select
        case Nested():
            return select_of(node.outer)
        case _:
            assert_never(node)


def gives_rows_once(node: Node) -> bool:
    """True if a node never gives a row a second time."""
    some = isinstance(node, Rows | Union | ApplicationTime) and node.distinct
    return some or isinstance(node, Representatives)
