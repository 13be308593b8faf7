"""The comparison of nearest neighbours against the whole rule, applied to every row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.omission.brute_force import Bools
from tests.oracle.random_cases import SEED, cases

from tamis.omission.bracket_sweep import sweep
from tamis.omission.columns import NEVER, Floats, Int64s, Sides, as_span
from tamis.omission.nearest_neighbours import by_neighbours

SIDES: tuple[Sides, ...] = ("above", "below", "both")
LAST = 2**63 - 1
# Around what is done together: lanes, tuples that are looked at, blocks, and what a block sees of others.
SIZES = (
    64,
    65,
    95,
    96,
    97,
    127,
    128,
    460,
    461,
    463,
    511,
    512,
    513,
    514,
    562,
    563,
    564,
    1_023,
    1_024,
    1_100,
    1_536,
)


def whole_rule(columns: tuple[Int64s, Int64s, Floats], interval: int, sides: Sides, strict: bool) -> Bools:
    return sweep(*columns, as_span(interval), sides != "below", sides != "above", strict, NEVER)


def checked(keys: Int64s, times: Int64s, values: Floats, interval: int, *case: object) -> tuple[int, int]:
    """How often the rows could be decided so, and how often with equal values among them."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(keys) != 0, [True]]))
    decided = unsettled = 0
    for sides in SIDES:
        found = by_neighbours(times, values, starts, as_span(interval), sides)
        if found is None:
            continue
        keep, settled = found
        decided, unsettled = decided + 1, unsettled + (not settled)
        for strict in (True, False):
            expected = whole_rule((keys, times, values), interval, sides, strict)
            got = keep.copy()
            if not settled:
                left = np.flatnonzero(keep)
                got[left] = whole_rule((keys[left], times[left], values[left]), interval, sides, strict)
            assert (got == expected).all(), (
                SEED,
                *case,
                interval,
                sides,
                strict,
                np.flatnonzero(got != expected),
            )
    return decided, unsettled


def some_values(r: np.random.Generator, n: int) -> Floats:
    walk = np.cumsum(r.normal(size=n))
    values: Floats = [
        r.random(n),
        walk,
        np.rint(walk * 1_000),
        np.round(r.random(n), 3),
        np.where(r.random(n) < 0.99, r.random(n), -0.0) * np.where(r.random(n) < 0.5, 1, -1),
        r.normal(size=n) * 10.0 ** int(r.integers(-300, 300)),
        r.normal(size=n) * 10.0 ** r.integers(-320, 300, n),
        r.random(n) * 1e-310,
        (r.random(n) - 0.5) * 1.7e308,
        1e15 + np.rint(walk * 10),
        np.sort(r.random(n)) + r.random(n) * 0.02,
    ][r.integers(11)]
    if r.random() < 0.1:
        values[r.integers(n)] = float(r.choice((np.inf, -np.inf, 1e12, -1e300, 0.0, -0.0)))
    return values


def some_times(r: np.random.Generator, n: int) -> Int64s:
    gaps = [
        np.ones(n, np.int64),
        r.integers(1, 20, n),
        np.rint(r.gamma(0.5, 20, n)).astype(np.int64) + 1,
        np.where(r.random(n) < 0.004, 10 ** int(r.integers(1, 6)), r.integers(1, 4, n)),
    ][r.integers(4)] * int(r.choice((1, 1, 997, 10**6, 10**12)))
    times = np.cumsum(gaps)
    start = int(r.choice((0, -(2**63), LAST - int(times[-1]), -int(times[-1]) // 2)))
    return np.asarray(times - times[0] + start, np.int64)


def test_neighbours_decide_as_the_whole_rule_does() -> None:
    r = np.random.default_rng((SEED, 1))
    tried = decided = unsettled = 0
    for case in range(cases(0.04)):
        sizes = r.choice(SIZES, int(r.integers(1, 4)))
        keys = np.repeat(np.arange(len(sizes)), sizes)
        times, values = some_times(r, len(keys)), some_values(r, len(keys))
        gap = int(np.median(np.diff(times)))
        interval = max(1, int(gap * r.choice((0.5, 1, 2, 3.7, 10, 20, 33, 48))) + int(r.integers(-1, 2)))
        found = checked(keys, times, values, interval, case)
        tried, decided, unsettled = tried + len(SIDES), decided + found[0], unsettled + found[1]
    assert decided > tried / 3 and unsettled > tried / 50, (tried, decided, unsettled)


@pytest.mark.parametrize("apart", [1, 2, 9, 10, 11, 12, 19, 20, 21, 22, 30, 60])
def test_equal_values_are_seen_wherever_they_stand(apart: int) -> None:
    """A pair with nothing greater in between, at every place of a block, below, at and above the interval."""
    r = np.random.default_rng((SEED, apart))
    n = 1_100
    for place in r.integers(0, n - apart, 12):
        values = r.random(n)
        values[place] = values[place + apart] = 2.0
        values[place + 1 : place + apart] = 0.5 * r.random(apart - 1)
        for gaps in (np.ones(n, np.int64), np.where(np.arange(n) == place, 9, 1)):
            times = np.cumsum(gaps)
            between = int(times[place + apart] - times[place])
            for interval in {max(1, between - 1), between, between + 1}:
                checked(np.zeros(n, np.int64), times, values, interval, apart, place)


def column(*values: float) -> npt.NDArray[np.float64]:
    return np.concatenate([np.arange(100.0) % 7 + np.arange(100) / 1_000, np.array(values)])


def test_it_leaves_to_others_what_it_can_not_see() -> None:
    values = column(3.0, 1.0)
    times, starts = np.arange(102), np.array([0, 102])

    def found(at: Int64s, value: Floats, interval: int = 9, borders: Int64s = starts) -> object:
        return by_neighbours(at, value, borders, as_span(interval), "both")

    assert found(times, values) is not None
    for place in (0, 50, 101):
        for value in (np.nan, np.inf, -np.inf):
            worse = values.copy()
            worse[place] = value
            assert found(times, worse) is None
    for row in (1, 50, 101):
        for back in (1, 2):
            later = times.copy()
            later[row] -= back
            assert found(later, values) is None
    assert found(times, np.ones(102)) is None
    random, borders = np.random.default_rng(1).random(3_000), np.array([0, 3_000])
    assert found(np.arange(3_000), random, 9, borders) is not None
    assert found(np.arange(3_000), random, 1_000, borders) is None
    assert found(times * 2**56, values, 2**58) is None
    assert found(times, values, borders=np.array([0, 30, 102])) is None
