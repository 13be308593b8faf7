"""Ranks of values that no DOUBLE represents exactly: DOUBLEs in the order of the exact values.

Omission compares DOUBLEs. An exact value is given as a rounded part and the rounded rest (a double-double).
Mostly the rounded part itself is the rank. Where another value has the same rounded part, the rank is a
number close to it that lies between the ranks of the two neighbours. A value has no rank where no such
number exists, or where two values differ by less than their parts can express. Such a value is always
retained.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tamis.omission.columns import Bools, Floats, Int64s

_FEW = 64  # keys, and values of a key, below which forgetting gains nothing
# Distance of a new rank from its neighbours, as a share of the value: it leaves room for others in between.
_STEP = 2.0**-30


class ExactValues(NamedTuple):
    """Columns of tuples: omission key, event time, rounded value, rounded rest, and whether the sum of the
    two is exactly the value.
    """

    keys: Int64s
    times: Int64s
    values: Floats
    rest: Floats
    exact: Bools


class ExactRanks:
    """The ranks of values by key. They are kept while a tuple may still stand for another tuple."""

    def __init__(self) -> None:
        self._keys: dict[int, _KeyRanks] = {}
        self._limit = _FEW

    def __len__(self) -> int:
        return sum(len(key.values) for key in self._keys.values())

    def of(self, given: ExactValues, readings: Sequence[Hashable], alive: Int64s) -> tuple[Floats, Bools]:
        """The rank of each tuple, and a mask of those without one.

        `readings`: the inputs of a value that isn't `exact`. `alive`: the event time before which no tuple
        can stand for this tuple or a later one.
        """
        ranks, none = np.zeros(len(given.keys)), np.zeros(len(given.keys), np.bool_)
        numbers = (column.tolist() for column in (*given, alive))
        for row, (key, time, value, rest, exact, since, reading) in enumerate(
            zip(*numbers, readings, strict=True)
        ):
            known = self._keys.get(key)
            if known is None:
                known = self._keys[key] = _KeyRanks()
            rank = known.rank((value, rest), None if exact else reading, time, since)
            if rank is None:
                none[row] = True
            else:
                ranks[row] = rank
        return ranks, none

    def forget(self, before: int) -> None:
        """Forget keys without a tuple since an event time, once there are many keys."""
        if len(self._keys) > self._limit:
            self._keys = {key: known for key, known in self._keys.items() if max(known.last) >= before}
            self._limit = max(_FEW, 2 * len(self._keys))


class _KeyRanks:
    """The values of one key, ascending: their parts, ranks, last event times, and the readings of those that
    aren't exact.
    """

    __slots__ = ("last", "limit", "ranks", "readings", "values")

    def __init__(self) -> None:
        self.values: list[tuple[float, float]] = []
        self.ranks: list[float] = []
        self.last: list[int] = []
        self.readings: list[Hashable] = []
        self.limit = _FEW

    def rank(self, value: tuple[float, float], reading: Hashable, time: int, since: int) -> float | None:
        """The rank of a value; None if it has none."""
        at = bisect_left(self.values, value)
        if at < len(self.values) and self.values[at] == value:
            if self.last[at] < since:
                self.readings[at] = reading
            elif self.readings[at] != reading:
                return None
            self.last[at] = max(self.last[at], time)
            return self.ranks[at]
        low = self.ranks[at - 1] if at else -math.inf
        high = self.ranks[at] if at < len(self.ranks) else math.inf
        found = _between(low, high, value[0])
        if found is not None:
            self.values.insert(at, value)
            self.ranks.insert(at, found)
            self.last.insert(at, time)
            self.readings.insert(at, reading)
            if len(self.values) > self.limit:
                self._forget(since)
        return found

    def _forget(self, before: int) -> None:
        kept = [at for at, last in enumerate(self.last) if last >= before]
        self.values = [self.values[at] for at in kept]
        self.ranks = [self.ranks[at] for at in kept]
        self.last = [self.last[at] for at in kept]
        self.readings = [self.readings[at] for at in kept]
        self.limit = max(_FEW, 2 * len(kept))


def _between(low: float, high: float, wanted: float) -> float | None:
    """A number between two others, as close to the wanted one as leaves room on both sides; None if no
    number lies between them.
    """
    step = _STEP * max(abs(wanted), 2.0**-900)
    found = wanted
    if found - low < step:
        found = low + step
    if high - found < step:
        found = high - step
    if not low < found < high:
        found = low / 2 + high / 2
    return found if low < found < high else None
