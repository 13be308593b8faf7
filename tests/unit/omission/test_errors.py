"""Errors and edge cases of bracket omission."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.omission import OmissionState, retained, retained_by_key

FIRST, LAST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("arguments", "rule", "message"),
    [
        (([0], [float("nan")], 1), {}, r"values\[0\]: NaN"),
        (([0, 1], [1.0, float("nan")], 1), {}, r"values\[1\]: NaN"),
        (([0], [1.0], -1), {}, "interval is -1"),
        (([0], [1.0], 1), {"sides": "left"}, "sides 'left'.*above, below, both"),
        (([0], [1.0], 1), {"ties": "most"}, "ties 'most'.*fewest, strict"),
        (([0], [1.0], 1), {"max_delay": -1}, "max_delay is -1"),
        (([0.5], [1.0], 1), {}, "times is of type float64"),
        (([2**63], [1.0], 1), {}, "times is of type uint64"),
        (([0], ["warm"], 1), {}, "values is of type"),
        (([0, 1], [1.0], 1), {}, "columns differ in length"),
        (([[0]], [[1.0]], 1), {}, "2 dimensions"),
    ],
)
def test_what_means_nothing_is_refused(
    arguments: tuple[Any, Any, int], rule: dict[str, Any], message: str
) -> None:
    with pytest.raises(TamisError, match=message) as caught:
        retained(*arguments, **rule)
    assert isinstance(caught.value, ValueError)


def test_a_stream_refuses_the_same() -> None:
    with pytest.raises(TamisError, match="interval is -1"):
        OmissionState(-1)
    with pytest.raises(TamisError, match="sides"):
        OmissionState(1, "up")  # type: ignore[arg-type]
    with pytest.raises(TamisError, match="max_delay is -2"):
        OmissionState(1, "both", -2)
    state = OmissionState(1)
    with pytest.raises(TamisError, match=r"values\[1\]: NaN"):
        state.offer([0, 0], [0, 1], [0.0, float("nan")], [0, 1], 0)
    with pytest.raises(TamisError, match="columns differ"):
        state.offer([0], [0, 1], [0.0, 1.0], [0, 1], 0)
    assert state.size() == 0


def test_nothing_and_one_tuple() -> None:
    assert retained([], [], 5).tolist() == []
    assert retained([7], [1.0], 5).tolist() == [True]
    assert retained_by_key([], [], [], 5).tolist() == []
    state = OmissionState(5)
    assert [x.tolist() for x in state.decide(0, 0)] == [[], []]
    state.offer([], [], [], [], 0)
    assert [x.tolist() for x in state.decide(LAST, 0)] == [[], []]
    state.offer([3], [7], [1.0], [0], 0)
    assert [x.tolist() for x in state.decide(7, 0)] == [[0], []]


@pytest.mark.parametrize("rule", [{"interval": 0}, {"interval": 9, "max_delay": 0}])
def test_without_omission_all_leave_at_once(rule: dict[str, Any]) -> None:
    assert retained([0, 1, 1, 2], [2.0, 1.0, 1.0, 2.0], **rule).all()
    state = OmissionState(**rule)
    state.offer([0, 0, 0], [0, 1, 2], [2.0, 1.0, 2.0], [10, 11, 12], 0)
    assert [x.tolist() for x in state.decide(FIRST, 0)] == [[10, 11, 12], []]
    assert state.size() == 0 and state.next_deadline() is None


@pytest.mark.parametrize("interval", [2**63 - 1, 2**64 - 2, 2**64 - 1, 2**64, 10**30])
def test_times_and_intervals_at_the_ends_of_int64(interval: int) -> None:
    times, values = [FIRST, -1, 0, LAST], [3.0, 1.0, 2.0, 3.0]
    # The brackets are 2^63 ticks apart, from the first tick to 0, and 2^64 - 1, from the first to the last.
    expected = [True, interval < 2**63, interval < 2**64 - 1, True]
    assert retained(times, values, interval, sides="above").tolist() == expected
    state = OmissionState(interval, "above", 10**30)
    state.offer([0] * 4, times, values, [0, 1, 2, 3], LAST)
    published, dropped = state.decide(LAST, 0)
    assert published.tolist() == [i for i in range(4) if expected[i]]
    assert dropped.tolist() == [i for i in range(4) if not expected[i]]


def test_at_the_end_of_the_clock_only_what_is_due_is_published() -> None:
    for delay, published in ((None, []), (10**30, []), (5, [1])):
        state = OmissionState(10, "above", delay)
        state.offer([0, 0], [0, 1], [2.0, 1.0], [0, 1], 0)
        assert state.decide(0, 0).published.tolist() == [0]
        assert state.decide(0, LAST).published.tolist() == published


def test_only_closed_windows_shorter_than_the_gap_see_what_lies_in_it() -> None:
    assert retained([0, 1, 4], [5.0, 1.0, 5.0], 4, sides="above").tolist() == [True, False, True]
    assert retained([0, 1, 4], [5.0, 1.0, 5.0], 3, sides="above").tolist() == [True, True, True]


def test_a_plateau_leaves_one_tuple_for_each_interval_and_strict_leaves_all() -> None:
    times, values = range(100), [1.0] * 100
    assert np.flatnonzero(retained(times, values, 9)).tolist() == list(range(0, 100, 9))
    assert retained(times, values, 9, ties="strict").all()
    assert retained([5] * 8, [1.0] * 8, 9, ties="strict").sum() == 1


def test_infinite_and_signed_zero_values_have_their_place_in_the_order() -> None:
    inf = float("inf")
    assert retained([0, 1, 2], [inf, 0.0, inf], 2, sides="above").tolist() == [True, False, True]
    assert retained([0, 1, 2], [0.0, -0.0, 0.0], 9, sides="above").tolist() == [True, False, True]
    assert retained([0, 1, 2], [-inf, -inf, -inf], 9).tolist() == [True, False, True]


def test_the_counter_example_of_half_open_windows_is_safe_when_closed() -> None:
    """cai-2021, section 3.4, with the interval that closed windows take its half-open one for."""
    assert retained([0, 1, 2, 3, 4], [3.0, 1.0, 0.0, 2.0, 4.0], 2, sides="above").tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_a_new_extreme_leaves_at_once_and_the_rest_waits() -> None:
    state = OmissionState(10, "both", 100)
    state.offer([0], [0], [5.0], [0], 1000)
    assert state.decide(-5, 1000).published.tolist() == [0]
    state.offer([0, 0, 0], [4, 2, 3], [5.0, 4.0, 9.0], [1, 2, 3], 1001)
    assert state.decide(-1, 1001).published.tolist() == [2, 3]
    assert state.held_ids().tolist() == [1] and state.held()[1].tolist() == [4]
    assert state.next_deadline() == 1101
    assert state.decide(-1, 1101).published.tolist() == [1]
    assert state.next_deadline() is None and not state.held()[1].size


def test_a_deadline_passes_to_a_left_bracket_that_came_later() -> None:
    state = OmissionState(4, "above", 10)
    arrivals = [(0, 0, 9.0, [0], []), (0, 4, 1.0, [], []), (8, 3, 5.0, [], []), (9, 5, 5.0, [3], [1])]
    for i, (now, time, value, published, dropped) in enumerate(arrivals):
        state.offer([0], [time], [value], [i], now)
        assert [x.tolist() for x in state.decide(-100, now)] == [published, dropped]
    # The tuple at 4 is dropped; in the window from 0.5 to 4.5 only the one at 3 can stand for it.
    assert state.next_deadline() == 10
    assert state.decide(-100, 10).published.tolist() == [2]


def test_what_another_entry_publishes_is_no_longer_held_and_counts() -> None:
    state = OmissionState(10, "above")
    state.offer([0, 0], [0, 1], [5.0, 4.0], [0, 1], 0)
    assert state.decide(1, 0).published.tolist() == [0]
    state.note_published([1, 999])
    assert state.held_ids().size == 0
    state.offer([0], [3], [4.0], [2], 0)
    state.note_published([2])
    state.offer([0, 0], [5, 11], [4.0, 6.0], [3, 4], 0)
    decided = state.decide(12, 0)
    assert decided.published.tolist() == [4] and decided.dropped.tolist() == [3]


def test_a_key_is_forgotten_when_it_can_bracket_nothing_any_more() -> None:
    state = OmissionState(10)
    state.offer(range(1000), range(1000), [1.0] * 1000, range(1000), 0)
    state.decide(1000, 0)
    assert state.size() <= 11
    state.decide(1010, 0)
    assert state.size() == 0


def test_what_comes_late_is_published_and_forgotten() -> None:
    state = OmissionState(10)
    state.offer([0, 0], [0, 30], [5.0, 4.0], [0, 1], 0)
    assert state.decide(31, 0).published.tolist() == [0, 1]
    state.offer([0, 0, 1], [29, 31, 30], [1.0, 1.0, 1.0], [2, 3, 4], 0)
    state.note_published([4])
    size = state.size()
    assert state.decide(31, 0).published.tolist() == [2, 3] and state.size() == size - 2
    state.decide(LAST, 0)
    state.offer([0, 0], [LAST, 50], [1.0, 1.0], [5, 6], 0)
    assert state.decide(LAST, 0).published.tolist() == [5, 6] and state.size() == 0


def test_many_keys_are_decided_as_each_by_itself() -> None:
    random = np.random.default_rng(1)
    n, keys = 20_000, 3_000
    code = random.choice(np.concatenate([np.arange(keys), [FIRST, LAST]]), n)
    times, values = np.sort(random.integers(0, 300, n)), np.round(random.normal(size=n), 1)
    keep = retained_by_key(code, times, values, 100)
    for key in np.unique(code)[::100]:
        mine = code == key
        assert keep[mine].tolist() == retained(times[mine], values[mine], 100).tolist()
    state = OmissionState(100)
    published = []
    for part in np.split(np.arange(n), np.flatnonzero(np.diff(times)) + 1):
        state.offer(code[part], times[part], values[part], part, 0)
        published.append(state.decide(int(times[part[0]]), 0).published)
    published.append(state.decide(LAST, 0).published)
    got = np.concatenate(published)
    assert np.unique(code[got], return_counts=True)[1].tolist() == (
        np.unique(code[keep], return_counts=True)[1].tolist()
    )
