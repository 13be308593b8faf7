"""Literals: numbers, strings, TRUE and FALSE, NULL, intervals and times."""

from __future__ import annotations

from sqlglot import exp

from tamis.declarations.units import parse_duration
from tamis.errors import InputError
from tamis.expressions.nodes import Expr, Literal, Type
from tamis.query.context import Context
from tamis.query.scalars import operators

_INTERVAL = "write INTERVAL '30' SECOND or INTERVAL '5 minutes'"


def resolve_literal(context: Context, node: exp.Expr) -> Expr | None:
    """A number or a string."""
    text = str(node.this)
    if node.args.get("is_string"):
        return Literal(text, Type.VARCHAR)
    if text.isascii() and text.isdigit() and len(text) <= 400:
        return operators.integer(int(text)) if len(text) <= 300 else Literal(float(text), Type.DOUBLE)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0:
        context.error("this number doesn't fit into a DOUBLE", node, "write a number such as 0.5 or 1e3")
        return None
    return Literal(value, Type.DOUBLE)


def resolve_boolean(context: Context, node: exp.Expr) -> Expr | None:
    """TRUE or FALSE."""
    return Literal(bool(node.this), Type.BOOLEAN)


def resolve_null(context: Context, node: exp.Expr) -> Expr | None:
    """NULL."""
    return operators.NULL


def resolve_interval(context: Context, node: exp.Expr) -> Expr | None:
    """INTERVAL '…' UNIT, in microseconds."""
    unit = node.args.get("unit")
    value = node.this
    if not isinstance(value, exp.Literal) or (unit is not None and not isinstance(unit, exp.Var)):
        context.error("an INTERVAL must be a constant", node, _INTERVAL)
        return None
    text = f"{value.this} {unit.name if unit is not None else ''}".strip()
    try:
        length = parse_duration(text)
    except InputError as error:
        context.error(error.what, node, _INTERVAL)
        return None
    return Literal(length, Type.INTERVAL)


def time_text(node: exp.Expr) -> Literal | None:
    """The string of TIMESTAMP '…', which sqlglot parses as a CAST; None for any other CAST."""
    value = node.this
    if node.args["to"].sql().upper() not in ("TIMESTAMP", "TIMESTAMPTZ"):
        return None
    if not isinstance(value, exp.Literal) or not value.is_string:
        return None
    return Literal(str(value.this), Type.VARCHAR)
