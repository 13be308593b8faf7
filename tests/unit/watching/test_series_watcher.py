"""The columns of watches, over the readings of several keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tamis.declarations.watches import NamedPattern, Watch
from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.watching.key_history import LatestTimes
from tamis.watching.series_watcher import SeriesWatcher

VALUE = Column("", "value", Type.DOUBLE)
RAMP = NamedPattern("ramp", (0.0, 1.0, 2.0))
PEAK = NamedPattern("peak", (0.0, 4.0, 0.0, 0.0))
SECOND = 1_000_000


def push(
    watcher: SeriesWatcher, keys: Sequence[int], times: Sequence[int], values: Sequence[float | None]
) -> list[list[list[Any]]]:
    """The columns of each watch as lists."""
    columns = {("", "value"): Vector.from_list(values, Type.DOUBLE)}
    found = watcher.push(np.array(keys, np.int64), np.array(times, np.int64), columns, len(keys))
    return [[vector.to_list() for vector in one.vectors()] for one in found]


def watch(*patterns: NamedPattern, epsilon: float = 0.1, value: Any = VALUE, **ranges: Any) -> Watch:
    return Watch(value, "ANY", patterns, epsilon, **ranges)


def test_a_reading_has_the_columns_of_the_window_that_it_ends() -> None:
    keys, values = [0, 1, 0, 1, 0, 1, 0], [5.0, 0.0, 7.0, 0.0, 9.0, 0.0, 9.0]
    ((distance, scale, shift, name),) = push(SeriesWatcher([watch(RAMP)]), keys, range(7), values)
    assert distance == [None] * 4 + [0.0, None, None]
    assert scale == [None] * 4 + [0.5, None, None]
    assert shift == [None] * 4 + [-2.5, None, None]
    assert name == [None] * 4 + ["ramp", None, None]


def test_the_nearest_pattern_wins_and_the_first_of_equally_near_ones() -> None:
    rough = NamedPattern("rough", (0.0, 1.1, 2.0))
    again = NamedPattern("again", (0.0, 1.0, 2.0))
    for patterns, nearest in (((rough, again, RAMP), "again"), ((RAMP, rough, again), "ramp")):
        ((_, _, _, name),) = push(SeriesWatcher([watch(*patterns)]), [0] * 3, range(3), [1.0, 2.0, 3.0])
        assert name == [None, None, nearest]


def test_patterns_with_other_limits_of_gaps_compete() -> None:
    patient = NamedPattern("patient", (0.0, 1.1, 2.0), max_gap=10)
    strict = NamedPattern("strict", (0.0, 1.0, 2.0), max_gap=1)
    watcher = SeriesWatcher([watch(patient, strict)])
    times = [0, 1, 2, 10, 11, 12, 23, 24, 25]
    ((_, _, _, name),) = push(watcher, [0] * 9, times, [float(i) for i in range(9)])
    near, far = ["strict"], ["patient", "patient"]
    assert name == [None, None, *near, *far, *near, None, None, *near]


def test_a_window_with_null_or_too_long_a_pause_does_not_match() -> None:
    hour = 3600 * SECOND
    ((distance, *_),) = push(
        SeriesWatcher([watch(RAMP)]),
        [0] * 11,
        [0, 1, 2, 2 + hour, 3 + hour, 4 + 2 * hour, 5 + 2 * hour, *range(6 + 2 * hour, 10 + 2 * hour)],
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, None, 9.0, 10.0],
    )
    assert [number for number, one in enumerate(distance) if one is not None] == [2, 3, 4, 7]


def test_the_distance_is_at_most_epsilon_and_a_huge_scale_is_null() -> None:
    # The best distance to these values is 1 / sqrt(18), by which epsilon is exceeded a little.
    epsilon = float(np.nextafter(1 / np.sqrt(18), 0))
    ((distance, scale, _, _),) = push(
        SeriesWatcher([watch(NamedPattern("bent", (0.0, 1.0, 1.0)), epsilon=epsilon, scale=(0.5, 0.5))]),
        [0] * 3,
        range(3),
        [0.0, 1.0, 2.0],
    )
    assert distance == [None, None, pytest.approx(epsilon, rel=1e-12)]
    assert distance[2] <= epsilon
    assert scale == [None, None, 0.5]
    ((distance, scale, shift, name),) = push(
        SeriesWatcher([watch(RAMP)]), [0] * 3, range(3), [0.0, 1e-110, 2e-110]
    )
    assert (distance[2], scale[2], shift[2], name[2]) == (pytest.approx(0), None, pytest.approx(0), "ramp")


def test_each_watch_has_its_own_value_limits_and_place() -> None:
    double = Call("*", (VALUE, Literal(2.0, Type.DOUBLE)), Type.DOUBLE)
    watches = [
        watch(RAMP, scale=(0.5, 0.5)),
        watch(RAMP, scale=(0.5, 0.5), value=double),
        watch(PEAK),
        watch(RAMP, scale=(0.5, 0.5)),
    ]
    found = push(SeriesWatcher(watches), [0] * 7, range(7), [1.0, 2.0, 3.0, 5.0, 7.0, 5.0, 5.0])
    matching = [[number for number, one in enumerate(columns[0]) if one is not None] for columns in found]
    assert matching == [[4], [2], [6], [4]]


def test_batches_of_any_size_give_the_same() -> None:
    random = np.random.default_rng(1)
    count = 4000
    keys = random.integers(0, 7, count)
    times = np.cumsum(random.integers(0, 3, count)) * SECOND
    times[2000:] += 3600 * SECOND
    values: list[Any] = random.integers(0, 4, count).astype(float).tolist()
    values[700] = None
    watches = [watch(RAMP, PEAK, epsilon=0.3), watch(PEAK, epsilon=0.5), watch(RAMP, epsilon=0.2)]
    whole = push(SeriesWatcher(watches), keys.tolist(), times.tolist(), values)
    assert sum(one is not None for one in whole[0][0]) > 100
    watcher = SeriesWatcher(watches)
    parts: list[list[list[Any]]] = [[[], [], [], []] for _ in watches]
    at = 0
    while at < count:
        part = slice(at, at + int(random.integers(0, 60)))
        for all_of, found in zip(
            parts, push(watcher, keys[part].tolist(), times[part].tolist(), values[part]), strict=True
        ):
            for column, more in zip(all_of, found, strict=True):
                column.extend(more)
        at = part.stop
    assert parts == whole


def test_a_watcher_continues_from_the_needed_readings() -> None:
    random = np.random.default_rng(2)
    count = 600
    keys = random.integers(0, 5, count)
    times = np.cumsum(random.integers(0, 400, count)) * SECOND
    values = random.integers(0, 3, count).astype(float)
    values[::50] = np.nan
    near = NamedPattern("near", PEAK.values, max_gap=900 * SECOND)
    watches = [watch(RAMP, near, epsilon=0.3)]
    whole = push(SeriesWatcher(watches), keys.tolist(), times.tolist(), values.tolist())
    compared, skipped = 0, 0
    for cut in range(0, count, 20):
        watcher = SeriesWatcher(watches)
        latest = LatestTimes(watcher.most_needed)
        push(watcher, keys[:cut].tolist(), times[:cut].tolist(), values[:cut].tolist())
        latest.push(keys[:cut], np.arange(cut))
        needed = watcher.needed(int(times[cut]))
        first = latest.oldest(needed)
        watcher.forget(np.flatnonzero(needed == 0))
        again = SeriesWatcher(watches)
        start = cut if first is None else first
        skipped += start
        for continued, since in ((watcher, cut), (again, start)):
            part = slice(since, count)
            found = push(continued, keys[part].tolist(), times[part].tolist(), values[part].tolist())
            for column, expected in zip(found[0], whole[0], strict=True):
                assert column[cut - since :] == expected[cut:]
            compared += sum(one is not None for one in found[0][0][cut - since :])
    assert compared > 500
    assert skipped > 5000


def test_nothing_is_needed_of_a_series_that_ended_or_ends_with_a_gap() -> None:
    watcher = SeriesWatcher([watch(RAMP, PEAK)])
    push(watcher, [0, 0, 0, 0, 1, 2, 2], [0, 1, 2, 3, 4, 5, 6], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None])
    assert watcher.most_needed == 3
    assert watcher.needed(6).tolist() == [3, 1, 0]
    hour = 3600 * SECOND
    assert watcher.needed(hour + 3).tolist() == [3, 1, 0]
    assert watcher.needed(hour + 4).tolist() == [0, 1, 0]
    assert watcher.needed(2**63 - 1).tolist() == [0, 0, 0]
    # A watermark that began anew.
    assert watcher.needed(-(2**62)).tolist() == [3, 1, 0]


def test_the_oldest_of_the_latest_times() -> None:
    latest = LatestTimes(2)
    assert latest.oldest(np.zeros(0, np.int64)) is None
    latest.push(np.array([0, 1, 0, 0, 2]), np.array([10, 5, 11, 12, 3]))
    assert latest.oldest(np.array([2, 0, 0])) == 11
    assert latest.oldest(np.array([1, 1, 0])) == 5
    assert latest.oldest(np.array([0, 0, 0])) is None


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_latest_times_with_other_room(most: int) -> None:
    random = np.random.default_rng(most)
    keys, times = random.integers(0, 6, 60), np.arange(60)
    before = LatestTimes(3)
    before.push(keys[:40], times[:40])
    for cut in (40, 43, 60):
        found = before.keeping(most)
        found.push(keys[40:cut], times[40:cut])
        for key in range(6):
            mine = times[:cut][keys[:cut] == key].tolist()
            known = min(most, 3 + int(np.count_nonzero(keys[40:cut] == key)), len(mine))
            for count in range(1, known + 1):
                needed = np.zeros(6, np.int64)
                needed[key] = count
                assert found.oldest(needed) == mine[-count]


def test_a_watcher_of_other_patterns_continues_the_series() -> None:
    """The new pattern of three readings is as long as the old one, and matches at once."""
    late = NamedPattern("late", (2.0, 1.0, 0.0))
    before = SeriesWatcher([watch(RAMP)])
    push(before, [0, 1, 0, 1], range(4), [1.0, 3.0, 2.0, 2.0])
    after = SeriesWatcher([watch(late), watch(PEAK), watch(RAMP, value=Call("neg", (VALUE,), Type.DOUBLE))])
    after.continue_from(before)
    ((of_late, *_), (of_peak, *_), (of_other, *_)) = push(after, [0, 1], [4, 5], [3.0, 1.0])
    assert [one is not None for one in of_late] == [False, True]
    assert of_peak == of_other == [None, None]
    same = SeriesWatcher([watch(RAMP)])
    same.continue_from(after)
    ((of_ramp, *_),) = push(same, [0, 1], [6, 7], [4.0, 2.0])
    assert [one is not None for one in of_ramp] == [True, False]


def test_bytes_per_key_count_all_indexes() -> None:
    one, other = watch(RAMP), watch(NamedPattern("slow", RAMP.values, max_gap=7))
    alone = [SeriesWatcher([each]).bytes_per_key - 8 for each in (one, other)]
    assert SeriesWatcher([one, other]).bytes_per_key == 8 + sum(alone)
    assert SeriesWatcher([one, one]).bytes_per_key == 8 + alone[0]
