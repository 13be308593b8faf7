"""Brute-force oracles of bracket omission, and random recordings. Shares no code with the kernels."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Recording:
    """One key's tuples in order of time, and a rule."""

    times: list[int]
    values: list[float]
    interval: int
    sides: str

    @property
    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        return np.array(self.times, np.int64), np.array(self.values, np.float64)


def recording(r: random.Random, most: int = 12) -> Recording:
    """Random tuples: ties, plateaus, ramps, bursts, gaps and equal times."""
    n = r.randint(0, most)
    steps: Sequence[int] = r.choice([(1,), (0, 1, 2), (0, 1, 1, 9), range(10)])
    times = list(itertools.accumulate((r.choice(steps) for _ in range(n)), initial=r.randint(-20, 20)))[:n]
    levels = r.choice((1, 2, 3, 5, 100))
    kind = r.randrange(4)
    values: list[float] = []
    for _ in range(n):
        last = values[-1] if values else 0.0
        if kind == 0:
            values.append(float(r.randint(0, levels)))
        elif kind == 1:
            values.append(last + r.randint(-1, 1))
        elif kind == 2:
            values.append(last if r.random() < 0.7 else float(r.randint(0, levels)))
        else:
            values.append(last + r.choice((0, 1)))
    if r.random() < 0.1:
        values = [r.choice((v, np.inf, -np.inf, -0.0)) for v in values]
    return Recording(
        times, values, r.choice((1, 2, 3, 4, 6, 9, 15, 40)), r.choice(("above", "below", "both"))
    )


def windows(times: npt.NDArray[np.int64], interval: int) -> Bools:
    """Every closed window of length `interval` that holds a tuple, as a row of which tuples it holds.

    As the window moves, what it holds changes only where an end meets a tuple; so the windows at these
    places and half a tick before and after are all there are (times are counted in half ticks here).
    """
    at, length = 2 * times, 2 * interval
    meets = np.concatenate([at, at - length])
    starts = np.unique(np.concatenate([meets - 1, meets, meets + 1]))[:, None]
    holds: Bools = (starts <= at) & (at <= starts + length)
    return np.unique(holds[holds.any(axis=1)], axis=0)


def extremes(record: Recording) -> list[Bools]:
    """For every window and side: which tuples attain the window's extreme value. A retained one must be
    among them."""
    times, values = record.arrays
    rows = []
    for holds in windows(times, record.interval):
        if record.sides != "below":
            rows.append(holds & (values == values[holds].max()))
        if record.sides != "above":
            rows.append(holds & (values == values[holds].min()))
    return rows


def signs(sides: str) -> tuple[int, ...]:
    """1 where maxima count, -1 where minima do."""
    return {"above": (1,), "below": (-1,), "both": (1, -1)}[sides]


def missed(record: Recording, keep: Bools) -> int:
    """How many windows lack a retained tuple with their extreme value."""
    return sum(not (row & keep).any() for row in extremes(record))


def fewest(record: Recording) -> int:
    """The least number of tuples that no window misses, by trying all sets."""
    n = len(record.times)
    wanted = np.unique([int(sum(1 << i for i in np.flatnonzero(row))) for row in extremes(record)]).astype(
        np.int64
    )
    sets = np.arange(1 << n)
    hits = ((sets[:, None] & wanted) != 0).all(axis=1)
    return min(int(s).bit_count() for s in sets[hits])


def strict_rule(record: Recording) -> int:
    """How many tuples Algorithm 1 leaves: those that aren't bracketed on every side, exact duplicates
    once."""
    tuples = sorted(set(zip(record.times, (v + 0.0 for v in record.values), strict=True)))

    def bracketed(t: int, v: float, sign: int) -> bool:
        greater = [s for s, u in tuples if sign * u > sign * v]
        return any(a <= t <= b and b - a <= record.interval for a in greater for b in greater)

    return sum(not all(bracketed(t, v, sign) for sign in signs(record.sides)) for t, v in tuples)
