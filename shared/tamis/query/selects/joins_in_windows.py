"""Windows of streams of a join, under aggregates: the same as windows of the join.

`FROM TUMBLE(air, ts, …) a JOIN surface s ON …` is read as a subquery with the join in `TUMBLE`, over the
event time of `air`. If all streams have the same windows of TUMBLE, the join has the condition that its
tuples are in one window, and any of the event times gives the window of a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tamis.declarations.definitions import WINDOW_COLUMNS, ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, Type, aliases, columns, substitute
from tamis.expressions.sql_text import identifier
from tamis.query.context import Context
from tamis.query.model import (
    Grouping,
    JoinByTime,
    Output,
    RowStream,
    SelectQuery,
    Source,
    WindowGroupBy,
    same_window,
)
from tamis.query.selects.joined_streams import bounded_times, row_column
from tamis.query.selects.windows import check_windows


def with_joined_streams(
    context: Context, query: SelectQuery, offsets: Sequence[int]
) -> tuple[SelectQuery, Sequence[int]] | None:
    """A query over a join of streams, of which one is in windows, as a query over windows of the join; any
    other query as it is. None if the join has a mistake, which is reported.

    `offsets` has the offset in the text of each source, and is given back for the sources of the result.
    """
    streams = {
        source.alias: found for source in query.sources if (found := _stream_of(context, query, source))
    }
    times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
    if not isinstance(query, WindowGroupBy):
        return query, offsets
    first = query.windowed[0]
    if any(source.aggregated is not None for source in query.sources):
        return (query, offsets) if _alone(context, query, offsets) else None
    if len(streams) < 2 or len(times) < len(streams):
        return query, offsets
    at = next(o for one, o in zip(query.sources, offsets, strict=True) if one.alias in times and one != first)
    windowed = frozenset(source.alias for source in query.windowed)
    own = [
        one
        for one in query.conjuncts
        if aliases(one.expr) <= times.keys()
        and (not _of_windows(one.expr) or same_window(one.expr, windowed) is not None)
    ]
    if len(windowed) > 1:
        if not check_windows(context, query, offsets, ()):
            return None
    elif not bounded_times(context, own, times, at, what="this join"):
        return None
    renaming = _Renaming(first.alias, streams)
    outer = replace(
        query,
        conjuncts=tuple(
            replace(one, expr=renaming.above(one.expr)) for one in query.conjuncts if one not in own
        ),
        select=tuple(Output(output.name, renaming.above(output.expr)) for output in query.select),
        grouping=renaming.grouping(query.grouping),
        watched=(),
    )
    time = Column(first.alias, times[first.alias], Type.TIMESTAMP)
    select = [Output(time.name, time), *(one for one in renaming.outputs if one.name != time.name)]
    join = JoinByTime(
        tuple(
            source if len(windowed) > 1 else replace(source, window=None)
            for source in query.sources
            if source.alias in streams
        ),
        tuple(own),
        tuple(select),
        watched=query.watched,
        timed_by=first.alias,
    )
    made = RowStream(
        f"({first.alias})",
        tuple(row_column(output, streams) for output in select),
        time.name,
        0,
        query=join,
    )
    kept = [
        (replace(source, stream=made.name, via=(), aggregated=made) if source == first else source, offset)
        for source, offset in zip(query.sources, offsets, strict=True)
        if source == first or source.alias not in streams
    ]
    return replace(outer, sources=tuple(source for source, _ in kept)), [offset for _, offset in kept]


def _alone(context: Context, query: WindowGroupBy, offsets: Sequence[int]) -> bool:
    """Report windows of rows of aggregates, or of a join, that are joined with other windows; returns True if
    there are none.
    """
    if len(query.windowed) < 2:
        return True
    rows, at = next(
        (one, at) for one, at in zip(query.sources, offsets, strict=True) if one.aggregated is not None
    )
    assert rows.aggregated is not None
    made = rows.aggregated.query
    if not isinstance(made, WindowGroupBy):
        what = (
            f"under aggregates, the windows of '{rows.alias}', which is a join, can't be joined with others"
        )
        hint = (
            f"join '{rows.alias}' by time first: WITH j AS (SELECT … FROM … JOIN … ON … BETWEEN …) in front,"
            " and read TUMBLE(j, time, INTERVAL '1' MINUTE)"
        )
    else:
        what = (
            f"under aggregates, the windows of '{rows.alias}', whose tuples are rows of aggregates, can't be"
            " joined with others"
        )
        hint = (
            f"join the streams that '{rows.alias}' reads; or join '{rows.alias}' without windows and"
            " aggregates, and bound the times, such as s.ts BETWEEN m.window_end - INTERVAL '1' MINUTE AND"
            " m.window_end"
        )
    context.error(what, at, hint)
    return False


def _stream_of(context: Context, query: SelectQuery, source: Source) -> StreamDef | None:
    """The stream of a source, which may be one of the watched streams of the query; None for a table."""
    watched = next((one for one in query.watched if one.name == source.stream), None)
    return watched or context.stream(source)


def _of_windows(expr: Expr) -> bool:
    return any(one.name in WINDOW_COLUMNS for one in columns(expr))


class _Renaming:
    """Columns of the rows of a join in place of the columns of its streams. Those of the stream `first` keep
    their names; the others are named as in SQL. `outputs`: the columns that are read, each once.
    """

    def __init__(self, first: str, streams: Mapping[str, StreamDef]) -> None:
        self._first, self._streams = first, streams
        self._made: dict[Column, Output] = {}

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(self._made.values())

    def above(self, expr: Expr) -> Expr:
        """An expression over the streams as one over the rows."""
        return substitute(expr, self._row_column)

    def _row_column(self, column: Column) -> Column:
        if column.alias not in self._streams:
            return column
        if column.name in WINDOW_COLUMNS:
            return Column(self._first, column.name, column.type)
        name = self._named(column)
        if self._streams[column.alias].column(column.name) is not None:
            self._made.setdefault(column, Output(name, column))
        return Column(self._first, name, column.type)

    def _named(self, column: Column) -> str:
        if column.alias == self._first:
            return column.name
        name = f"{column.alias}.{identifier(column.name)}"
        while self._streams[self._first].column(name) is not None:
            name = f".{name}"
        return name

    def grouping(self, grouping: Grouping) -> Grouping:
        """A grouping over the streams as one over the rows."""
        return Grouping(
            tuple(dict.fromkeys(map(self._row_column, grouping.by))),
            tuple(
                replace(one, column=self._optional(one.column), order=self._optional(one.order))
                for one in grouping.aggregates
            ),
            None if grouping.having is None else self.above(grouping.having),
            tuple(self._computed(alias, column) for alias, column in grouping.computed),
        )

    def _optional(self, column: Column | None) -> Column | None:
        return None if column is None else self._row_column(column)

    def _computed(self, alias: str, column: ColumnDef) -> tuple[str, ColumnDef]:
        assert column.computed is not None
        if alias not in self._streams:
            return alias, replace(column, computed=self.above(column.computed))
        named = substitute(column.computed, lambda c: Column(c.alias or alias, c.name, c.type))
        made = self.above(named)
        if aliases(made) <= {self._first}:
            made = substitute(made, lambda c: Column("", c.name, c.type))
        name = self._named(Column(alias, column.name, column.type))
        check = column.check
        if check is not None:
            check = substitute(check, lambda c: Column("", name, c.type))
        return self._first, replace(column, name=name, computed=made, check=check)
