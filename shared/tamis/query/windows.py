"""HOP and TUMBLE in FROM, as RisingWave writes them, and what a query may say of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tamis.errors import InputError, SqlError
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.query.context import Context, name_of
from tamis.query.model import WINDOW_COLUMNS, WINDOW_START, Query, Source, StreamDef, Window, same_window
from tamis.query.units import parse_duration

if TYPE_CHECKING:
    from tamis.query.aggregates import Aggregates
    from tamis.query.reading import Reader

USAGE = {
    "tumble": "write TUMBLE(stream, time, INTERVAL '1' MINUTE)",
    "hop": "write HOP(stream, time, INTERVAL '10' SECOND, INTERVAL '1' MINUTE): the slide, then the size",
}

# A combination is an alarm in every window that it lies in.
MOST_WINDOWS = 1_000


@dataclass(frozen=True)
class WindowCall:
    """What HOP or TUMBLE was called with. A part that can't be read is None, and reported."""

    stream: exp.Expr | None  # its identifier
    time: exp.Expr | None
    window: Window | None


def read(context: Context, call: exp.Expr) -> WindowCall:
    """The arguments of HOP or TUMBLE, which `call` is."""
    name = str(call.this).lower()
    usage = USAGE[name]
    given = call.expressions
    want = 3 if name == "tumble" else 4
    if len(given) == want + 1:
        hint = "leave the offset out: windows start at 1970-01-01 00:00 UTC and at multiples of the slide"
        context.error("windows with an offset aren't executed", given[want], hint)
    elif len(given) != want:
        context.error(f"{name.upper()} takes {want} arguments, not {len(given)}", call, usage)
    if len(given) < want:
        return WindowCall(None, None, None)
    stream, time = (_plain(argument) for argument in given[:2])
    if stream is None:
        context.error(f"the first argument of {name.upper()} is the name of a stream", given[0], usage)
    if time is None:
        context.error(f"the second argument of {name.upper()} is the name of a column", given[1], usage)
    lengths = [_length(context, argument, usage) for argument in given[2:want]]
    if len(given) != want or None in lengths:
        return WindowCall(stream, time, None)
    slide, size = lengths[0] or 0, lengths[-1] or 0
    if size % slide:
        hint = "write a size that is a multiple of the slide, as in " + USAGE["hop"].removeprefix("write ")
        context.error("HOP's slide doesn't divide its size", given[2], hint)
        return WindowCall(stream, time, None)
    if size // slide > MOST_WINDOWS:
        hint = f"write a slide of which at most {MOST_WINDOWS} make the size"
        context.error(f"each tuple is in {size // slide} windows", given[2], hint)
        return WindowCall(stream, time, None)
    return WindowCall(stream, time, Window(slide, size))


def _plain(argument: exp.Expr) -> exp.Expr | None:
    """The identifier of an argument that is a name without a qualifier."""
    found = argument.this if isinstance(argument, exp.Column) and not argument.args.get("table") else None
    return found if isinstance(found, exp.Identifier) else None


def _length(context: Context, argument: exp.Expr, usage: str) -> int | None:
    unit = argument.args.get("unit") if isinstance(argument, exp.Interval) else None
    value = argument.this if isinstance(argument, exp.Interval) else None
    if not isinstance(value, exp.Literal) or (unit is not None and not isinstance(unit, exp.Var)):
        context.error("the slide and the size of windows are INTERVALs", argument, usage)
        return None
    try:
        length = parse_duration(f"{value.this} {unit.name if unit is not None else ''}".strip())
    except InputError as error:
        context.error(error.what, argument, usage)
        return None
    if length < 1:
        context.error("a window is at least a microsecond long", argument, usage)
        return None
    return length


