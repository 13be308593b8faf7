"""Joins in windows: the rows of a join by time, as the tuples of a stream.

In `TUMBLE(pairs, ts, …)`, `pairs` is a derived stream or a subquery that joins streams. The column `ts` must
be the event time of one of these streams. It is the event time of the rows, so that a row is in the windows
of the tuple of this stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS, ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, columns, conjuncts, substitute
from tamis.query.context import Context
from tamis.query.linear_times import difference_limits
from tamis.query.model import (
    Conjunct,
    JoinByTime,
    OuterQuery,
    Output,
    RowStream,
    Source,
    grouping_of,
)
from tamis.query.selects.scope import FromItem
from tamis.query.syntax.cursor import name_of


def joined_item(context: Context, table: exp.Expr, item: FromItem, time: exp.Expr | None) -> FromItem:
    """An item of FROM that joins streams, as a single stream. If it can't be one, the reason is reported, and
    the item has no columns. `time`: the identifier of the column that windows are over, None if it is
    wrong.
    """
    known = item.columns or {}
    broken = FromItem(item.alias, item.stream, None)
    if time is None or not _streams_with_time(context, table, item):
        return broken
    times = _times(context, item)
    name = name_of(time)
    meant = known.get(name.text)
    if not isinstance(meant, Column) or times.get(meant.alias) != meant.name:
        fitting = [n for n, e in known.items() if isinstance(e, Column) and times.get(e.alias) == e.name]
        hint = f"write {' or '.join(fitting)}" if fitting else "select the event time of one of its streams"
        what = f"'{name.text}' isn't the event time of a stream that '{item.stream}' joins"
        context.error(what, name.offset, hint)
        return broken
    if not bounded_times(
        context, item.conjuncts, times, table, what=f"the join '{item.stream}'", prefix=item.alias
    ):
        return broken
    return _stream(context, item, meant, name.text)


def _streams_with_time(context: Context, table: exp.Expr, item: FromItem) -> bool:
    """Report a join of other sources than streams with event time; True if there is none."""
    for source in item.sources:
        stream = context.stream(source)
        if source.aggregated is not None:
            what = f"windows over a join with rows of aggregates are not supported yet, as in '{item.stream}'"
            hint = "join the streams themselves"
        elif stream is None:
            what = f"windows over a join with a table are not supported, as in '{item.stream}'"
            hint = f"join the table with the windows: FROM TUMBLE({item.stream}, …) JOIN {source.stream} ON …"
        elif stream.time is None:
            what = f"windows need event time, and stream '{stream.name}' has no WATERMARK"
            hint = "add WATERMARK FOR column AS column - INTERVAL '5' SECOND to its CREATE STREAM"
        else:
            continue
        context.error(what, table, hint)
        return False
    return True


def _times(context: Context, item: FromItem) -> dict[str, str]:
    """The columns of the event times of an item's streams, by alias."""
    found = ((source.alias, context.stream(source)) for source in item.sources)
    return {alias: stream.time for alias, stream in found if stream is not None and stream.time is not None}


def bounded_times(
    context: Context,
    own: Iterable[Conjunct],
    times: Mapping[str, str],
    at: exp.Expr | int,
    *,
    what: str,
    prefix: str = "",
) -> bool:
    """Report a join in which the conjuncts don't bound all times against each other; True if they do.

    Messages call the join `what`, and leave `prefix` and a dot out in front of its aliases.
    """
    unbounded = _unbounded(own, times)
    if unbounded is None:
        return True
    begin = len(f"{prefix}.") if prefix else 0
    later, earlier = (f"{alias[begin:]}.{times[alias]}" for alias in unbounded)
    hint = (
        "bound the times of all of its streams on both sides, such as"
        f" {later} BETWEEN {earlier} - INTERVAL '1' MINUTE AND {earlier} + INTERVAL '1' MINUTE"
    )
    context.error(f"{what} has no bound on the time from {earlier} to {later}", at, hint)
    return False


def _unbounded(own: Iterable[Conjunct], times: Mapping[str, str]) -> tuple[str, str] | None:
    """Two sources of which the first may be any time later than the second; None if there are none."""
    follows: dict[str, set[str]] = {alias: {alias} for alias in times}  # by alias, those it is bounded by
    for part in (part for conjunct in own for part in conjuncts(conjunct.expr)):
        found = difference_limits(part, times)
        if found is not None and found.hi is not None:
            follows[found.left].add(found.right)
        if found is not None and found.lo is not None:
            follows[found.right].add(found.left)
    for _ in times:
        for alias, bounding in follows.items():
            follows[alias] = bounding.union(*(follows[one] for one in bounding))
    return next(((i, j) for i, bounding in follows.items() for j in times if j not in bounding), None)


