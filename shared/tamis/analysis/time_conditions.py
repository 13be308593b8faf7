"""Time conditions as difference bounds lo <= t_left - t_right <= hi.

Event times are integers of microseconds, so that a strict bound is a closed bound that is one less. No
later code needs open ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from tamis.expressions.nodes import (
    COMPARISONS,
    COMPUTED,
    FLIPPED,
    Call,
    Column,
    Expr,
    Literal,
)
from tamis.plan.model import TimeBound
from tamis.query.model import Window


@dataclass(frozen=True)
class LinearTime:
    """sum of coefficients[alias] * t_alias, plus `offset` microseconds."""

    coefficients: Mapping[str, int]
    offset: int


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


def _scaled(form: LinearTime, factor: int) -> LinearTime:
    return LinearTime({a: c * factor for a, c in form.coefficients.items() if factor}, form.offset * factor)


def _sum(left: LinearTime, right: LinearTime) -> LinearTime:
    total = dict(left.coefficients)
    for alias, coefficient in right.coefficients.items():
        total[alias] = total.get(alias, 0) + coefficient
    return LinearTime({a: c for a, c in total.items() if c}, left.offset + right.offset)


def bounds_of(expr: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...] | None:
    """The difference bounds of a comparison, with the aliases in alphabetical order.

    None if it isn't a conjunction of difference bounds between two sources.
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
        return _bound(inner, -most, most)
    first, second = linear(left, times), linear(right, times)
    if first is None or second is None:
        return None
    form = _sum(first, _scaled(second, -1))
    match op:
        case "=":
            return _bound(form, 0, 0)
        case "<" | "<=":
            return _bound(form, None, -(op == "<"))
        case _:
            return _bound(form, int(op == ">"), None)


def _bound(form: LinearTime, lo: int | None, hi: int | None) -> tuple[TimeBound, ...] | None:
    """lo <= form <= hi as a bound; None if the form isn't k * (t_left - t_right) + offset."""
    if len(form.coefficients) != 2 or sum(form.coefficients.values()) != 0:
        return None
    left, right = sorted(form.coefficients)
    factor = form.coefficients[left]
    lo, hi = (None if end is None else end - form.offset for end in (lo, hi))
    if factor < 0:
        lo, hi, factor = (None if hi is None else -hi), (None if lo is None else -lo), -factor
    return (
        TimeBound(
            left,
            right,
            None if lo is None else -(-lo // factor),
            None if hi is None else hi // factor,
        ),
    )


def intersect(bounds: list[TimeBound], order: tuple[str, ...]) -> tuple[TimeBound, ...]:
    """One bound for each pair of sources, left before right in `order`: the intersection of the pair's
    bounds.
    """
    found: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    place = {alias: i for i, alias in enumerate(order)}
    for bound in bounds:
        left, right, lo, hi = bound.left, bound.right, bound.lo, bound.hi
        if place[left] > place[right]:
            left, right = right, left
            lo, hi = (None if hi is None else -hi), (None if lo is None else -lo)
        old_lo, old_hi = found.get((left, right), (None, None))
        los = [v for v in (lo, old_lo) if v is not None]
        his = [v for v in (hi, old_hi) if v is not None]
        found[left, right] = (max(los) if los else None, min(his) if his else None)
    pairs = sorted(found, key=lambda pair: (place[pair[0]], place[pair[1]]))
    return tuple(TimeBound(left, right, *found[left, right]) for left, right in pairs)


def window_bounds(window: Window | None, order: tuple[str, ...]) -> Iterator[TimeBound]:
    """The bounds that follow from a window: two of its tuples are less than its size apart."""
    if window is not None:
        for left, right in combinations(order, 2):
            yield TimeBound(left, right, 1 - window.size, window.size - 1)


def mentions_time(expr: Expr, times: Mapping[str, str]) -> frozenset[str]:
    """The sources whose event time is in `expr`, apart from arguments of functions: a speed per second or an
    hour of the day is a value like others.
    """
    if isinstance(expr, Column):
        return frozenset({expr.alias} if is_time(expr, times) else ())
    if isinstance(expr, Literal) or expr.op in COMPUTED:
        return frozenset()
    return frozenset(alias for arg in expr.args for alias in mentions_time(arg, times))