def put(
    context: Context, call: WindowCall, source: Source, known: Mapping[str, Expr], base: StreamDef
) -> Source | None:
    """`source` with the window of `call`; None where there is a mistake, which is reported. `known`: the
    columns of what stands in FROM, over `base`."""
    clash = [name for name in WINDOW_COLUMNS if name in known or base.column(name) is not None]
    stream = call.stream
    if clash and stream is not None:
        hint = f"call the column of the stream otherwise: windows have a {clash[0]} of their own"
        context.error(f"'{name_of(stream).text}' has a column called '{clash[0]}'", stream, hint)
    if base.time is None and stream is not None:
        what = f"stream '{base.name}' has no WATERMARK, and windows are over event time"
        hint = "add WATERMARK FOR column AS column - INTERVAL '5' SECOND to its CREATE STREAM"
        context.error(what, stream, hint)
    if call.time is None or call.window is None or clash or base.time is None:
        return None
    name = name_of(call.time)
    meant = known.get(name.text)
    if not isinstance(meant, Column) or meant.name != base.time:
        fitting = [n for n, expr in known.items() if isinstance(expr, Column) and expr.name == base.time]
        hint = f"write {fitting[0]}" if fitting else "select the event time in the stream that is read"
        what = f"windows are over event time, and '{name.text}' isn't that of '{source.stream}'"
        context.error(what, name.offset, hint)
        return None
    return replace(source, window=call.window)


def with_columns(known: Mapping[str, Expr], alias: str) -> dict[str, Expr]:
    """The columns of a stream and of its windows."""
    return {**known, **{name: Column(alias, name, Type.TIMESTAMP) for name in WINDOW_COLUMNS}}


def check(context: Context, query: Query, offsets: Sequence[int]) -> bool:
    """Report what a query says of windows and can't be executed; whether there was nothing. `offsets`: where
    its sources stand."""
    windowed = frozenset(source.alias for source in query.sources if source.window is not None)
    if not windowed:
        return True
    before = len(context.errors)
    first = next(source for source in query.sources if source.window is not None)
    for source, offset in zip(query.sources, offsets, strict=True):
        if source.window is None:
            hint = f"put it into the same windows as '{first.alias}', or bound the times and use no windows"
            context.error(f"'{source.alias}' has no windows, and '{first.alias}' has", offset, hint)
        elif source.window != first.window:
            hint = "give both the same slide and size"
            context.error(f"'{source.alias}' has other windows than '{first.alias}'", offset, hint)
    tied = [frozenset((alias,)) for alias in windowed]
    for conjunct in query.conjuncts:
        pair = same_window(conjunct.expr, windowed)
        if pair is not None:
            met = [group for group in tied if group & pair]
            tied = [group for group in tied if not group & pair] + [frozenset[str]().union(*met)]
        elif any(c.alias in windowed and c.name in WINDOW_COLUMNS for c in columns(conjunct.expr)):
            hint = "write a.window_start = b.window_start, and compare times with the streams' own columns"
            what = "columns of windows are only compared by = with the same column of another stream"
            context.errors.append(SqlError(what, conjunct.position, hint))
    if len(context.errors) == before and len(tied) > 1:
        for source, offset in zip(query.sources, offsets, strict=True):
            if not any({first.alias, source.alias} <= group for group in tied):
                hint = f"add AND {first.alias}.{WINDOW_START} = {source.alias}.{WINDOW_START}"
                context.error(f"the windows of '{source.alias}' aren't joined", offset, hint)
    return len(context.errors) == before


def grouped(
    context: Context, reader: Reader, node: exp.Select, found: Aggregates, sources: Sequence[int]
) -> bool:
    """Report what aggregates over windows can't be; whether there was nothing. `sources`: where the streams
    of the query stand."""
    before = len(context.errors)
    if len(sources) > 1:
        hint = "aggregate the windows of one stream, or leave the aggregates and GROUP BY out"
        context.error("aggregates over joined windows aren't executed", sources[1], hint)
    for aggregate in found.found:
        if aggregate.column is not None and aggregate.column.name in WINDOW_COLUMNS:
            what = f"'{aggregate.column.name}' is the same for all tuples of a group"
            context.error(what, node, "aggregate a column of the stream, and select the window's as it is")
            break
    clause = node.args.get("group")
    by = [] if clause is None else [reader.of_tuples(item) for item in clause.expressions]
    if len(context.errors) > before:
        return False
    if not any(isinstance(one, Column) and one.name in WINDOW_COLUMNS for one in by):
        what = "aggregates over windows are grouped by window_start or window_end"
        named = ", ".join(context.source(item) for item in clause.expressions) if clause is not None else ""
        hint = f"write GROUP BY {WINDOW_START}{', ' if named else ''}{named}"
        context.error(what, node if clause is None else clause, hint)
    return len(context.errors) == before
