"""Random joins of two to five streams over whole ticks, with their truth by brute force.

A join is a matrix `upper`: a combination joins where t_i - t_j <= upper[i, j] for all streams i, j. This
module shares no code with the planner or the omission kernels.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from tamis.plan.model import TimeBound

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FREE = 10**6  # an upper bound that bounds nothing
TOPOLOGIES = ("pair", "clique", "star", "chain", "near clique", "any")
NAMES = "abcde"

# Alarm conditions whose quiet values form an interval in each variable: all values weighed, the distance of
# their sum from 0, and how far they lie apart.
WEIGHED, DISTANCE, SPREAD = range(3)


@dataclass(frozen=True)
class Join:
    """A topology with its bounds."""

    topology: str
    upper: Int64s  # (n, n)

    @property
    def names(self) -> str:
        """One letter a stream."""
        return NAMES[: len(self.upper)]

    @property
    def bounds(self) -> list[TimeBound]:
        """As the planner takes them: one a pair, written from either end."""
        out = []
        for i, j in itertools.combinations(range(len(self.upper)), 2):
            hi, lo = int(self.upper[i, j]), -int(self.upper[j, i])
            if hi == FREE and lo == -FREE:
                continue
            ends = (self.names[i], self.names[j])
            if (i + j) % 2:
                ends, lo, hi = ends[::-1], -hi, -lo
            out.append(TimeBound(*ends, None if lo == -FREE else lo, None if hi == FREE else hi))
        return out


def random_join(random: np.random.Generator) -> Join:
    """Every topology of cai-2021, section 4, with equal and unequal bounds, one-sided ones among them."""
    topology = TOPOLOGIES[random.integers(len(TOPOLOGIES))]
    n = 2 if topology == "pair" else int(random.integers(3, 6))
    pairs = list(itertools.combinations(range(n), 2))
    if topology == "star":
        pairs = [(0, i) for i in range(1, n)]
    elif topology == "chain":
        pairs = list(itertools.pairwise(range(n)))
    elif topology == "near clique":
        pairs.remove((0, 1))
    elif topology == "any":
        pairs = sorted(
            {(int(random.integers(i)), i) for i in range(1, n)} | {p for p in pairs if random.random() < 0.3}
        )
    upper = np.full((n, n), FREE)
    np.fill_diagonal(upper, 0)
    width, even = int(random.integers(0, 6)), random.random() < 0.4
    for i, j in pairs:
        lo = int(random.integers(-4, 2))
        hi = lo + int(random.choice([0, 1, 2, 3, 5, 7]))
        if even:
            lo, hi = -width, width
        elif random.random() < 0.08:
            lo, hi = (-FREE, hi) if random.random() < 0.5 else (lo, FREE)
        upper[i, j], upper[j, i] = hi, -lo
    return Join(topology, upper)


@njit(cache=True)
def least_span(upper: Int64s, s: int) -> tuple[int, Int64s]:
    """The least span of time in which stream `s` joins, over all times of the others at which it does, and
    such times: the ends of the span are in the place of s.

    FREE where the span never ends, -1 where the join is never satisfied. With s at 0 every other time that
    matters is a sum of bounds, so that no time beyond all of them need be tried.
    """
    n = len(upper)
    far = 1
    for i in range(n):
        for j in range(n):
            if upper[i, j] < FREE:
                far = max(far, abs(upper[i, j]))
    far *= n - 1
    order = np.array([i for i in range(n) if i != s])
    at, end, where = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    least, depth, fresh = -1, 0, True
    while depth >= 0:
        i = order[depth]
        if fresh:
            low, high = max(-far, -upper[s, i]), min(far, upper[i, s])
            for place in range(depth):
                j = order[place]
                low, high = max(low, at[j] - upper[j, i]), min(high, at[j] + upper[i, j])
            at[i], end[i] = low - 1, high
        at[i] += 1
        fresh = at[i] <= end[i] and depth < n - 2
        if at[i] > end[i]:
            depth -= 1
        elif depth < n - 2:
            depth += 1
        else:
            first, last = -FREE, FREE
            for j in order:
                if upper[j, s] < FREE:
                    first = max(first, at[j] - upper[j, s])
                if upper[s, j] < FREE:
                    last = min(last, at[j] + upper[s, j])
            span = FREE if first == -FREE or last == FREE else last - first
            if least < 0 or span < least:
                least = span
                where[:n] = at
                where[s], where[n] = first, last
    return least, where


@njit(cache=True)
def value_of(kind: int, signs: Int64s, values: Int64s) -> int:
    """The value that the alarm compares with its level."""
    if kind == SPREAD:
        return int(values.max() - values.min())
    total = int((signs * values).sum())
    return abs(total) if kind == DISTANCE else total


@njit(cache=True)
def omit(  # noqa: PLR0917 - compiled: by position
    times: Int64s, values: Int64s, interval: int, above: bool, below: bool, order: Int64s
) -> Bools:
    """Some set from which nothing more can go: tuples are dropped in `order` as long as every closed window
    of length `interval` that holds a tuple holds a retained one with its extreme value.

    A window that begins between two ticks holds `interval` of them, one that begins on a tick one more.
    """
    n = len(times)
    keep = np.ones(n, np.bool_)
    if interval <= 0:
        return keep
    for i in order:
        keep[i] = False
        for ticks in (interval, interval + 1):
            for first in range(times[i] - ticks + 1, times[i] + 1):
                most = least = values[i]
                high = low = False
                for j in range(n):
                    if first <= times[j] < first + ticks:
                        if values[j] > most:
                            most, high = values[j], False
                        if values[j] < least:
                            least, low = values[j], False
                        high |= keep[j] and values[j] == most
                        low |= keep[j] and values[j] == least
                if (above and not high) or (below and not low):
                    keep[i] = True
                    break
            if keep[i]:
                break
    return keep


@njit(cache=True)
def missed(  # noqa: PLR0917 - compiled: by position
    upper: Int64s,
    times: Int64s,
    values: Int64s,
    keep: Bools,
    reach: Int64s,
    kind: int,
    signs: Int64s,
    level: int,
) -> tuple[int, int]:
    """Alarms of the full join, and how many of them lack a replacement: one of retained tuples, each within
    its stream's `reach` of the one that it stands for. Columns are of shape (streams, tuples).
    """
    n, size = times.shape
    at = np.zeros(n, np.int64)
    alarms = np.empty((size**n, n), np.int64)
    stand_in = np.empty(size**n, np.bool_)
    found = 0
    chosen = np.empty(n, np.int64)
    while at[n - 1] < size:
        joined, left = True, True
        for i in range(n):
            chosen[i] = values[i, at[i]]
            left &= keep[i, at[i]]
            for j in range(n):
                joined &= times[i, at[i]] - times[j, at[j]] <= upper[i, j]
        if joined and value_of(kind, signs, chosen) > level:
            alarms[found] = at
            stand_in[found] = left
            found += 1
        at[0] += 1
        for i in range(n - 1):
            if at[i] == size:
                at[i] = 0
                at[i + 1] += 1
    lost = 0
    for alarm in range(found):
        covered = stand_in[alarm]
        for other in range(found):
            if covered:
                break
            if stand_in[other]:
                covered = True
                for i in range(n):
                    covered &= abs(times[i, alarms[other, i]] - times[i, alarms[alarm, i]]) <= reach[i]
        lost += not covered
    return found, lost
