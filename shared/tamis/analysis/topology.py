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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamis.plan.model import TimeBound


@dataclass(frozen=True)
class Closure:
    """upper[i, j]: the greatest t_i - t_j that the bounds allow; no item if the bounds don't limit it."""

    upper: Mapping[tuple[str, str], int]
    contradictory: bool

    def unconnected(self) -> list[tuple[str, str]]:
        """The pairs (i, j) for which t_i - t_j has no upper bound, in order."""
        names = list(dict.fromkeys(i for i, _ in self.upper))
        return [(i, j) for i in names for j in names if (i, j) not in self.upper]


def closure(aliases: Iterable[str], bounds: Iterable[TimeBound]) -> Closure:
    """All-pairs shortest paths over the difference bounds between `aliases` (Floyd, Warshall)."""
    names = list(aliases)
    upper = {(name, name): 0 for name in names}

    def tighten(i: str, j: str, value: int) -> None:
        if value < upper.get((i, j), value + 1):
            upper[i, j] = value

    for bound in bounds:
        if bound.left in names and bound.right in names:
            if bound.hi is not None:
                tighten(bound.left, bound.right, bound.hi)
            if bound.lo is not None:
                tighten(bound.right, bound.left, -bound.lo)
    for via in names:
        for i in names:
            for j in names:
                if (i, via) in upper and (via, j) in upper:
                    tighten(i, j, upper[i, via] + upper[via, j])
    return Closure(upper, any(upper[name, name] < 0 for name in names))


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
    base: Closure
    hidden: Mapping[str, Closure]

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
