"""The tightest bounds between any two event times of a join: all that its bounds on times imply.

Time conditions are difference bounds lo <= t_left - t_right <= hi. Event times are integers of microseconds,
so that a strict bound is a closed bound that is one less. No later code needs open ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tamis.declarations.definitions import Window
from tamis.difference_bounds import Closure
from tamis.plan.model import TimeBound


def window_bounds(window: Window | None, order: tuple[str, ...]) -> Iterator[TimeBound]:
    """The bounds that follow from a window: two of its tuples are less than its size apart."""
    if window is not None:
        for left, right in combinations(order, 2):
            yield TimeBound(left, right, 1 - window.size, window.size - 1)


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
