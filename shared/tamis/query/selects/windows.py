"""HOP, TUMBLE, CUMULATE and SESSION in FROM, and the checks of queries over windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, Session, Window
from tamis.declarations.streams import StreamDef
from tamis.declarations.units import parse_duration
from tamis.errors import InputError, SqlError
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.query.context import Context
from tamis.query.model import (
    Conjunct,
    Output,
    Query,
    RowStream,
    SessionGroupBy,
    Source,
    WindowGroupBy,
    same_window,
)
from tamis.query.other_systems.table_functions import PARTITION
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.aggregated_streams import is_end
from tamis.query.selects.grouping import group_items
from tamis.query.syntax.cursor import name_of

USAGE = {
    "tumble": "write TUMBLE(stream, time, INTERVAL '1' MINUTE)",
    "hop": "write HOP(stream, time, slide, size), such as"
    " HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)",
    "cumulate": "write CUMULATE(stream, time, step, size), such as"
    " CUMULATE(s, ts, INTERVAL '1' HOUR, INTERVAL '1' DAY)",
    "session": "write SESSION(stream, time, gap), such as SESSION(s, ts, INTERVAL '5' MINUTE)",
}
_LENGTHS = {"tumble": ("size",), "hop": ("slide", "size"), "cumulate": ("step", "size"), "session": ("gap",)}

# A combination raises an alarm in every window that contains it.
MOST_WINDOWS = 1_000
# Of CUMULATE each tuple is kept once, and each step has a row.
MOST_STEPS = 100_000


@dataclass(frozen=True)
class WindowCall:
    """The arguments of HOP, TUMBLE, CUMULATE or SESSION. One with a mistake is None, and the mistake
    reported. `partition`: the columns of PARTITION BY; None without PARTITION BY.
    """

    stream: exp.Expr | None  # an identifier
    time: exp.Expr | None
    window: Window | Session | None
    partition: list[exp.Expr] | None = None


def window_call(context: Context, call: exp.Expr) -> WindowCall:
    """The arguments of a call of HOP, TUMBLE, CUMULATE or SESSION."""
    name = str(call.this).lower()
    usage = USAGE[name]
    given = list(call.expressions)
    partition = None
    if name == "session" and len(given) > 1 and _is_partition(given[1]):
        partition = list(given.pop(1).expressions)
    expected = 2 + len(_LENGTHS[name])
    counted = len(given) in (expected, expected + 1)
    if not counted:
        takes = f"{expected}" if len(given) < expected else f"{expected} or {expected + 1}"
        what = f"{name.upper()} takes {takes} arguments, not {len(given)}"
        several = "; several columns of PARTITION BY stand in parentheses" if partition else ""
        context.error(what, call, usage + several)
    if len(given) < expected:
        return WindowCall(None, None, None, partition)
    stream, time = (_unqualified(argument) for argument in given[:2])
    if stream is None:
        hint = usage
        if isinstance(given[0], exp.Subquery | exp.Select):
            hint = f"give the subquery a name: WITH part AS (SELECT …) SELECT … FROM {name.upper()}(part, …)"
        context.error(f"the first argument of {name.upper()} must be the name of a stream", given[0], hint)
    if time is None:
        context.error(f"the second argument of {name.upper()} must be the name of a column", given[1], usage)
    if not counted:
        return WindowCall(stream, time, None, partition)
    lengths = [_length(context, argument, name) for argument in given[2:expected]]
    last = given[expected] if len(given) > expected else None
    if name == "session":
        greatest = None if last is None else _length(context, last, name, "greatest length")
        if lengths[0] is None or (greatest is None and last is not None):
            return WindowCall(stream, time, None, partition)
        if greatest is not None and last is not None and greatest < lengths[0]:
            context.error("the greatest length of a session must be at least its gap", last, usage)
            return WindowCall(stream, time, None, partition)
        return WindowCall(stream, time, Session(lengths[0], greatest, ()), partition)
    offset = 0 if last is None else _offset(context, last)
    if None in lengths or offset is None:
        return WindowCall(stream, time, None)
    slide, size = lengths[0] or 0, lengths[-1] or 0
    distance = _LENGTHS[name][0]
    if size % slide:
        context.error(f"the size of a window must be a multiple of its {distance}", given[2], usage)
        return WindowCall(stream, time, None)
    cumulative = name == "cumulate"
    most = MOST_STEPS if cumulative else MOST_WINDOWS
    if size // slide > most:
        what = f"each tuple would be in {size // slide} windows; at most {most} are allowed"
        context.error(what, given[2], f"write a longer {distance} or a shorter size")
        return WindowCall(stream, time, None)
    return WindowCall(stream, time, Window(slide, size, offset % (size if cumulative else slide), cumulative))


def _offset(context: Context, argument: exp.Expr) -> int | None:
    """The offset of windows, in microseconds; None if a mistake was reported."""
    negative = isinstance(argument, exp.Neg)
    try:
        found = _duration(argument.this if negative else argument)
    except InputError as error:
        context.error(error.what, argument, "write an interval, such as INTERVAL '-8' HOUR")
        return None
    if found is None:
        hint = "write by how much windows begin later than without it, such as INTERVAL '8' HOUR"
        context.error("the offset of windows must be an INTERVAL", argument, hint)
        return None
    return -found if negative else found


def _unqualified(argument: exp.Expr) -> exp.Expr | None:
    """The identifier of an argument that is an unqualified name; None for any other argument."""
    found = argument.this if isinstance(argument, exp.Column) and not argument.args.get("table") else None
    return found if isinstance(found, exp.Identifier) else None


def _duration(argument: exp.Expr) -> int | None:
    """The microseconds of an INTERVAL; None for another expression. Raises InputError for a mistake in it."""
    unit = argument.args.get("unit") if isinstance(argument, exp.Interval) else None
    value = argument.this if isinstance(argument, exp.Interval) else None
    if not isinstance(value, exp.Literal) or (unit is not None and not isinstance(unit, exp.Var)):
        return None
    return parse_duration(f"{value.this} {unit.name if unit is not None else ''}".strip())


def _is_partition(argument: exp.Expr) -> bool:
    """True for the PARTITION BY of a session, as `table_functions` writes it."""
    return isinstance(argument, exp.Anonymous) and str(argument.this).lower() == PARTITION


def _length(context: Context, argument: exp.Expr, name: str, of: str = "") -> int | None:
    """A length in microseconds, which messages call `of`; None if a mistake was reported."""
    usage = USAGE[name]
    try:
        length = _duration(argument)
    except InputError as error:
        context.error(error.what, argument, usage)
        return None
    if length is None:
        lengths = _LENGTHS[name]
        what = f"the {' and the '.join(lengths)} of a window must be INTERVALs"
        if len(lengths) == 1:
            kind = "session" if name == "session" else "window"
            what = f"the {of or lengths[0]} of a {kind} must be an INTERVAL"
        context.error(what, argument, usage)
        return None
    if length < 1 and name == "session":
        context.error(f"the {of or 'gap'} of a session must be at least a microsecond", argument, usage)
        return None
    if length < 1:
        context.error("a window must be at least a microsecond long", argument, usage)
        return None
    return length


def windowed_source(
    context: Context, call: WindowCall, source: Source, known: Mapping[str, Expr], base: StreamDef
) -> Source | None:
    """`source` with the window of `call`; None if a mistake was reported.

    `known` are the columns of the item of FROM, and `base` is the stream that it reads.
    """
    # The windows of aggregates hide those of the rows.
    clash = [name for name in WINDOW_COLUMNS if name in known or base.column(name) is not None]
    clash = [] if isinstance(base, RowStream) else clash
    stream = call.stream
    if clash and stream is not None:
        hint = f"rename this column of the stream: windows add a column {clash[0]}"
        context.error(f"'{name_of(stream).text}' already has a column '{clash[0]}'", stream, hint)
    if base.time is None and stream is not None and base.name not in context.missing_watermarks:
        context.missing_watermarks.add(base.name)
        what = f"windows need event time, and stream '{base.name}' has no WATERMARK"
        hint = "add WATERMARK FOR column AS column - INTERVAL '5' SECOND to its CREATE STREAM"
        context.error(what, stream, hint)
    if call.time is None or call.window is None or clash or base.time is None:
        return None
    name = name_of(call.time)
    meant = known.get(name.text)
    if meant is None or not _is_event_time(meant, base):
        fitting = [n for n, expr in known.items() if _is_event_time(expr, base)]
        hint = (
            f"write {fitting[0]}" if fitting else "select the event time in the stream that this query reads"
        )
        what = f"windows need event time, and '{name.text}' isn't the event time of '{source.stream}'"
        context.error(what, name.offset, hint)
        return None
    if isinstance(call.window, Window):
        return replace(source, window=call.window)
    by = _session_key(context, call, known, base)
    return None if by is None else replace(source, session=replace(call.window, by=by))


def _session_key(
    context: Context, call: WindowCall, known: Mapping[str, Expr], base: StreamDef
) -> tuple[str, ...] | None:
    """The names of the columns of `base` by which sessions are told apart: those of PARTITION BY, or else its
    KEY columns. None if a mistake was reported.
    """
    if call.partition is None:
        return base.key
    found = []
    for item in call.partition:
        identifier = _unqualified(item)
        name = "" if identifier is None else name_of(identifier).text
        meant = known.get(name)
        if not isinstance(meant, Column):
            what = f"there is no column '{name}' in the stream" if identifier is not None else None
            if meant is not None:
                what = f"'{name}' is an expression of the stream that SESSION reads"
            hint = "write PARTITION BY and columns of the stream, such as SESSION(s PARTITION BY k, ts, …)"
            context.error(what or "PARTITION BY takes names of columns", item, hint)
            return None
        found.append(meant.name)
    return tuple(dict.fromkeys(found))


def _is_event_time(expr: Expr, stream: StreamDef) -> bool:
    """True for the event time, and for the end of the window of a row of aggregates."""
    return (isinstance(stream, RowStream) and is_end(expr, stream)) or (
        isinstance(expr, Column) and expr.name == stream.time
    )


def with_window_columns(known: Mapping[str, Expr], alias: str) -> dict[str, Expr]:
    """The columns of a stream, and those that its windows add."""
    return {**known, **{name: Column(alias, name, Type.TIMESTAMP) for name in WINDOW_COLUMNS}}


def check_windows(context: Context, query: Query, offsets: Sequence[int], own: Sequence[Conjunct]) -> bool:
    """Report windows that can't be joined; returns True if there are none.

    `offsets` has the offset in the text of each source of the query, and `own` the conjuncts of its own ON
    and WHERE.
    """
    windowed = frozenset(source.alias for source in query.windowed)
    if not windowed:
        return True
    before = len(context.errors)
    first = next(source for source in query.sources if source.windowed)
    if any(source.session is not None for source in query.sources):
        return _check_session(context, query, own, offsets)
    grouped = isinstance(query, WindowGroupBy)
    if first.window is not None and first.window.cumulative and not grouped:
        hint = "write aggregates and GROUP BY, or TUMBLE for rows without aggregates"
        context.error("CUMULATE is supported only with aggregates", offsets[0], hint)
        return False
    for source, offset in zip(query.sources, offsets, strict=True):
        if source.window is None and source.stream in context.catalog.tables:
            if not grouped:
                hint = "leave the windows out, or write aggregates and GROUP BY window_end"
                what = (
                    f"windows can be joined with a table only under aggregates, and '{source.alias}' is one"
                )
                context.error(what, offset, hint)
        elif source.window is None:
            hint = f"put it into the same windows as '{first.alias}', or use no windows and bound the times"
            what = f"'{source.alias}' has no windows, but '{first.alias}' has"
            if first.aggregated is not None and grouped:
                what = f"windows of the rows of a subquery can't be joined with tuples of '{source.alias}'"
                hint = (
                    f"join '{source.alias}' with the rows first, WITH j AS (SELECT … FROM {first.alias} JOIN"
                    f" {source.alias} ON …), and write FROM TUMBLE(j, …); or put it into the same windows"
                )
            context.error(what, offset, hint)
        elif source.window != first.window:
            hint = "write the same slide, size and offset for both"
            context.error(
                f"the windows of '{source.alias}' differ from those of '{first.alias}'", offset, hint
            )
    joined = [frozenset((alias,)) for alias in windowed]
    for conjunct in query.conjuncts:
        pair = same_window(conjunct.expr, windowed)
        if pair is not None:
            touched = [group for group in joined if group & pair]
            joined = [group for group in joined if not group & pair] + [frozenset[str]().union(*touched)]
        elif any(c.alias in windowed and c.name in WINDOW_COLUMNS for c in columns(conjunct.expr)):
            hint = (
                "write a.window_start = b.window_start; for other conditions use the columns of the streams"
            )
            what = (
                "window_start and window_end can only be compared by = with the same column of another stream"
            )
            if len(query.sources) == 1:
                what = "a condition on window_start or window_end in WHERE is not supported"
                hint = f"bound the event time of '{first.alias}', or leave the condition out"
            context.errors.append(SqlError(what, conjunct.position, hint))
    if len(context.errors) == before and len(joined) > 1:
        for source, offset in zip(query.sources, offsets, strict=True):
            if source.window is not None and not any(
                {first.alias, source.alias} <= group for group in joined
            ):
                hint = f"add AND {first.alias}.{WINDOW_START} = {source.alias}.{WINDOW_START}"
                what = f"the windows of '{source.alias}' are not joined with those of '{first.alias}'"
                context.error(what, offset, hint)
    return len(context.errors) == before


def _check_session(context: Context, query: Query, own: Sequence[Conjunct], offsets: Sequence[int]) -> bool:
    """Report a query with sessions that can't be evaluated; returns True if it can be."""
    before = len(context.errors)
    session = query.sources[0].session
    if session is None or len(query.sources) > 1:
        hint = "write the join in front, as WITH p AS (SELECT …), and read SESSION(p, time, gap)"
        context.error("sessions can't be joined", offsets[1], hint)
        return False
    if not isinstance(query, SessionGroupBy):
        hint = "write aggregates and GROUP BY, such as SELECT window_start, window_end, count(*) AS n"
        context.error("SESSION is supported only with aggregates", offsets[0], hint)
        return False
    for conjunct in own:
        read = {column.name for column in columns(conjunct.expr)}
        if not read <= set(session.by):
            what = "over SESSION, WHERE can have only columns by which sessions are told apart"
            hint = (
                "if only these readings make sessions, write WITH part AS (SELECT … WHERE …) in front and"
                " SESSION(part, …); if all readings do, write FILTER (WHERE …) after the aggregates"
            )
            context.errors.append(SqlError(what, conjunct.position, hint))
    return len(context.errors) == before


