"""Matches of small series that can be computed by hand."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.similarity import Match, Pattern, Patterns

RAMP = Pattern("ramp", [0.0, 1.0, 2.0], epsilon=0.1)


def ends(pattern: Pattern, readings: list[Any]) -> list[int]:
    return [match.end for match in Patterns([pattern]).push(readings)]


def test_matches_have_name_end_distance_scale_and_shift() -> None:
    assert Patterns([RAMP]).push([7.0, 5.0, 7.0, 9.0, 8.0]) == [Match("ramp", 3, 0.0, 0.5, -2.5)]


def test_matches_come_by_their_end_then_as_patterns_were_given() -> None:
    long = Pattern("long", [0.0, 1.0, 2.0, 3.0], epsilon=0.0)
    peak = Pattern("peak", [0.0, 1.0, 0.0], epsilon=0.0)
    found = Patterns([long, peak, RAMP]).push([0, 1, 2, 3, 2, 3])
    assert [(match.pattern, match.end) for match in found] == [
        ("ramp", 2),
        ("long", 3),
        ("ramp", 3),
        ("peak", 4),
    ]


@pytest.mark.parametrize("sizes", [(6,), (1, 1, 1, 1, 1, 1), (0, 2, 4), (5, 1)])
def test_batches_make_no_difference(sizes: tuple[int, ...]) -> None:
    readings, watched, found = [1.0, 2.0, 3.0, 4.0, 4.0, 5.0], Patterns([RAMP]), []
    for size in sizes:
        found += watched.push(readings[:size])
        readings = readings[size:]
    assert [match.end for match in found] == [2, 3]


@pytest.mark.parametrize("gap", [None, nan, inf, -inf, 2e150])
def test_windows_with_a_gap_match_nothing_and_a_gap_counts(gap: float | None) -> None:
    assert ends(RAMP, [0, 1, gap, 2, 3, 4, 5, gap]) == [5, 6]


def test_scales_and_shifts_are_closed_ranges() -> None:
    window = [0.0, 2.0, 4.0]
    for scale, shift, matches in (
        ((0.5, 0.5), (0, 0), True),
        ((0.5, 1), (0, 0), True),
        ((0.1, 0.5), (0, 0), True),
        ((0.51, 1), (0, 0), False),
        (None, (0.01, 1), False),
        (None, (-1, 0), True),
        ((None, 0.5), (None, 0), True),
        ((0.5, None), (0, None), True),
    ):
        pattern = Pattern("p", RAMP.values, epsilon=0, scale=scale, shift=shift)
        assert ends(pattern, window) == ([2] if matches else []), (scale, shift)


def test_a_window_upside_down_does_not_match() -> None:
    assert ends(Pattern("p", [0, 1, 2], epsilon=0.8), [2, 1, 0]) == []
    # With a scale of at least 1/2 and a large epsilon it does: at the least scale.
    (match,) = Patterns([Pattern("p", [0, 1, 2], epsilon=2, scale=(0.5, None))]).push([2, 1, 0])
    assert (match.scale, match.shift) == (0.5, 0.5)
    assert match.distance == pytest.approx(sqrt(1.5))


def test_ties_match() -> None:
    """The distance of this window is exactly epsilon, and once more by as much as rounding may change it."""
    pattern, window = [1.0, -1.0, 1.0, -1.0], [1.0, 0.0, 0.0, -1.0]
    distance = sqrt(0.5)
    assert ends(Pattern("p", pattern, epsilon=distance), window) == [3]
    assert ends(Pattern("p", pattern, epsilon=distance * (1 + 1e-9)), window) == [3]
    assert ends(Pattern("p", pattern, epsilon=distance * (1 - 1e-9)), window) == []


def test_exact_similarity_allows_for_the_rounding_of_readings() -> None:
    values = np.random.default_rng(1).normal(size=128)
    pattern = Pattern("p", values, epsilon=0)
    assert ends(pattern, list(0.1 * values + 0.3)) == [127]
    assert ends(pattern, list(values + 1e-6 * np.arange(128) ** 2)) == []


def test_constant_windows_match_only_a_loose_pattern() -> None:
    values = [1.0, -1.0, 1.0, -1.0]
    assert ends(Pattern("p", values, epsilon=0.99), [5.0] * 9) == []
    assert ends(Pattern("p", values, epsilon=0.99, scale=(0.1, 2)), [5.0] * 9) == []
    loose = Pattern("p", values, epsilon=1.0, scale=(0.5, 2))
    assert Patterns([loose]).push([5.0] * 5) == [Match("p", end, 1.0, 1.0, -5.0) for end in (3, 4)]
    near = Pattern("p", values, epsilon=1.25, scale=(0.5, 2), shift=(0, 0))
    assert ends(near, [1.5] * 4) == [3]
    assert ends(near, [1.6] * 4) == []


def test_a_small_pattern_finds_itself_after_a_huge_spike() -> None:
    values = [0.0, 1.0, 5.0, 2.0, 3.0, 1.0]
    for offset in (0.0, 1e6, -1e9, 1e15):
        readings = [1e15 + 1, *(v + offset for v in values), 0.0, 1e12, *values]
        pattern = Pattern("p", values, epsilon=1e-3)
        assert ends(pattern, readings) == [6, 14], offset


def test_readings_that_are_no_column_of_numbers_are_refused() -> None:
    watched = Patterns([RAMP])
    for readings in ([[1.0, 2.0]], ["warm"], {"a": 1}):
        with pytest.raises(InputError, match="column"):
            watched.push(readings)  # type: ignore[arg-type]
    assert watched.push(5.0) == []


def test_names_are_unique() -> None:
    with pytest.raises(InputError, match="pattern ramp: two patterns"):
        Patterns([RAMP, RAMP])


def test_no_patterns_match_nothing() -> None:
    assert Patterns([]).push([1.0, 2.0]) == []


def test_state_continues_elsewhere() -> None:
    random = np.random.default_rng(1)
    readings = np.round(random.normal(size=500).cumsum(), 1)
    readings[[50, 300]] = nan
    patterns = [Pattern(str(n), random.normal(size=n).cumsum(), epsilon=0.3) for n in (2, 3, 5, 40)]
    whole = Patterns(patterns).push(readings)
    assert whole
    for cut in (0, 1, 3, 39, 49, 52, 301, 499):
        before, after = Patterns(patterns), Patterns(patterns)
        found = before.push(readings[:cut])
        after.load(before.dump())
        assert found + after.push(readings[cut:]) == whole, cut


def test_bytes_that_are_no_state_are_refused() -> None:
    state = Patterns([RAMP]).dump()
    for wrong in (b"", b"{}", b"[]\n", state + b"x", state.replace(b'"version":1', b'"version":2')):
        with pytest.raises(InputError, match="no state"):
            Patterns([RAMP]).load(wrong)
