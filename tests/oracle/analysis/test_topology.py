"""The omission interval against brute force: random joins of two to five streams, all of them omitting.

The promise: for every combination of the full join that raises an alarm, the retained join has one that
raises an alarm and in which every tuple lies within its own stream's interval of the tuple that it
replaces. And no interval is shorter than it has to be: two ticks more, and an alarm can be missed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.oracle.analysis.random_joins import (
    FREE,
    WEIGHED,
    least_span,
    missed,
    random_join,
)
from tests.oracle.analysis.topology_cases import everything_omits, one_tight_stream
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.analysis.topology import omission_interval
from tamis.plan.model import TimeBound

LONG = also_long(20)


@pytest.mark.parametrize("times", LONG)
def test_no_alarm_is_missed(times: int) -> None:
    random = np.random.default_rng([SEED, 1])
    alarms = omitted = 0
    for number, case in enumerate(everything_omits(random, cases(1.0) * times, longer=0)):
        assert case.missed == 0, (SEED, number, case)
        alarms += case.alarms
        omitted += case.omitted
    assert alarms > 10 * number and omitted > 2 * number


@pytest.mark.parametrize("times", LONG)
def test_the_interval_is_the_least_span_in_which_a_stream_joins(times: int) -> None:
    random = np.random.default_rng([SEED, 2])
    for number in range(cases(0.04) * times):
        join = random_join(random)
        for s, name in enumerate(join.names):
            got = omission_interval(name, join.names, join.bounds)
            least, _ = least_span(join.upper, s)
            if least >= 0:
                assert (FREE if got is None else max(got, 0)) == least, (SEED, number, join, name)


@pytest.mark.parametrize("times", LONG)
def test_an_interval_two_ticks_longer_misses_an_alarm(times: int) -> None:
    random = np.random.default_rng([SEED, 3])
    tight = 0
    for number in range(cases(0.05) * times):
        join = random_join(random)
        s = int(random.integers(len(join.upper)))
        for longer, lost in ((0, 0), (1, 0), (2, 1)):
            found = one_tight_stream(join, s, longer)
            if found is not None:
                assert (found.alarms, found.missed) == (1, lost), (SEED, number, join, s, longer)
                tight += lost
    assert tight > number / 2


def test_brute_force_sees_a_missing_replacement() -> None:
    upper = np.array([[0, 1], [1, 0]])
    times, values = np.array([[0, 3], [1, 9]]), np.array([[5, 7], [5, 0]])
    kept = np.array([[False, True], [True, True]])
    arguments = np.array([2, 2]), WEIGHED, np.array([1, 1]), 9
    assert missed(upper, times, values, np.ones((2, 2), np.bool_), *arguments) == (1, 0)
    assert missed(upper, times, values, kept, *arguments) == (1, 1)


def test_the_cases_of_the_paper() -> None:
    def within(left: str, right: str, width: int) -> TimeBound:
        return TimeBound(left, right, -width, width)

    def intervals(names: str, bounds: list[TimeBound]) -> list[int | None]:
        return [omission_interval(name, names, bounds) for name in names]

    assert intervals("ab", [within("a", "b", 5)]) == [10, 10]
    clique = [within(*pair, 5) for pair in itertools.combinations("abcd", 2)]
    assert intervals("abcd", clique) == [5, 5, 5, 5]
    # A star: the rim omits, its centre does not. A chain: its ends do.
    assert intervals("abc", [within("a", "b", 5), within("a", "c", 5)]) == [0, 10, 10]
    assert intervals("abcd", [within("a", "b", 5), within("b", "c", 5), within("c", "d", 5)]) == [
        10,
        0,
        0,
        10,
    ]
    # A clique without one pair: the two that are not bound to each other omit, the others don't.
    near = [b for b in clique if (b.left, b.right) != ("a", "b")]
    assert intervals("abcd", near) == [5, 5, 0, 0]
    # Beyond the paper: a centre whose rim is bound more tightly than the spokes are long.
    assert intervals("abc", [within("a", "b", 5), within("a", "c", 5), within("b", "c", 2)]) == [8, 2, 2]


def test_one_sided_bounds_give_no_finite_interval() -> None:
    assert omission_interval("a", "ab", [TimeBound("a", "b", 0, None)]) is None
    assert omission_interval("a", "ab", []) is None
    # Two partners bound it, one from each side, but nothing relates these two.
    bounds = [TimeBound("a", "b", 0, None), TimeBound("a", "c", None, 0)]
    assert omission_interval("a", "abc", bounds) == 0
