"""Frames of window functions: ROWS and RANGE, and the number of rows of LAG."""

from __future__ import annotations

from sqlglot import exp

from tamis.declarations.streams import StreamDef
from tamis.declarations.units import parse_duration
from tamis.declarations.watches import MOST_ROWS, Frame
from tamis.errors import InputError
from tamis.expressions.nodes import Column, Literal, Type
from tamis.expressions.sql_text import identifier
from tamis.query.context import Context
from tamis.query.scalars.calls import called_name
from tamis.query.scalars.literals import resolve_interval
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.cursor import name_of

ROWS = "ROWS BETWEEN 9 PRECEDING AND CURRENT ROW"
_RANGE = "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
_HINT = f"write {ROWS}, or {_RANGE}"


def frame_of(
    context: Context, node: exp.Expr, spec: exp.Expr | None, name: str, history: int
) -> Frame | None:
    """The frame that follows ORDER BY; None if a mistake was reported. `node` is the call, and `history` the
    greatest age of readings in frames of ROWS.
    """
    if spec is None:
        what = f"without a frame, {name} OVER would see all readings since the first one"
        context.error(what, node, _HINT)
        return None
    kind = str(spec.args["kind"]).upper()
    if spec.args.get("exclude"):
        context.error("EXCLUDE is not supported in frames", spec, f"leave EXCLUDE out: {_HINT}")
        return None
    if "FOLLOWING" in (spec.args.get("start_side"), spec.args.get("end_side")):
        what = "a frame can't end after CURRENT ROW: later readings aren't known yet"
        context.error(what, spec, _HINT)
        return None
    start: exp.Expr | str = spec.args["start"]
    end: exp.Expr | str = spec.args.get("end") or "CURRENT ROW"
    if start == "UNBOUNDED":
        what = "a frame can't begin at UNBOUNDED PRECEDING: all readings since the first one would be kept"
        context.error(what, spec, _HINT)
        return None
    return _rows(context, spec, start, end, history) if kind == "ROWS" else _range(context, spec, start, end)


def _rows(
    context: Context, spec: exp.Expr, start: exp.Expr | str, end: exp.Expr | str, history: int
) -> Frame | None:
    first, last = (0 if one == "CURRENT ROW" else _count(one) for one in (start, end))
    if first is None or last is None:
        hint = f"write a whole number of rows up to {MOST_ROWS:,}: {ROWS}"
        context.error("the ends of ROWS must be numbers of rows", spec, hint)
        return None
    if first < last:
        context.error("the frame ends before it begins", spec, "write the greater number of rows first")
        return None
    return Frame(first, last, history)


def _range(context: Context, spec: exp.Expr, start: exp.Expr | str, end: exp.Expr | str) -> Frame | None:
    if end != "CURRENT ROW":
        begin = start if isinstance(start, str) else context.source(start)
        hint = (
            f"write RANGE BETWEEN {begin} PRECEDING AND CURRENT ROW, or a frame of ROWS, such as ROWS BETWEEN"
            " 60 PRECEDING AND 1 PRECEDING"
        )
        context.error("a frame of RANGE must end at CURRENT ROW", spec, hint)
        return None
    before = len(context.errors)
    span = 0 if start == "CURRENT ROW" else _span(context, start)
    if len(context.errors) > before:
        return None
    if span is None:
        context.error("a frame of RANGE must begin at an INTERVAL", spec, f"write {_RANGE}")
        return None
    if span <= 0:
        context.error("a frame of RANGE must be longer than zero", spec, f"write {_RANGE}")
        return None
    return Frame(None, 0, span)


def lag_rows(context: Context, node: exp.Expr) -> int | None:
    """The second argument of LAG; None if a mistake was reported."""
    rows = _count(node)
    if rows is not None and rows > 0:
        return rows
    hint = f"write a whole number from 1 to {MOST_ROWS:,}"
    if rows == 0:
        hint += "; the value of the reading itself is x"
    if isinstance(node, exp.Neg):
        hint += "; later readings aren't known yet"
    context.error("the second argument of lag must be a constant number of rows", node, hint)
    return None


def _count(node: exp.Expr | str) -> int | None:
    """A number of rows; None for anything else, or for too many."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    text = str(node.this)
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MOST_ROWS)):
        return None
    return int(text) if int(text) <= MOST_ROWS else None


def _span(context: Context, node: exp.Expr | str) -> int | None:
    """Microseconds; None for anything but an INTERVAL or its text."""
    if isinstance(node, exp.Interval):
        found = resolve_interval(context, node)
        if isinstance(found, Literal) and found.type is Type.INTERVAL and isinstance(found.value, int):
            return found.value
    if isinstance(node, exp.Literal) and node.args.get("is_string"):
        try:
            return parse_duration(str(node.this))
        except InputError:
            return None
    return None


def over_hint(
    context: Context, scope: FromScope, spec: exp.Expr | None, name: str, alias: str | None = None
) -> str:
    """The OVER to write for a call of the function `name` over the source with an alias, or over the only
    one. `spec` is the frame that the query has.
    """
    frame = f" {_frame(context, spec)}" if spec is not None else "" if name == "lag" else f" {ROWS}"
    sources = [source for source, _ in scope.sources]
    source = next((one for one in sources if one.alias == alias or len(sources) == 1), None)
    stream = None if source is None else context.stream(source)
    if source is None or stream is None or stream.time is None:
        return f"write OVER (PARTITION BY key ORDER BY time{frame}) with the KEY columns and the event time"
    item = next(one for one in scope.items if source in one.sources)
    shown = {e.name: n for n, e in (item.columns or {}).items() if isinstance(e, Column)}
    dot = f"{identifier(item.alias)}." if len(sources) > 1 else ""
    time, *key = (f"{dot}{identifier(shown.get(one, one))}" for one in (stream.time, *stream.key))
    partition = f"PARTITION BY {', '.join(key)} " if key else ""
    return f"write OVER ({partition}ORDER BY {time}{frame})"


def _frame(context: Context, spec: exp.Expr) -> str:
    """The text of a frame, with both ends."""
    ends = (
        (spec.args["start"], spec.args.get("start_side")),
        (spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side")),
    )
    start, end = (
        f"{one if isinstance(one, str) else context.source(one)} {side or ''}".strip() for one, side in ends
    )
    return f"{spec.args['kind']} BETWEEN {start} AND {end}"


def filter_hint(context: Context, scope: FromScope, call: exp.Expr, stream: StreamDef, only: exp.Expr) -> str:
    """A hint for `last_value(x) FILTER (WHERE only)` or `lag(x)` with a FILTER: a join with the last reading
    that meets the condition, if the query reads one stream and x is a column.
    """
    value, *others = call.expressions
    name = called_name(call)
    if name == "first_value" or others or not isinstance(value, exp.Column) or len(scope.items) > 1:
        return "leave FILTER out"
    (item,) = scope.items
    alias, time = identifier(item.alias), identifier(str(stream.time))
    read = alias if item.alias == item.stream else f"{identifier(item.stream)} {alias}"
    conditions = [f"{alias}.{identifier(one)} = p.{identifier(one)}" for one in stream.key]
    conditions.append(f"{alias}.{time} {'>' if name == 'lag' else '>='} p.{time}")
    passing = f"(SELECT * FROM {read} WHERE {context.source(only)}) AS p"
    joined = f"{read} LEFT ASOF JOIN {passing} ON {' AND '.join(conditions)}"
    return f"write p.{identifier(name_of(value.this).text)}, with FROM {joined}"
