"""Typed calls of the functions of time: EXTRACT, date_part, date_trunc and to_timestamp."""

from __future__ import annotations

from tamis.expressions.instants import FIELDS, TRUNCATED_TO
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.query.names import suggest
from tamis.query.scalars.operators import NULL, TypeMismatch, converted, typed

_NAMES = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
}


def part(field: str, value: Expr) -> Expr:
    """EXTRACT(field FROM value) and date_part(field, value): a field of a time, or `epoch`, the seconds of a
    time or an interval.
    """
    name = _singular(field)
    value = _time(value)
    if name == "epoch" and value.type in (Type.TIMESTAMP, Type.INTERVAL):
        return Call("epoch", (value,), Type.DOUBLE)
    if name not in FIELDS and name != "epoch":
        raise TypeMismatch(f"a time has no field '{name}'", hint=suggest(name, (*FIELDS, "epoch")))
    if value.type is Type.INTERVAL:
        hint = "write EXTRACT(EPOCH FROM …), the length in seconds"
        raise TypeMismatch(f"an INTERVAL has no field '{name}'", hint=hint)
    _check("EXTRACT", value)
    return Call("date_part", (Literal(name, Type.VARCHAR), value), Type.BIGINT)


def truncated(unit: Expr, value: Expr) -> Expr:
    """date_trunc(unit, value): the start of the unit in which a time lies."""
    name, value = constant_name(unit, "the unit of date_trunc"), _time(value)
    if _singular(name) not in TRUNCATED_TO:
        raise TypeMismatch(f"date_trunc has no unit '{name}'", hint=suggest(name, TRUNCATED_TO))
    _check("date_trunc", value)
    return Call("date_trunc", (Literal(_singular(name), Type.VARCHAR), value), Type.TIMESTAMP)


def from_seconds(value: Expr) -> Expr:
    """to_timestamp(seconds since 1970)."""
    value = typed(value, Type.DOUBLE)
    if not value.type.numeric:
        hint = "write to_timestamp(seconds), or TIMESTAMP '…' for a constant"
        raise TypeMismatch(f"to_timestamp can't be applied to {value.type}", hint=hint)
    return Call("to_timestamp", (value,), Type.TIMESTAMP)


def constant_name(expr: Expr, what: str) -> str:
    """The text of a constant. Raises `TypeMismatch` for anything else."""
    if not isinstance(expr, Literal) or not isinstance(expr.value, str):
        raise TypeMismatch(f"{what} must be a constant text", hint="write a text such as 'hour'")
    return expr.value


def _singular(name: str) -> str:
    name = name.lower()
    name = _NAMES.get(name, name)
    return name[:-1] if name.endswith("s") and name[:-1] in FIELDS else name


def _time(value: Expr) -> Expr:
    text = value is NULL or (isinstance(value, Literal) and isinstance(value.value, str))
    return converted(value, Type.TIMESTAMP) if text else value


def _check(name: str, value: Expr) -> None:
    if value.type is not Type.TIMESTAMP:
        hint = (
            "for a number of seconds, write to_timestamp(x) first"
            if value.type.numeric
            else "give a TIMESTAMP"
        )
        raise TypeMismatch(f"{name} can't be applied to {value.type}", hint=hint)
