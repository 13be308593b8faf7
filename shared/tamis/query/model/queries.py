"""Queries with resolved names, one class a kind, and the sources that they read.

`Query` is one of these kinds, each with only the parts that it has. The parser refuses what Tamis doesn't
support.

| kind | rows |
|---|---|
| `JoinByTime` | each combination of tuples with event time that meets the conditions |
| `LatestValueJoin` | each tuple with the latest tuples of other streams before it (ASOF JOIN) |
| `WindowGroupBy` | each group of a window, when the window has ended |
| `SessionGroupBy` | each group of a session, when the session has ended |
| `TimelessSelect` | each combination of tuples without event time, when it first holds |
| `TimelessGroupBy` | each change of a group's row, whenever the tuples come |
| `ApplicationTimeSelect` | each combination of any tuples and rows of tables, in order of event time |
| `TimelessUnion`, `ApplicationTimeUnion` | the rows of several such SELECTs |
| `NestedQuery` | the rows of a query over rows of other queries |

To tell them apart, write a `match` that ends in `assert_never`, so that mypy proves it complete. The
functions at the end read what several kinds have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.declarations.definitions import Session, Window
from tamis.declarations.streams import StreamDef
from tamis.query.model.clauses import Absence, AsOfJoin, Conjunct, Grouping, Output


@dataclass(frozen=True)
class RowStream(StreamDef):
    """The rows of a query, aggregates of windows or a join, as the tuples of a stream that another query
    reads (`query.selects.aggregated_streams`). No catalogue has it.
    """

    query: InnerQuery = field(kw_only=True)


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


@dataclass(frozen=True)
class BaseQuery:
    """The parts that queries of all kinds have. `watched`: the watched streams among its sources' streams.

    Either no source has a window, or all have the same one, and conjuncts equate the `window_start` or
    `window_end` of all of them. No other conjunct has these columns. Under a grouping, tables may stand
    beside the sources with windows.
    """

    sources: tuple[Source, ...]
    conjuncts: tuple[Conjunct, ...]
    select: tuple[Output, ...]
    watched: tuple[StreamDef, ...] = field(default=(), kw_only=True)

    @property
    def row_sources(self) -> tuple[Source, ...]:
        """The sources that rows consist of: all but those under EXISTS and NOT EXISTS."""
        return self.sources

    @property
    def all_conjuncts(self) -> tuple[Conjunct, ...]:
        """The conjuncts of the query and of its absences."""
        return self.conjuncts

    @property
    def windowed(self) -> tuple[Source, ...]:
        """The sources that have windows or sessions. All others are tables."""
        return tuple(source for source in self.sources if source.windowed)

    @property
    def window(self) -> Window | None:
        """The window that all tuples of a combination share; None if the query has none."""
        return next((source.window for source in self.sources if source.window is not None), None)


@dataclass(frozen=True, kw_only=True)
class JoinByTime(BaseQuery):
    """A join of streams with event time, or a filter of one such stream.

    Without windows it may have sources under EXISTS or NOT EXISTS, which aren't part of its rows. `exists`:
    the aliases of those under EXISTS. Their conjuncts are among those of the query. Those under NOT EXISTS
    are in `absences`, with conjuncts of their own.

    A join whose rows another query reads in windows is `timed_by` one of its sources: the event time of a row
    is that of this source's tuple.
    """

    exists: tuple[str, ...] = ()
    absences: tuple[Absence, ...] = ()
    timed_by: str | None = None

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


@dataclass(frozen=True, kw_only=True)
class LatestValueJoin(BaseQuery):
    """A query with one ASOF JOIN in `joins` for each source but the first, in their order.

    All of its streams have event time, and none has windows. Its conjuncts apply to the joined tuples.
    """

    joins: tuple[AsOfJoin, ...]


@dataclass(frozen=True, kw_only=True)
class BaseGroupBy(BaseQuery):
    """The parts of the kinds with aggregates: their `grouping`."""

    grouping: Grouping


@dataclass(frozen=True, kw_only=True)
class WindowGroupBy(BaseGroupBy):
    """Aggregates over the windows of one stream, which may be joined with tables."""

    @property
    def window(self) -> Window:
        """The window whose tuples are aggregated."""
        return next(source.window for source in self.sources if source.window is not None)


@dataclass(frozen=True, kw_only=True)
class SessionGroupBy(BaseGroupBy):
    """Aggregates over the sessions of its only source. The grouping contains the key of the sessions, and the
    conjuncts decide which tuples sessions consist of.
    """

    @property
    def session(self) -> Session:
        """The sessions whose tuples are aggregated."""
        return next(source.session for source in self.sources if source.session is not None)


@dataclass(frozen=True, kw_only=True)
class TimelessSelect(BaseQuery):
    """Selection, projection and join of streams that all have no event time. If it is `distinct`, it has each
    row once.
    """

    distinct: bool = False


@dataclass(frozen=True, kw_only=True)
class TimelessGroupBy(BaseGroupBy):
    """Aggregates over streams that all have no event time, or over one stream whose event time counts as an
    ordinary column: each tuple counts when it comes.
    """


@dataclass(frozen=True, kw_only=True)
class ApplicationTimeSelect(BaseQuery):
    """Selection, projection and join in application time: of streams with and without event time, tables, and
    rows of aggregates. If it is `distinct`, it has each row once, when it first holds.
    """

    distinct: bool = False


@dataclass(frozen=True, kw_only=True)
class TimelessUnion(BaseQuery):
    """A union of SELECTs over streams that all have no event time. It has all of their sources and no
    conjuncts, and its columns have the names of the first member.
    """

    members: tuple[TimelessSelect, ...]
    distinct: bool


@dataclass(frozen=True, kw_only=True)
class ApplicationTimeUnion(BaseQuery):
    """A union of SELECTs that are evaluated in application time, since some stream has event time. It has all
    of their sources and no conjuncts, and its columns have the names of the first member.
    """

    members: tuple[ApplicationTimeSelect, ...]
    distinct: bool


@dataclass(frozen=True, kw_only=True)
class NestedQuery(BaseQuery):
    """A `query` over the rows of other queries, which it reads as `streams`.

    Its sources are the raw streams and tables of all of its queries, without windows, its SELECT is that of
    `query`, and it has no conjuncts.
    """

    streams: tuple[RowStream, ...]
    query: OuterQuery


TimelessQuery = TimelessSelect | TimelessGroupBy | TimelessUnion
"""The kinds without event time."""

InApplicationTime = ApplicationTimeSelect | ApplicationTimeUnion
"""The kinds that are evaluated in application time, whatever their bounds on times are."""

GroupByQuery = WindowGroupBy | SessionGroupBy | TimelessGroupBy
"""The kinds with aggregates."""

UnionQuery = TimelessUnion | ApplicationTimeUnion

DistinctQuery = TimelessSelect | ApplicationTimeSelect | UnionQuery
"""The kinds that may be `distinct`."""

InnerQuery = JoinByTime | WindowGroupBy | NestedQuery
"""The kinds whose rows other queries may read: joins `timed_by` a source, and aggregates of windows."""

OuterQuery = ApplicationTimeSelect | WindowGroupBy | SessionGroupBy
"""The kinds that may read rows of other queries."""

SelectQuery = (
    JoinByTime
    | LatestValueJoin
    | WindowGroupBy
    | SessionGroupBy
    | TimelessSelect
    | TimelessGroupBy
    | ApplicationTimeSelect
    | NestedQuery
)
"""The kinds of a single SELECT."""

Query = SelectQuery | UnionQuery


def last_query(query: Query) -> Query:
    """The query that gives the rows: the query itself, or the last one of nested queries."""
    return query.query if isinstance(query, NestedQuery) else query


def all_queries(query: Query) -> tuple[Query, ...]:
    """The query, or all nested queries in the order in which their rows pass through them. A union is one
    query.
    """
    if not isinstance(query, NestedQuery):
        return (query,)
    return (*(inner for stream in query.streams for inner in all_queries(stream.query)), query.query)


def selects_of(query: Query) -> tuple[SelectQuery, ...]:
    """The SELECTs of a union; the query alone if it is none."""
    return query.members if isinstance(query, UnionQuery) else (query,)


def grouping_of(query: Query) -> Grouping | None:
    """GROUP BY, HAVING and the aggregates of a query; None if it has no aggregates."""
    return query.grouping if isinstance(query, GroupByQuery) else None


def asof_joins(query: Query) -> tuple[AsOfJoin, ...]:
    """The ASOF JOINs of a query; none if it is of another kind."""
    return query.joins if isinstance(query, LatestValueJoin) else ()


def is_distinct(query: Query) -> bool:
    """True if a query has each row once."""
    return isinstance(query, DistinctQuery) and query.distinct
