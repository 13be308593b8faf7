"""Hints for mistakes in window functions: the OVER that a stream allows, and joins in place of FILTER."""

from __future__ import annotations

from sqlglot import exp

from tamis.expressions.nodes import Column
from tamis.expressions.sql_text import identifier
from tamis.query.context import Context
from tamis.query.model import StreamDef
from tamis.query.scalars.calls import called_name
from tamis.query.selects.calls.frames import ROWS
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.identifiers import name_of


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
    """The text to write for `last_value(x) FILTER (WHERE only)` or for `lag(x)` with a FILTER: a join with
    the last reading that meets the condition, if the query reads one stream and x is a column.
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
