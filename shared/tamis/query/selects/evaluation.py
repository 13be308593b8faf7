"""The kind of a query, which follows from its streams and its clauses."""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from sqlglot import exp

from tamis.query.context import Context
from tamis.query.model import (
    ApplicationTimeSelect,
    BaseQuery,
    Grouping,
    JoinByTime,
    LatestValueJoin,
    SelectQuery,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    WindowGroupBy,
)
from tamis.query.selects.joins.asof import AsOf
from tamis.query.selects.joins.existence import Hidden
from tamis.query.selects.scope import FromScope


class Evaluation(Enum):
    """The kind of evaluation of a query, which follows from its streams."""

    BY_TIME = auto()  # all streams have event time
    TIMELESS = auto()  # no stream has event time, or its aggregates don't read it
    APPLICATION_TIME = auto()  # it joins tables, mixes both kinds of streams, or eliminates duplicates
    WINDOWED = auto()  # some stream has windows
    OF_TABLES = auto()  # it reads no stream: only a subquery may do so, and its rows aren't aggregated


def evaluation_of(
    context: Context, scope: FromScope, node: exp.Select, *, tested: bool, aggregated: bool
) -> Evaluation:
    """The kind of evaluation of the query. A query that reads only tables is reported, unless it is
    a subquery. `tested`: a test of existence reads a stream. `aggregated`: it has groups or aggregates.
    """
    streams = [context.stream(source) for source, _ in scope.sources]
    windowed = any(source.windowed for source, _ in scope.sources)
    if streams and not any(streams):
        if not context.around:
            what = "this query reads only tables, and no stream"
            hint = "join a stream with the table, or read its file directly"
            if tested:
                what = "the rows of this query are those of tables, and no reading makes them"
                hint = "write the stream in FROM, and join the table with it"
            context.error(what, scope.sources[0][1], hint)
        return Evaluation.OF_TABLES
    timed = [stream.time is not None for stream in streams if stream is not None]
    # Rows of aggregates come when their windows end, and are taken in order of event time.
    nested = any(source.aggregated is not None for source, _ in scope.sources)
    mixed = None in streams or len(set(timed)) > 1 or nested
    if windowed:
        return Evaluation.WINDOWED
    if not mixed and (not any(timed) or (aggregated and len(streams) == 1)):
        return Evaluation.TIMELESS
    if mixed or node.args.get("distinct") is not None:
        return Evaluation.APPLICATION_TIME
    return Evaluation.BY_TIME


def query_of(
    evaluation: Evaluation,
    clauses: BaseQuery,
    hidden: Hidden,
    asof: AsOf,
    grouping: Grouping | None,
    *,
    distinct: bool,
) -> SelectQuery:
    """The query of the kind that follows from its evaluation, ASOF JOINs and aggregates. `hidden`: the
    sources of `clauses` under EXISTS and NOT EXISTS.
    """
    parts, watched = (clauses.sources, clauses.conjuncts, clauses.select), clauses.watched
    if asof.joins:
        return LatestValueJoin(*parts, watched=watched, joins=asof.joins)
    match evaluation:
        case Evaluation.TIMELESS if grouping is not None:
            return TimelessGroupBy(*parts, watched=watched, grouping=grouping)
        case Evaluation.TIMELESS:
            return TimelessSelect(*parts, watched=watched, distinct=distinct)
        case Evaluation.APPLICATION_TIME:
            return ApplicationTimeSelect(*parts, watched=watched, distinct=distinct)
        case Evaluation.WINDOWED if grouping is not None:
            kind = WindowGroupBy if clauses.windowed[0].session is None else SessionGroupBy
            return kind(*parts, watched=watched, grouping=grouping)
        case Evaluation.BY_TIME | Evaluation.WINDOWED | Evaluation.OF_TABLES:
            exists, absences = tuple(hidden.exists), tuple(hidden.absences)
            return JoinByTime(*parts, watched=watched, exists=exists, absences=absences)
        case _:
            assert_never(evaluation)
