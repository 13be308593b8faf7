"""Expressions evaluated one value at a time, in exact fractions where that is possible.

It shares no code with
Tamis.

A number is a Fraction, or a float behind a function that has none; a condition True, False or None (NULL).
`Unclear` is raised where two floats are too near to each other to say which is the greater.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from tests.oracle.expressions.expression_trees import half_away

from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Column, Expr, Literal, Type

# A Fraction, float, str, bool or None: arithmetic on a union of these says nothing that a reader needs.
Value: TypeAlias = Any


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


NEAREST: dict[str, Callable[[Any], int]] = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}


class Unclear(Exception):
    """Rounding decides."""


def evaluate(expr: Expr, row: Mapping[Column, Value]) -> Value:
    if isinstance(expr, Column):
        return row[expr]
    if isinstance(expr, Literal):
        if isinstance(expr.value, (int, float)) and not isinstance(expr.value, bool):
            return Fraction(expr.value)
        return expr.value
    if expr.op == "case":
        for condition, value in zip(expr.args[:-1:2], expr.args[1:-1:2], strict=True):
            if evaluate(condition, row) is True:
                return evaluate(value, row)
        return evaluate(expr.args[-1], row)
    args = [evaluate(arg, row) for arg in expr.args]
    if expr.op == "is_null":
        return args[0] is None
    if expr.op == "not":
        return None if args[0] is None else not args[0]
    if expr.op in ("and", "or"):
        decisive = expr.op == "or"
        if decisive in args:
            return decisive
        return None if None in args else not decisive
    if expr.op in ("least", "greatest"):
        given = [a for a in args if a is not None]
        return (min if expr.op == "least" else max)(given) if given else None
    if expr.op == "coalesce":
        return next((a for a in args if a is not None), None)
    if None in args:
        return None
    if expr.op in ("=", "!=", "<", "<=", ">", ">="):
        return compare(expr.op, args[0], args[1])
    try:
        return _number(expr.op, args, integral=expr.type in (Type.INT, Type.BIGINT))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def _step(op: str, a: Value, digits: int) -> Value:
    """A function that rounds; unclear for a float at a step, which may be on its other side."""
    if isinstance(a, float):
        near = 1e-9 * max(1.0, abs(a))
        ends = {_step(op, Fraction(a + shift), digits) for shift in (-near, near)}
        if len(ends) > 1:
            raise Unclear
        return ends.pop()
    if op == "round":
        return Fraction(half_away(float(a), digits))
    if op == "sign":
        return Fraction((a > 0) - (a < 0))
    if op in ("to_int", "to_bigint"):
        limit = 2 ** (31 if op == "to_int" else 63)
        return Fraction(round(a)) if -limit <= round(a) < limit else None
    return Fraction(NEAREST[op](a))


def _remainder(a: Value, b: Value) -> Value:
    if isinstance(a, float) or isinstance(b, float):
        quotient = a / b
        if abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient)):
            raise Unclear
        return math.fmod(a, b)
    return a - b * math.trunc(a / b)


def _bits(op: str, a: int, b: int) -> Value:
    """An operator of bits of two whole numbers, and of `~` of one; None where it is NULL."""
    match op:
        case "&":
            return Fraction(a & b)
        case "|":
            return Fraction(a | b)
        case "xor":
            return Fraction(a ^ b)
        case "~":
            return Fraction(~a)
        case ">>":
            return Fraction(a >> b if 0 <= b < 64 else 0)
    return Fraction(a << min(b, 64)) if a >= 0 and b >= 0 and a << min(b, 64) < 2**63 else None


def compare(op: str, a: Value, b: Value) -> bool:
    rounded = isinstance(a, float) or isinstance(b, float)
    if rounded and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b)):
        raise Unclear
    return bool(_COMPARISONS[op](a, b))


def _number(op: str, args: list[Value], *, integral: bool) -> Value:
    a = args[0]
    b: Any = args[1] if len(args) > 1 else None
    match op:
        case "floor" | "ceil" | "trunc" | "round" | "sign" | "to_int" | "to_bigint":
            out = _step(op, a, int(b or 0))
            if out is None:
                return None
        case "&" | "|" | "xor" | "<<" | ">>" | "~":
            out = _bits(op, int(a), int(b or 0))
            if out is None:
                return None
        case "mod":
            out = _remainder(a, b)
        case "+":
            out = a + b
        case "-":
            out = a - b
        case "*":
            out = a * b
        case "/":
            out = a / b
        case "neg":
            out = -a
        case "abs":
            out = abs(a)
        case "power":
            whole = isinstance(b, Fraction) and b.denominator == 1 and abs(b) <= 16
            out = a ** int(b) if whole else math.pow(a, b)
        case _:
            real = FUNCTIONS[op].real
            assert real is not None, op
            out = real.scalar(a)
    limit = Fraction(2**63) if integral else Fraction(2) ** 1024
    if isinstance(out, float) and not math.isfinite(out):
        return None
    return None if abs(out) >= limit else out
