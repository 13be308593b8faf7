"""Typed operators: what each accepts, what it returns, and what to write instead of what it refuses.

The rules are those of `tamis.expressions.nodes`. A bare NULL takes the type that its neighbour gives it, a
string literal beside a TIMESTAMP is a time of ISO 8601, and a negated number is a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import ge, gt, le, lt
from typing import Any

from tamis.errors import InputError
from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.query.units import parse_timestamp

_SPANS = (Type.TIMESTAMP, Type.INTERVAL)
_BIGGEST = 1 << 63
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Mismatch(InputError):
    """Arguments that an operator doesn't take; the position is the caller's to add."""


def is_null(expr: Expr) -> bool:
    """Whether this is the literal NULL."""
    return isinstance(expr, Literal) and expr.value is None


def integer(value: int) -> Literal:
    """An integer literal; DOUBLE where 64 bits don't hold it."""
    if -_BIGGEST <= value < _BIGGEST:
        return Literal(value, Type.INT if -(1 << 31) <= value < 1 << 31 else Type.BIGINT)
    return Literal(float(value), Type.DOUBLE)


def fitted(expr: Expr, wanted: Type) -> Expr:
    """`expr` as a value of type `wanted` if it is one or may stand for one, else unchanged."""
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, wanted)
        if wanted is Type.TIMESTAMP and isinstance(expr.value, str):
            return Literal(_time(expr.value), Type.TIMESTAMP)
        if wanted is Type.DOUBLE and expr.type in (Type.INT, Type.BIGINT):
            return Literal(float(expr.value), Type.DOUBLE)
    if wanted is Type.DOUBLE and expr.type in (Type.INT, Type.BIGINT):
        return Call("*", (expr, Literal(1.0, Type.DOUBLE)), Type.DOUBLE)
    if (
        wanted in (Type.INT, Type.BIGINT)
        and expr.type in (Type.INT, Type.BIGINT)
        and isinstance(expr, Literal)
    ):
        return replace(expr, type=wanted)
    return expr


def assigned(expr: Expr, wanted: Type, what: str) -> Expr:
    """`expr` as `what` of a declared type. Raises `Mismatch` where it can't be."""
    result = fitted(expr, wanted)
    integers = (Type.INT, Type.BIGINT)
    if result.type is wanted or (wanted in integers and result.type in integers):
        return result
    raise Mismatch(f"{what} must be {wanted}, not {result.type}", hint=f"write a value of type {wanted}")


def condition(expr: Expr, what: str) -> Expr:
    """`expr` as a condition."""
    expr = fitted(expr, Type.BOOLEAN) if is_null(expr) else expr
    if expr.type is not Type.BOOLEAN:
        raise Mismatch(
            f"{what} must be a condition, not {expr.type}", hint="compare it with something: value > 5"
        )
    return expr


