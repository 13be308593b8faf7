"""Linear forms of event times, and comparisons of them as limits of a difference of two times.

Event times are integers of microseconds, so that a strict limit is a closed limit that is one less. No later
code needs open ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tamis.expressions.nodes import COMPARISONS, FLIPPED, Call, Column, Expr, Literal


@dataclass(frozen=True)
class LinearTime:
    """sum of coefficients[alias] * t_alias, plus `offset` microseconds."""

    coefficients: Mapping[str, int]
    offset: int


@dataclass(frozen=True)
class Limits:
    """lo <= t_left - t_right <= hi, in microseconds; None is no limit."""

    left: str
    right: str
    lo: int | None
    hi: int | None


def is_time(column: Column, times: Mapping[str, str]) -> bool:
    """Tell if `column` is the event time of its source; `times` maps an alias to its stream's time column."""
    return times.get(column.alias) == column.name


def linear(expr: Expr, times: Mapping[str, str]) -> LinearTime | None:
    """`expr` as a linear form of event times; None if it isn't one."""
    if isinstance(expr, Column):
        return LinearTime({expr.alias: 1}, 0) if is_time(expr, times) else None
    if isinstance(expr, Literal):
        if expr.type.integral and isinstance(expr.value, int) and not isinstance(expr.value, bool):
            return LinearTime({}, expr.value)
        return None
    if expr.op == "neg":
        part = linear(expr.args[0], times)
        return _scaled(part, -1) if part else None
    if expr.op not in ("+", "-", "*") or not expr.type.integral:
        return None
    left, right = (linear(arg, times) for arg in expr.args)
    if left is None or right is None:
        return None
    if expr.op == "*":
        if left.coefficients and right.coefficients:
            return None
        factor, form = (right, left) if left.coefficients else (left, right)
        return _scaled(form, factor.offset)
    return _sum(left, _scaled(right, -1) if expr.op == "-" else right)


def difference_limits(expr: Expr, times: Mapping[str, str]) -> Limits | None:
    """The limits that a comparison sets for the difference of two event times, whose aliases are in
    alphabetical order; None for any other expression.
    """
    if not isinstance(expr, Call) or expr.op not in COMPARISONS or expr.op == "!=":
        return None
    left, right, op = expr.args[0], expr.args[1], expr.op
    if isinstance(right, Call) and right.op == "abs":
        left, right, op = right, left, FLIPPED[op]
    if isinstance(left, Call) and left.op == "abs":
        inner, limit = linear(left.args[0], times), linear(right, times)
        if inner is None or limit is None or limit.coefficients or op in (">", ">="):
            return None
        most = limit.offset - (op == "<")
        if op == "=" and most != 0:
            return None
        return _limits(inner, -most, most)
    first, second = linear(left, times), linear(right, times)
    if first is None or second is None:
        return None
    form = _sum(first, _scaled(second, -1))
    match op:
        case "=":
            return _limits(form, 0, 0)
        case "<" | "<=":
            return _limits(form, None, -(op == "<"))
        case _:
            return _limits(form, int(op == ">"), None)


def _limits(form: LinearTime, lo: int | None, hi: int | None) -> Limits | None:
    """lo <= form <= hi as limits; None if the form isn't k * (t_left - t_right) + offset."""
    if len(form.coefficients) != 2 or sum(form.coefficients.values()) != 0:
        return None
    left, right = sorted(form.coefficients)
    factor = form.coefficients[left]
    lo, hi = (None if end is None else end - form.offset for end in (lo, hi))
    if factor < 0:
        lo, hi, factor = (None if hi is None else -hi), (None if lo is None else -lo), -factor
    return Limits(
        left,
        right,
        None if lo is None else -(-lo // factor),
        None if hi is None else hi // factor,
    )


def _scaled(form: LinearTime, factor: int) -> LinearTime:
    return LinearTime({a: c * factor for a, c in form.coefficients.items() if factor}, form.offset * factor)


def _sum(left: LinearTime, right: LinearTime) -> LinearTime:
    total = dict(left.coefficients)
    for alias, coefficient in right.coefficients.items():
        total[alias] = total.get(alias, 0) + coefficient
    return LinearTime({a: c for a, c in total.items() if c}, left.offset + right.offset)
