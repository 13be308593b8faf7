"""Streams, and queries with resolved names: their sources, conjuncts, columns and aggregates.

Every `Column` in the query of an alert or a derived stream has the alias of a source of this query and the
name of a column of that source's *base* stream, because derived streams and functions are inlined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import WINDOW_COLUMNS, ColumnDef, Session, Window
from tamis.declarations.streams import StreamDef
from tamis.errors import Position
from tamis.expressions.nodes import Call, Column, Expr


@dataclass(frozen=True)
class RowStream(StreamDef):
    """The rows of a query, aggregates of windows or a join, as the tuples of a stream that another query
    reads (`query.selects.aggregated_streams`). No catalogue has it.
    """

    query: Query = field(kw_only=True)


@dataclass(frozen=True)
class Source:
    """One occurrence of a stream, or of a table, in FROM. `via` has the names of the derived streams
    between it and the base `stream`. With a `window` it has a row for each pair of a tuple and a window that
    contains it, and the additional columns `window_start` and `window_end`. With a `session` it has a row for
    each tuple, and these columns of its session. `aggregated` is the stream itself if its tuples are rows of
    another query.
    """

    alias: str
    stream: str
    via: tuple[str, ...] = ()
    window: Window | None = None
    session: Session | None = None
    aggregated: RowStream | None = None

    @property
    def windowed(self) -> bool:
        """True if it has the columns of windows."""
        return self.window is not None or self.session is not None


def same_window(expr: Expr, windowed: frozenset[str]) -> frozenset[str] | None:
    """The two sources whose windows `expr` equates, None for another expression; `windowed` are the aliases
    with windows.
    """
    if isinstance(expr, Call) and expr.op == "=":
        left, right = expr.args
        if isinstance(left, Column) and isinstance(right, Column) and left.name == right.name:
            pair = frozenset((left.alias, right.alias))
            if left.name in WINDOW_COLUMNS and len(pair) == 2 and pair <= windowed:
                return pair
    return None


@dataclass(frozen=True)
class Conjunct:
    """One conjunct of WHERE or ON, or of the WHERE of an inlined derived stream."""

    expr: Expr
    text: str
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Output:
    """One column of SELECT."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Grouping:
    """GROUP BY, HAVING and the aggregates of a query. SELECT and HAVING are over the columns `by` and, for
    the k-th aggregate, `Grouping.value(k)`.

    Expressions in GROUP BY, and expressions that are aggregated, are `computed` columns of a source: its
    alias, and the column (`tamis.query.computed_columns`). An expression over several sources is a column of
    a stream with windows.
    """

    by: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None = None
    computed: tuple[tuple[str, ColumnDef], ...] = ()

    def value(self, number: int) -> Column:
        """The column that stands for the value of an aggregate."""
        return Column("", str(number), self.aggregates[number].type)


@dataclass(frozen=True)
class AsOfJoin:
    """ASOF JOIN: a tuple of the first source joins the last tuple of `alias` before it.

    Candidates are the tuples of `alias` that pass `filters` and agree in all `keys`: pairs of a column of an
    earlier source and a column of `alias`. They lie at least `least` microseconds (0 or more) before the
    tuple. The candidate with the greatest event time is chosen. If it lies more than `most` microseconds
    before the tuple, or if there is none, the columns of `alias` are NULL (`outer`), or there is no row.

    Several candidates of the greatest event time are compared column by column, in the order of the stream,
    over the columns that the query reads; NULL comes first. The greatest is chosen.
    """

    alias: str
    keys: tuple[tuple[Column, Column], ...]
    least: int
    most: int | None = None
    outer: bool = False
    filters: tuple[Conjunct, ...] = ()


