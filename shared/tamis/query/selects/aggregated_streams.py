"""Derived streams of aggregates in FROM: the rows of a query over windows, as the tuples of a stream.

The event time of a row is the last microsecond of its window, as in Flink. So windows of an hour over windows
of a minute contain the sixty minutes of the hour. `window_end` is the event time and a microsecond; under
this name, or another one that SELECT gives it, it stands for the event time in bounds on times and in TUMBLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_END, ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns
from tamis.query.context import Context
from tamis.query.model import (
    DerivedDef,
    JoinByTime,
    NestedQuery,
    OuterQuery,
    Output,
    Query,
    RowStream,
    SelectQuery,
    SessionGroupBy,
    Source,
    WindowGroupBy,
    last_query,
)
from tamis.query.selects.joined_streams import narrowed
from tamis.query.selects.scope import FromItem, FromScope

_MOMENT = Literal(1, Type.INTERVAL)


def aggregated_item(alias: str, derived: DerivedDef, *, named: bool) -> FromItem:
    """A derived stream of aggregates as an item of FROM. `named`: it has a statement of its own; otherwise it
    is a subquery.
    """
    made_by, query = derived.query, last_query(derived.query)
    assert isinstance(made_by, WindowGroupBy | NestedQuery)
    assert isinstance(query, WindowGroupBy)
    taken = {output.name for output in query.select}
    time = next(name for name in ("window_time", "_window_time", "__window_time") if name not in taken)
    shown: dict[str, Expr] = {}
    made: list[ColumnDef] = []
    for output in query.select:
        expr = _of_event_time(output.expr, query, Column(alias, time, Type.TIMESTAMP))
        if expr is None:
            made.append(_column(output, query))
            expr = Column(alias, output.name, output.expr.type)
        shown[output.name] = expr
    made.append(ColumnDef(time, Type.TIMESTAMP, not_null=True))
    # No stream has a name in parentheses, so that a subquery may have the name of a stream.
    name = derived.name if named else f"({derived.name})"
    stream = RowStream(name, tuple(made), time, 0, query=made_by)
    via = (derived.name,) if named else ()
    source = Source(alias, name, via, aggregated=stream)
    return FromItem(alias, derived.name, shown, (source,), inlined=True)


def _of_event_time(expr: Expr, query: WindowGroupBy, time: Column) -> Expr | None:
    """An expression over the columns of windows as one over the event time of the row; None for any other
    expression.
    """
    window = query.window
    read = list(columns(expr))
    fixed = (WINDOW_END,) if window.cumulative else WINDOW_COLUMNS
    if not read or any(column.name not in fixed for column in read):
        return None
    end = Call("+", (time, _MOMENT), Type.TIMESTAMP)
    start = Call("-", (time, Literal(window.size - 1, Type.INTERVAL)), Type.TIMESTAMP)

    def replaced(part: Expr) -> Expr:
        if isinstance(part, Column):
            return end if part.name == WINDOW_END else start
        if isinstance(part, Call):
            return Call(part.op, tuple(map(replaced, part.args)), part.type)
        return part

    return replaced(expr)


def _column(output: Output, query: WindowGroupBy) -> ColumnDef:
    """A column of the rows. A column of the group is a KEY column."""
    expr = output.expr
    if expr not in query.grouping.by or not isinstance(expr, Column):
        return ColumnDef(output.name, expr.type)
    return ColumnDef(output.name, expr.type, key=True)


def is_end(expr: Expr, stream: RowStream) -> bool:
    """True for the end of the window of a row of aggregates."""
    if not isinstance(expr, Call) or expr.op != "+":
        return False
    time, moment = expr.args
    return isinstance(time, Column) and time.name == stream.time and moment == _MOMENT


def refused_in_asof_join(context: Context, scope: FromScope) -> bool:
    """Report an ASOF JOIN with rows of aggregates; False if there is none."""
    at = next((offset for source, offset in scope.sources if source.aggregated is not None), None)
    if at is None or not scope.asof:
        return False
    hint = "bound the times of both: s.ts BETWEEN m.window_end - INTERVAL '1' MINUTE AND m.window_end"
    context.error("ASOF JOIN with a stream of aggregates is not supported yet", at, hint)
    return True


def nested(context: Context, query: SelectQuery, offsets: Sequence[int]) -> SelectQuery | None:
    """The query, with the queries of the aggregates that it reads if it reads any; None if it can't read
    them, which is reported. `offsets` has the offset in the text of each source.
    """
    found = [one.aggregated for one in query.sources if one.aggregated is not None]
    if not found:
        return query
    streams = {stream.name: stream for stream in found}
    at = next(o for one, o in zip(query.sources, offsets, strict=True) if one.aggregated is not None)
    if any(streams[stream.name] != stream for stream in found):
        context.error("two subqueries with aggregates have the same name", at, "rename one of them")
        return None
    if not isinstance(query, OuterQuery):
        hint = "write aggregates and GROUP BY window_end, or read it without windows"
        context.error("windows over the rows of another query are supported only with aggregates", at, hint)
        return None
    if isinstance(query, SessionGroupBy) and any(not isinstance(one.query, JoinByTime) for one in found):
        hint = "write TUMBLE or HOP, or SESSION over the stream itself"
        context.error("SESSION over rows of aggregates is not supported yet", at, hint)
        return None
    if any(stream.time is None for stream in _timed(context, query)):
        hint = "declare the stream with WATERMARK FOR"
        context.error("aggregates of windows can't be joined with streams without time yet", at, hint)
        return None
    query = narrowed(query)
    streams = {one.aggregated.name: one.aggregated for one in query.sources if one.aggregated is not None}
    watched = {one.name: one for stream in found for one in stream.query.watched}
    return NestedQuery(
        tuple(_sources(query)),
        (),
        query.select,
        watched=(*watched.values(), *(one for one in query.watched if one.name not in watched)),
        streams=tuple(streams.values()),
        query=query,
    )


def _timed(context: Context, query: SelectQuery) -> Iterator[StreamDef]:
    known = (context.catalog.streams.get(source.stream) for source in query.sources)
    yield from (stream for stream in known if stream is not None)


def _sources(query: Query) -> Iterator[Source]:
    """The raw streams and tables that a query reads, also through aggregates, without their windows."""
    for source in query.sources:
        if source.aggregated is None:
            yield replace(source, window=None, session=None)
            continue
        for one in _sources(last_query(source.aggregated.query)):
            yield replace(one, alias=f"{source.alias}.{one.alias}", via=(*source.via, *one.via))
