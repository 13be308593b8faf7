"""Random recordings, many at a time, and their windows and extremes by brute force.

Shares no code with the kernels. A row is a recording. Event times are small, so that half ticks and sums stay
exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.oracle.omission.brute_force import Bools, signs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SIDES = ("above", "below", "both")


@dataclass(frozen=True)
class Recordings:
    """Tuples in order of time, a key's in each row, and one rule for all; `there` is false behind a row's
    end."""

    times: Ints
    values: Floats
    there: Bools
    interval: int
    sides: str

    @property
    def columns(self) -> tuple[Ints, Ints, Floats]:
        """Keys, times and values of all tuples, as the kernels take them."""
        return np.nonzero(self.there)[0], self.times[self.there], self.values[self.there]

    def masked(self, column: Bools) -> Bools:
        """A column over all tuples as rows."""
        rows = np.zeros(self.there.shape, np.bool_)
        rows[self.there] = column
        return rows

    def row(self, case: int) -> str:
        """One recording, to be shown."""
        t, v = self.times[case][self.there[case]], self.values[case][self.there[case]]
        return f"times={t.tolist()}, values={v.tolist()}, interval={self.interval}, sides={self.sides!r}"


def recordings(random: np.random.Generator, count: int, most: int, *, finite: bool = False) -> Recordings:
    """Up to `most` tuples in each of `count` rows: ties, plateaus, ramps, walks, bursts, gaps."""
    shape = (count, most)
    steps = np.array(
        [
            np.ones(shape, np.int64),
            random.integers(0, 3, shape),
            random.choice((0, 1, 1, 9), shape),
            random.integers(0, 10, shape),
            np.where(random.random(shape) < 0.1, 40, random.integers(0, 2, shape)),
        ]
    )
    rows = np.arange(count)
    times = random.integers(-20, 20, (count, 1)) + steps[random.integers(0, len(steps), count), rows].cumsum(
        1
    )
    levels = random.choice((1, 2, 3, 5, 100), (count, 1))
    level = random.integers(0, levels + 1, shape).astype(np.float64)
    # On a plateau the last level goes on until the next one begins.
    begin = np.where(random.random(shape) < 0.3, np.arange(most), 0)
    kinds = np.array(
        [
            level,
            random.integers(-1, 2, shape).cumsum(1),
            level[rows[:, None], np.maximum.accumulate(begin, axis=1)],
            random.integers(0, 2, shape).cumsum(1),
            -random.integers(0, 2, shape).cumsum(1),
            random.normal(size=shape).cumsum(1),
        ]
    )
    values = kinds[random.integers(0, len(kinds), count), rows]
    if not finite:
        odd = (random.random(shape) < 0.7) & (random.random((count, 1)) < 0.1)
        values = np.where(odd, random.choice((np.inf, -np.inf, -0.0), shape), values)
    there = np.arange(most) < random.integers(0, most + 1, (count, 1))
    interval = int(random.choice((1, 2, 3, 4, 6, 9, 15, 40)))
    return Recordings(times, values, there, interval, str(random.choice(SIDES)))


def windows(record: Recordings) -> Bools:
    """Which tuples each closed window of length `interval` holds, of shape (rows, windows, tuples); some
    twice.

    As a window moves, what it holds changes only where one of its ends meets a tuple; so those at these
    places and half a tick before and after are all there are (times are counted in half ticks here).
    """
    at, length = 2 * record.times, 2 * record.interval
    meets = np.concatenate([at, at - length], axis=1)
    starts = np.concatenate([meets - 1, meets, meets + 1], axis=1)[:, :, None]
    at = at[:, None, :]
    holds: Bools = (starts <= at) & (at <= starts + length) & record.there[:, None, :]
    return holds


def extremes(record: Recordings, holds: Bools) -> list[Bools]:
    """Which tuples attain the greatest value of each window, and the least, as far as sides ask for it."""
    order = np.unique(record.values, return_inverse=True)[1].reshape(record.values.shape)[:, None, :] + 1
    sides = []
    for sign in signs(record.sides):
        rank = np.where(holds, order if sign > 0 else order.max(initial=0) + 1 - order, 0)
        sides.append(holds & (rank == rank.max(axis=2, keepdims=True, initial=0)))
    return sides


def missed(record: Recordings, keep: Bools) -> Ints:
    """How many windows of each row hold a tuple, but none of `keep` with their extreme value."""
    holds = windows(record)
    some = holds.any(axis=2)
    lacking = [some & ~(side & keep[:, None, :]).any(axis=2) for side in extremes(record, holds)]
    number: Ints = np.sum([side.sum(axis=1) for side in lacking], axis=0)
    return number


def lacking_in_time(record: Recordings, arrived: Ints, published: Ints, max_delay: int) -> Bools:
    """Which tuples are in a window in which no tuple as extreme was published by their deadline.

    `published`: a time that is later than every deadline for those that weren't. Among the windows with the
    tuple one lacks it if its neighbours that don't leave enough room.
    """
    t, far = record.times, np.int64(10**9)
    in_time = record.there[:, None, :] & (published[:, None, :] <= (arrived + max_delay)[:, :, None])
    lacking = np.zeros(t.shape, np.bool_)
    for sign in signs(record.sides):
        v = sign * record.values
        stands_in = in_time & (v[:, None, :] >= v[:, :, None])
        before = np.where(stands_in & (t[:, None, :] <= t[:, :, None]), t[:, None, :], -far).max(
            axis=2, initial=-far
        )
        after = np.where(stands_in & (t[:, None, :] >= t[:, :, None]), t[:, None, :], far).min(
            axis=2, initial=far
        )
        lacking |= (after - before > record.interval) & (before != t) & (after != t)
    return lacking & record.there
