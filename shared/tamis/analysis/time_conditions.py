"""Time conditions as difference bounds lo <= t_left - t_right <= hi.

Event times are integers of microseconds, so that a strict bound is a closed bound that is one less. No
later code needs open ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Column, Expr, Literal
from tamis.plan.model import TimeBound
from tamis.query.linear_times import difference_limits, is_time
from tamis.query.model import Window


def bounds_of(expr: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...] | None:
    """The difference bounds of a comparison, with the aliases in alphabetical order.

    None if it isn't a conjunction of difference bounds between two sources.
    """
    found = difference_limits(expr, times)
    return None if found is None else (TimeBound(found.left, found.right, found.lo, found.hi),)


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
    if isinstance(expr, Literal) or FUNCTIONS[expr.op].computed:
        return frozenset()
    return frozenset(alias for arg in expr.args for alias in mentions_time(arg, times))
