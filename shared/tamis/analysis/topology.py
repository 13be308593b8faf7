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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tamis.difference_bounds import Closure
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


@dataclass(frozen=True)
class TimeDistances:
    """upper[i, j]: the greatest t_i - t_j that the bounds allow; no item if the bounds don't limit it."""

    upper: Mapping[tuple[str, str], int]
    contradictory: bool

    def unconnected(self) -> list[tuple[str, str]]:
        """The pairs (i, j) for which t_i - t_j has no upper bound, in order."""
        names = list(dict.fromkeys(i for i, _ in self.upper))
        return [(i, j) for i in names for j in names if (i, j) not in self.upper]


def closure(aliases: Iterable[str], bounds: Iterable[TimeBound]) -> TimeDistances:
    """All that difference bounds between `aliases` imply."""
    place = {name: at for at, name in enumerate(aliases)}
    closed = Closure.free(len(place))
    for bound in bounds:
        if bound.left in place and bound.right in place:
            left, right = place[bound.left], place[bound.right]
            if bound.hi is not None:
                closed.rows[left][right] = min(closed.rows[left][right], bound.hi)
            if bound.lo is not None:
                closed.rows[right][left] = min(closed.rows[right][left], -bound.lo)
    consistent = closed.close()
    upper = {
        (a, b): int(closed.rows[i][j])
        for a, i in place.items()
        for b, j in place.items()
        if closed.finite(i, j)
    }
    return TimeDistances(upper, not consistent)


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


@dataclass(frozen=True)
class Joined:
    """The time bounds of a query with EXISTS or NOT EXISTS.

    `rows`: the aliases of which rows consist. `hidden`: for each other alias, the closure over the bounds of
    its subquery and of the rows. `base`: the closure over the bounds of rows and EXISTS. A subquery of NOT
    EXISTS has a closure of its own: its bounds limit no row.
    """

    rows: tuple[str, ...]
    base: TimeDistances
    hidden: Mapping[str, TimeDistances]

    def reach(self, later: str, earlier: str) -> int | None:
        """The greatest t_later - t_earlier for which a new tuple of `later` and a tuple of `earlier` can
        concern the same row; None if the bounds don't limit it.

        Two hidden tuples are connected only through the rows. They may be of one input: the next tuple under
        EXISTS gives no second row, and under NOT EXISTS a row is not decided before the end of its bound.
        """
        if earlier not in self.hidden:
            return self.hidden.get(later, self.base).upper.get((later, earlier))
        if later not in self.hidden:
            return self.hidden[earlier].upper.get((later, earlier))
        sums = [
            first + second
            for row in self.rows
            if (first := self.hidden[later].upper.get((later, row))) is not None
            and (second := self.hidden[earlier].upper.get((row, earlier))) is not None
        ]
        return min(sums, default=None)


def joined(
    names: Sequence[str],
    exists: Sequence[str],
    bounds: Sequence[TimeBound],
    absences: Iterable[tuple[Sequence[str], Sequence[TimeBound]]],
) -> Joined:
    """The bounds of the sources `names`, of which those in `exists` are under EXISTS, and of absences with
    aliases and bounds of their own.
    """
    base = closure(names, bounds)
    hidden = dict.fromkeys(exists, base)
    for aliases, own in absences:
        hidden |= dict.fromkeys(aliases, closure([*names, *aliases], [*bounds, *own]))
    return Joined(tuple(name for name in names if name not in exists), base, hidden)
