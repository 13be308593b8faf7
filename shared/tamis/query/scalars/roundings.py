"""Typed calls of the functions that round numbers, of MOD, and of the functions that replace NULL."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.nodes import MOST_DIGITS, Call, Expr, Literal, Type
from tamis.expressions.signatures import result_type
from tamis.query.scalars import operators
from tamis.query.scalars.operators import TypeMismatch, is_null

_WHOLE = ("floor", "ceil", "trunc", "round")  # their results are whole numbers
_DIGITS = f"write a whole number from -{MOST_DIGITS} to {MOST_DIGITS}, such as round(x, 2)"


def rounded(name: str, args: Sequence[Expr]) -> Expr:
    """floor, ceil, trunc, round and sign. As in DuckDB, round and trunc of an integer are the integer itself,
    and floor and ceil are DOUBLE.
    """
    number = operators.typed(args[0], Type.DOUBLE)
    if not number.type.numeric:
        raise TypeMismatch(f"{name} can't be applied to {number.type}", hint=f"{name} takes numbers")
    digits = _digits(args[1]) if len(args) > 1 else 0
    kind = result_type(name, [number.type])
    if kind is None:
        if digits < 0:
            what = "round takes digits before the point only for a DOUBLE"
            raise TypeMismatch(what, hint="multiply the value by 1.0")
        return number
    if name in _WHOLE and digits >= 0 and isinstance(number, Call) and _is_whole(number):
        return number
    if digits:
        return Call("round", (number, Literal(digits, Type.INT)), Type.DOUBLE)
    return Call(name, (number,), kind)


def _digits(expr: Expr) -> int:
    if not isinstance(expr, Literal) or expr.type is not Type.INT or not isinstance(expr.value, int):
        raise TypeMismatch("the number of digits must be a constant", hint=_DIGITS)
    if abs(expr.value) > MOST_DIGITS:
        raise TypeMismatch(f"round takes at most {MOST_DIGITS} digits", hint=_DIGITS)
    return expr.value


def _is_whole(number: Call) -> bool:
    return number.op in _WHOLE and len(number.args) == 1


def remainder(left: Expr, right: Expr) -> Expr:
    """`left % right` and mod(left, right)."""
    return operators.arithmetic("mod", left, right)


def coalesce(args: Sequence[Expr]) -> Expr:
    """The first argument that isn't NULL; a choice between conditions becomes AND and OR."""
    unified = operators.unified(args, "the arguments of coalesce")
    values = [arg for arg in unified if not is_null(arg)]
    constant = next((i for i, value in enumerate(values) if isinstance(value, Literal)), len(values))
    values = values[: constant + 1]
    if not values:
        return unified[0]
    if len(values) == 1:
        return values[0]
    kind = values[0].type
    if kind is not Type.BOOLEAN:
        doubles = Type.DOUBLE in {value.type for value in values}
        return Call("coalesce", tuple(values), Type.DOUBLE if doubles else kind)
    chosen = values[-1]
    for value in reversed(values[:-1]):
        absent = Call("is_null", (value,), Type.BOOLEAN)
        present = Call("not", (absent,), Type.BOOLEAN)
        chosen = operators.logic(
            "or", [operators.logic("and", [value, present]), operators.logic("and", [absent, chosen])]
        )
    return chosen


def nullif(value: Expr, other: Expr) -> Expr:
    """NULL where the values are equal, else the first one."""
    return operators.case([(operators.compare("=", value, other), operators.NULL)], value)