@dataclass(frozen=True)
class Absence:
    """NOT EXISTS: the sources of its subquery, and the conjuncts of its WHERE.

    A combination of the other sources is a row only if no tuples of these sources meet the conjuncts with it.
    """

    aliases: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class Query:
    """A conjunctive query over sources. The parser refuses what Tamis doesn't support.

    A query with a `session` has a single source, and a grouping that contains the key of the session. Its
    conjuncts decide which tuples sessions consist of. Of the sources of any other query, either none has a
    window, or all have the same window, and conjuncts equate the `window_start` or `window_end` of all of
    them. No other conjunct has these columns. Under a grouping, tables may stand beside the sources with
    windows.

    There are three kinds of queries. In a join by time all streams have event time. In a `timeless` query no
    stream has. A query `in_time` is evaluated in application time: it may mix both kinds of streams and join
    tables, and has neither windows nor a grouping.

    Only a timeless query or one in time may be `distinct` (each row once, when it first holds) or a union.
    A union has `members`, all of their sources, and no conjuncts; its columns have the names of the first
    member. A timeless query with a `grouping` has a row for each change of a group's row. A grouping over
    the windows of one stream, which may be joined with tables, has a row for each window and group.

    A query that reads rows of aggregates is `nested`. Its sources are then the raw streams and tables of all
    of its queries, without windows, its SELECT is that of the last query, and it has no conjuncts.

    A query with `asof` has one such join for each source but the first, in their order. All of its streams
    have event time. It has no windows, grouping or members, and isn't distinct. Its conjuncts apply to the
    joined tuples.

    Only a join by time without windows has sources under EXISTS or NOT EXISTS, which aren't part of its rows.
    `exists`: the aliases of those under EXISTS. Their conjuncts are among those of the query. Those under NOT
    EXISTS are in `absences`, with conjuncts of their own.

    A join by time whose rows another query reads in windows is `timed_by` one of its sources: the event time
    of a row is that of this source's tuple.
    """

    sources: tuple[Source, ...]
    conjuncts: tuple[Conjunct, ...]
    select: tuple[Output, ...]
    distinct: bool = False
    timeless: bool = False
    grouping: Grouping | None = None
    members: tuple[Query, ...] = ()
    in_time: bool = False
    watched: tuple[StreamDef, ...] = ()  # the watched streams among its sources' streams
    asof: tuple[AsOfJoin, ...] = ()
    nested: NestedQuery | None = None
    exists: tuple[str, ...] = ()
    absences: tuple[Absence, ...] = ()
    timed_by: str | None = None

    @property
    def last(self) -> Query:
        """The query that gives the rows: itself, or the last one of nested queries."""
        return self if self.nested is None else self.nested.query

    @property
    def queries(self) -> tuple[Query, ...]:
        """The query, or all nested queries in the order in which their rows pass through them. A union is one
        query.
        """
        if self.nested is None:
            return (self,)
        inner = (one for stream in self.nested.streams for one in stream.query.queries)
        return (*inner, self.nested.query)

    @property
    def row_sources(self) -> tuple[Source, ...]:
        """The sources that rows consist of: all but those under EXISTS and NOT EXISTS."""
        if not self.exists and not self.absences:
            return self.sources
        hidden = {*self.exists, *(alias for absence in self.absences for alias in absence.aliases)}
        return tuple(source for source in self.sources if source.alias not in hidden)

    @property
    def all_conjuncts(self) -> tuple[Conjunct, ...]:
        """The conjuncts of the query and of its absences."""
        return (*self.conjuncts, *(one for absence in self.absences for one in absence.conjuncts))

    @property
    def window(self) -> Window | None:
        """The window that all tuples of a combination share; None if the query has none."""
        return next((source.window for source in self.sources if source.window is not None), None)

    @property
    def windowed(self) -> tuple[Source, ...]:
        """The sources that have windows or sessions. All others are tables."""
        return tuple(source for source in self.sources if source.windowed)

    @property
    def session(self) -> Session | None:
        """The sessions whose tuples are aggregated; None if the query has none."""
        return next((source.session for source in self.sources if source.session is not None), None)


@dataclass(frozen=True)
class NestedQuery:
    """A query over rows of other queries: these as streams, and the query that reads them."""

    streams: tuple[RowStream, ...]
    query: Query