def logic(op: str, args: Sequence[Expr]) -> Expr:
    """AND, OR and NOT; nested ANDs and ORs become one."""
    parts: list[Expr] = []
    for arg in args:
        part = condition(arg, f"what {op.upper()} joins" if op != "not" else "what NOT negates")
        parts.extend(part.args if op != "not" and isinstance(part, Call) and part.op == op else (part,))
    return Call(op, tuple(parts), Type.BOOLEAN)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison of numbers, or of two values of one type."""
    left, right = _together(left, right)
    numbers = left.type.numeric and right.type.numeric
    if not numbers and left.type is not right.type:
        raise Mismatch(f"{left.type} can't be compared with {right.type}", hint=_comparison_hint(left, right))
    if left.type is Type.BOOLEAN and op not in ("=", "!="):
        return _order_of_truth(op, left, right)
    return Call(op, (left, right), Type.BOOLEAN)


def _order_of_truth(op: str, left: Expr, right: Expr) -> Expr:
    """FALSE comes before TRUE: beside a constant an order says what equals, or only that there is a value."""
    if isinstance(left, Literal):
        left, right, op = right, left, _TURNED[op]
    if not isinstance(right, Literal):
        raise Mismatch(f"{op} takes no two BOOLEANs", hint="write = or !=, or compare with TRUE or FALSE")
    if right.value is None:
        return Call("=", (left, right), Type.BOOLEAN)
    found = [value for value in (False, True) if _ORDER[op](value, right.value)]
    if len(found) == 1:
        return Call("=", (left, Literal(found[0], Type.BOOLEAN)), Type.BOOLEAN)
    # Of all values or of none, but NULL of NULL.
    return Call("or" if found else "and", (left, Call("not", (left,), Type.BOOLEAN)), Type.BOOLEAN)


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """`+ - * /` and power. Times and spans of time may be added and subtracted, nothing else."""
    if is_null(left) and is_null(right):
        left = right = Literal(None, Type.DOUBLE)
    left = _beside(left, right, op)
    right = _beside(right, left, op)
    kinds = (left.type, right.type)
    if left.type.numeric and right.type.numeric:
        whole = Type.DOUBLE not in kinds and op in ("+", "-", "*")
        return Call(op, (left, right), Type.BIGINT if whole else Type.DOUBLE)
    if op in ("+", "-") and set(kinds) <= set(_SPANS):
        if kinds == (Type.TIMESTAMP, Type.TIMESTAMP) and op == "-":
            return Call(op, (left, right), Type.INTERVAL)
        if kinds == (Type.INTERVAL, Type.INTERVAL):
            return Call(op, (left, right), Type.INTERVAL)
        if kinds == (Type.TIMESTAMP, Type.INTERVAL) or (
            kinds == (Type.INTERVAL, Type.TIMESTAMP) and op == "+"
        ):
            return Call(op, (left, right), Type.TIMESTAMP)
    raise Mismatch(
        f"{op if op != 'power' else '^'} doesn't take {left.type} and {right.type}", hint=_sum_hint(kinds)
    )


def negative(arg: Expr) -> Expr:
    """The unary minus."""
    if isinstance(arg, Literal) and isinstance(arg.value, int | float) and not isinstance(arg.value, bool):
        if arg.type is Type.DOUBLE:
            # 9223372036854775808 is no 64-bit integer, but its negative is.
            whole = arg.value == float(_BIGGEST)
            return Literal(-_BIGGEST, Type.BIGINT) if whole else Literal(-arg.value, Type.DOUBLE)
        return replace(arg, value=-arg.value) if arg.type in _SPANS else integer(-int(arg.value))
    arg = fitted(arg, Type.DOUBLE) if is_null(arg) else arg
    if arg.type is Type.INTERVAL or arg.type.numeric:
        return Call("neg", (arg,), arg.type)
    raise Mismatch(f"{arg.type} has no negative", hint="write - before numbers and intervals only")


def function(name: str, args: Sequence[Expr]) -> Expr:
    """A built-in function: abs, sqrt, exp, ln, log10, power, least or greatest."""
    if name in ("least", "greatest"):
        return _extreme(name, args)
    values = [fitted(arg, Type.DOUBLE) if is_null(arg) else arg for arg in args]
    for arg in values:
        if not arg.type.numeric and not (name == "abs" and arg.type is Type.INTERVAL):
            raise Mismatch(f"{name} doesn't take {arg.type}", hint=f"{name} takes numbers")
    return Call(name, tuple(values), values[0].type if name == "abs" else Type.DOUBLE)


def case(parts: Sequence[tuple[Expr, Expr]], default: Expr | None) -> Expr:
    """CASE WHEN condition THEN value … ELSE value END; the values have one type."""
    values = unified(
        [value for _, value in parts] + [default or Literal(None, Type.VARCHAR)], "the values of CASE"
    )
    flat: list[Expr] = []
    for (when, _), value in zip(parts, values, strict=False):
        flat += [condition(when, "what follows WHEN"), value]
    return Call("case", (*flat, values[-1]), values[-1].type)


def unified(values: Sequence[Expr], what: str) -> list[Expr]:
    """The values under one type: that of all, DOUBLE where numbers mix, BIGINT where integers do."""
    kinds = {value.type for value in values if not is_null(value)}
    if kinds == {Type.TIMESTAMP, Type.VARCHAR}:
        common = Type.TIMESTAMP
    elif len(kinds) <= 1:
        common = kinds.pop() if kinds else Type.VARCHAR
    elif all(kind.numeric for kind in kinds):
        common = Type.DOUBLE if Type.DOUBLE in kinds else Type.BIGINT
    else:
        raise Mismatch(
            f"{what} have different types: {', '.join(sorted(kinds))}", hint="write values of one type"
        )
    return [assigned(value, common, "each of " + what) for value in values]


def _extreme(name: str, args: Sequence[Expr]) -> Expr:
    values = unified(args, f"the arguments of {name}")
    if all(is_null(value) for value in values):
        values = [Literal(None, Type.DOUBLE) for _ in values]
    kind = values[0].type
    if not kind.numeric and kind not in _SPANS:
        raise Mismatch(f"{name} doesn't take {kind}", hint=f"{name} takes numbers, times and intervals")
    return Call(name, tuple(values), kind)


def _together(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    if is_null(left) or right.type is Type.TIMESTAMP:
        left = fitted(left, right.type)
    if is_null(right) or left.type is Type.TIMESTAMP:
        right = fitted(right, left.type)
    return left, right


def _beside(expr: Expr, other: Expr, op: str) -> Expr:
    """A NULL or a string literal as what `other` needs beside it."""
    if is_null(expr):
        return fitted(expr, Type.INTERVAL if other.type in _SPANS else Type.DOUBLE)
    if op == "-" and other.type is Type.TIMESTAMP:
        return fitted(expr, Type.TIMESTAMP)
    return expr


def _time(text: str) -> int:
    try:
        return parse_timestamp(text)
    except InputError as error:
        raise Mismatch(error.what, hint=error.hint) from error


def _comparison_hint(left: Expr, right: Expr) -> str:
    kinds = {left.type, right.type}
    literal = any(isinstance(side, Literal) and side.type is Type.VARCHAR for side in (left, right))
    if Type.VARCHAR in kinds and literal:
        return (
            "write INTERVAL before the text"
            if Type.INTERVAL in kinds
            else "write the value without quotes, or compare a VARCHAR"
        )
    if Type.TIMESTAMP in kinds:
        return "compare it with a time such as '2026-01-31T12:00:00Z', or subtract another time from it first"
    if Type.INTERVAL in kinds:
        return "compare it with a span of time such as INTERVAL '5 seconds'"
    return "compare values of one type"


def _sum_hint(kinds: tuple[Type, Type]) -> str:
    if Type.TIMESTAMP in kinds or Type.INTERVAL in kinds:
        return "a time takes + and - with an interval such as INTERVAL '5 seconds', and - with another time"
    return "arithmetic takes numbers"