def check_aggregates(
    context: Context,
    resolver: ExpressionResolver,
    node: exp.Select,
    *,
    outputs: Sequence[Output],
    sources: Sequence[tuple[Source, int]],
) -> bool:
    """Report aggregates over windows that can't be computed; returns True if there are none.

    `sources`: those of the query that have windows, each with its offset in the text.
    """
    before = len(context.errors)
    first, session = sources[0][0].window, sources[0][0].session
    cumulative = first is not None and first.cumulative
    if len(sources) > 1 and (first is None or cumulative or first.slide < first.size):
        one, other = sources[0][0].alias, sources[1][0].alias
        hint = f"write only '{one}' in windows, and bound the time of '{other}' in ON"
        context.error("aggregates over several streams in windows need TUMBLE", sources[1][1], hint)
    clause = node.args.get("group")
    by = [expr for _, expr in group_items(context, resolver, node)]
    if len(context.errors) > before:
        return False
    if not any(isinstance(one, Column) and one.name in WINDOW_COLUMNS for one in by):
        what = "aggregates over windows must be grouped by window_start or window_end"
        named = [context.source(item) for item in clause.expressions] if clause is not None else []
        shown = [one.name for one in outputs if isinstance(one.expr, Column) and one.expr.alias]
        window = next((name for name in shown if name in WINDOW_COLUMNS), WINDOW_START)
        hint = f"write GROUP BY {', '.join(dict.fromkeys((window, *(named or shown))))}"
        context.error(what, node if clause is None else clause, hint)
    elif (
        clause is not None
        and cumulative
        and not any(isinstance(one, Column) and one.name == WINDOW_END for one in by)
    ):
        hint = f"write GROUP BY {', '.join((WINDOW_END, *map(context.source, clause.expressions)))}"
        context.error("aggregates over CUMULATE must be grouped by window_end", clause, hint)
    elif clause is not None and session is not None:
        grouped = {one.name for one in by if isinstance(one, Column)}
        lacking = [name for name in session.by if name not in grouped]
        if lacking:
            hint = f"write GROUP BY {', '.join((*map(context.source, clause.expressions), *lacking))}"
            what = f"aggregates over SESSION must be grouped by {' and '.join(lacking)}, too"
            context.error(what, clause, hint)
    return len(context.errors) == before