def _stream(context: Context, item: FromItem, time: Column, name: str) -> FromItem:
    """The item whose only source is the stream of its rows, with their event time `time` in column `name`."""
    prefix = len(f"{item.alias}.")

    def own(expr: Expr) -> Expr:
        return substitute(expr, lambda c: Column(c.alias[prefix:], c.name, c.type))

    select = tuple(Output(output, own(expr)) for output, expr in (item.columns or {}).items())
    streams = {source.alias[prefix:]: context.stream(source) for source in item.sources}
    watched = {one.name: one for one in streams.values() if one is not None and one.base is not None}
    query = JoinByTime(
        tuple(replace(source, alias=source.alias[prefix:]) for source in item.sources),
        tuple(replace(conjunct, expr=own(conjunct.expr)) for conjunct in item.conjuncts),
        select,
        watched=tuple(watched.values()),
        timed_by=time.alias[prefix:],
    )
    named = item.stream in context.catalog.derived and item.stream not in context.subqueries
    columns_ = tuple(row_column(output, streams) for output in select)
    # No stream has a name in parentheses, so that a subquery may have the name of a stream.
    stream = RowStream(item.stream if named else f"({item.stream})", columns_, name, 0, query=query)
    shown = {
        output: Column(item.alias, name if expr == time else output, expr.type)
        for output, expr in (item.columns or {}).items()
    }
    source = Source(item.alias, stream.name, aggregated=stream)
    return FromItem(item.alias, item.stream, shown, (source,), inlined=True)


def row_column(output: Output, streams: Mapping[str, StreamDef | None]) -> ColumnDef:
    """A column of the rows. A column of a stream has its domain, and is KEY if it is KEY there."""
    expr = output.expr
    stream = streams.get(expr.alias) if isinstance(expr, Column) else None
    column = stream.column(expr.name) if stream is not None and isinstance(expr, Column) else None
    if column is None:
        return ColumnDef(output.name, expr.type)
    check = column.check
    if check is not None and any(one.name != column.name for one in columns(check)):
        check = None
    if check is not None:
        check = substitute(check, lambda c: Column("", output.name, c.type))
    return ColumnDef(output.name, expr.type, key=column.key, not_null=column.not_null, check=check)


def narrowed(query: OuterQuery) -> OuterQuery:
    """The query with what it says about the rows of a join alone moved into the join: the conditions on them,
    and which columns are read.
    """
    sources = []
    left = list(query.conjuncts)
    for source in query.sources:
        stream = source.aggregated
        join = None if stream is None else stream.query
        if stream is None or not isinstance(join, JoinByTime):
            sources.append(source)
            continue
        own = [one for one in left if _on_rows(one.expr, source.alias)]
        left = [one for one in left if one not in own]
        meaning = {output.name: output.expr for output in join.select}
        moved = tuple(Conjunct(_below(one.expr, meaning), one.text, one.position) for one in own)
        read = {*_read(replace(query, conjuncts=tuple(left)), source.alias), stream.time}
        inner = replace(
            join,
            conjuncts=(*join.conjuncts, *moved),
            select=tuple(output for output in join.select if output.name in read),
        )
        kept = tuple(column for column in stream.columns if column.name in read)
        sources.append(replace(source, aggregated=replace(stream, columns=kept, query=inner)))
    return replace(query, sources=tuple(sources), conjuncts=tuple(left))


def _below(expr: Expr, meaning: Mapping[str, Expr]) -> Expr:
    """An expression over the rows of a join as one over the tuples that it joins."""
    return substitute(expr, lambda column: meaning[column.name])


def _on_rows(expr: Expr, alias: str) -> bool:
    """True for a condition on the rows of a source, without their windows."""
    read = list(columns(expr))
    return bool(read) and all(one.alias == alias and one.name not in WINDOW_COLUMNS for one in read)


def _read(query: OuterQuery, alias: str) -> Iterator[str]:
    """The names of the columns of a source that the query reads."""
    exprs: list[Expr] = [*(one.expr for one in query.conjuncts), *(one.expr for one in query.select)]
    computed: Iterable[tuple[str, ColumnDef]] = ()
    if (grouping := grouping_of(query)) is not None:
        exprs += grouping.by
        exprs += [c for one in grouping.aggregates for c in (one.column, one.order) if c is not None]
        computed = grouping.computed
    yield from (column.name for expr in exprs for column in columns(expr) if column.alias == alias)
    for of, one in computed:
        if one.computed is not None:
            yield from (c.name for c in columns(one.computed) if (c.alias or of) == alias)
