"""Omission intervals in joins of any topology, and the tightest bounds between any two event times.

Let every time condition be lo <= t_S - t_j <= hi. For given partners, a tuple of S joins if its time is in
[max(t_k + lo_k), min(t_j + hi_j)]. This interval is at least as long as

    L(S) = min over neighbours j, k of ( hi_j - lo_k - D(j,k) ),

where D(j,k) is the tightest upper bound on t_k - t_j that the other streams' conditions imply (shortest
paths without S). Two tuples of S around a joining time, at most L(S) apart, can't both be outside of the
interval, so that one of them can replace the tuples between them. No longer interval is safe, except by one
tick since times are integers: `python -m tests.oracle.analysis.topology_report` finds the alarm that is
lost with two ticks more. L is 2w for two streams within w of each other, w for a clique, and 0 for the
centre of a star, as in cai-2021 section 4; for topologies that the paper leaves open it is defined, too.

Time conditions are difference bounds lo <= t_left - t_right <= hi. Event times are integers of microseconds,
so that a strict bound is a closed bound that is one less. No later code needs open ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Column, Expr, Literal
from tamis.plan.model import TimeBound
from tamis.plan.time_distances import closure
from tamis.query.linear_times import difference_limits, is_time


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


def mentions_time(expr: Expr, times: Mapping[str, str]) -> frozenset[str]:
    """The sources whose event time is in `expr`, apart from arguments of functions: a speed per second or an
    hour of the day is a value like others.
    """
    if isinstance(expr, Column):
        return frozenset({expr.alias} if is_time(expr, times) else ())
    if isinstance(expr, Literal) or FUNCTIONS[expr.op].computed:
        return frozenset()
    return frozenset(alias for arg in expr.args for alias in mentions_time(arg, times))


def omission_interval(alias: str, aliases: Iterable[str], bounds: Iterable[TimeBound]) -> int | None:
    """L of source `alias` in microseconds; 0 or less if nothing may be omitted, None if it is infinite.

    It is infinite if the partners don't bound the source's time from both sides. Then the memory of the
    join has no bound either, and nothing is proved.
    """
    others = [name for name in aliases if name != alias]
    bounds = list(bounds)
    lows: dict[str, int | None] = {}
    highs: dict[str, int | None] = {}
    for bound in bounds:  # one for each pair
        if bound.left == alias:
            lows[bound.right], highs[bound.right] = bound.lo, bound.hi
        elif bound.right == alias:
            lows[bound.left] = None if bound.hi is None else -bound.hi
            highs[bound.left] = None if bound.lo is None else -bound.lo
    without = closure(others, bounds).upper
    least: int | None = None
    for j, high in highs.items():
        for k, low in lows.items():
            if high is None or low is None:
                continue  # this pair doesn't bound the interval in which the source joins
            if (k, j) not in without:
                return 0
            length = high - low - without[k, j]
            least = length if least is None else min(least, length)
    return least
