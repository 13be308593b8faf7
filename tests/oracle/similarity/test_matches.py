"""Matches of random series compared with direct computation: none is missed, and none is too many."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.similarity.direct_distance import least_distances, least_square
from tests.oracle.similarity.random_series import Floats, Shape, ends, series, shapes

from tamis.similarity import Match, Pattern, Patterns

# Closer to epsilon, relative to the greater of epsilon and deviation, neither answer is wrong.
UNDECIDED = 1e-9


def check(readings: Floats, made: list[Shape], matches: list[Match]) -> tuple[int, int]:
    """Compare the matches with direct computation; returns the numbers of windows and of matches."""
    found = {(match.pattern, match.end): match for match in matches}
    assert len(found) == len(matches)
    assert [match.end for match in matches] == sorted(match.end for match in matches)
    windows = 0
    for number, shape in enumerate(made):
        n = len(shape.values)
        if n > len(readings):
            continue
        scale, shift = ends(shape.scale, 0.0), ends(shape.shift, -inf)
        slides = np.lib.stride_tricks.sliding_window_view(readings, n)
        whole = np.flatnonzero(np.isfinite(slides).all(axis=1))
        distances = least_distances(shape.values, slides[whole], scale, shift)
        windows += len(slides)
        margin = UNDECIDED * max(shape.epsilon, float(shape.values.std()))
        for at, distance in zip(whole.tolist(), distances, strict=True):
            match = found.pop((str(number), at + n - 1), None)
            if match is None:
                assert not distance <= shape.epsilon - margin, f"missed: {shape}, window at {at}"
                assert distance > 0, f"missed: {shape}, window at {at}"
                continue
            assert distance <= shape.epsilon + margin, f"extra: {shape}, {match}"
            assert abs(match.distance - distance) <= margin, f"distance: {shape}, {match}, {distance}"
            assert match.scale > 0
            assert scale[0] <= match.scale <= scale[1]
            assert shift[0] <= match.shift <= shift[1]
    assert not found, f"matches of windows with gaps: {found}"
    return windows, len(matches)


def patterns_of(made: list[Shape]) -> list[Pattern]:
    return [
        Pattern(str(number), shape.values, epsilon=shape.epsilon, scale=shape.scale, shift=shape.shift)
        for number, shape in enumerate(made)
    ]


def in_parts(random: np.random.Generator, watched: Patterns, readings: Floats) -> list[Match]:
    """Push the readings in batches of random sizes."""
    found, at = [], 0
    while at < len(readings):
        size = int(random.choice([1, 7, 100, 1000]))
        found += watched.push(readings[at : at + size])
        at += size
    return found


@pytest.mark.parametrize("times", also_long(30))
def test_matches_are_those_of_direct_computation(times: int) -> None:
    random = np.random.default_rng([SEED, times])
    wanted, windows, matches = cases(6) * times, 0, 0
    while windows < wanted:
        readings = series(random, int(random.integers(50, 2000)))
        made = shapes(random, readings, int(random.integers(1, 60)))
        more = check(readings, made, in_parts(random, Patterns(patterns_of(made)), readings))
        windows, matches = windows + more[0], matches + more[1]
    assert matches > windows / 1000, "the search has looked at few matches"


NUMBERS = st.integers(-6, 6).map(float) | st.floats(-1e3, 1e3, allow_subnormal=False)
SCALES = st.sampled_from([(-inf, inf), (0.0, 3.0), (-2.0, 0.5), (0.5, inf), (1.0, 1.0), (0.5, 3.0)])
SHIFTS = st.sampled_from([(-inf, inf), (0.0, 0.0), (-2.0, 3.0), (-inf, 1.0), (0.5, inf), (-1e5, -2.0)])


@given(
    st.integers(2, 6).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)),
    SCALES,
    SHIFTS,
    st.sampled_from([0.0, 1e9, -1e5, 123.456]),
    st.floats(0.0, 2.0),
)
def test_one_window_in_fractions(
    pair: tuple[list[float], list[float]],
    scale: tuple[float, float],
    shift: tuple[float, float],
    offset: float,
    share: float,
) -> None:
    values, window = pair[0], [v + offset for v in pair[1]]
    deviation = float(np.std(values))
    assume(deviation > 1e-6)
    epsilon = share * deviation * (0.49 if scale[0] <= 0 else 1)
    pattern = Pattern("p", values, epsilon=epsilon, scale=scale, shift=shift)
    square, at = least_square(values, window, scale, shift)
    matches = Patterns([pattern]).push(window)
    limit, margin = Fraction(pattern.epsilon), Fraction(UNDECIDED * max(pattern.epsilon, deviation))
    if at > 0 and square <= max(limit - margin, Fraction(0)) ** 2:
        assert len(matches) == 1
    if square > (limit + margin) ** 2 or at == 0:
        assert matches == []
    for match in matches:
        assert abs(match.distance - float(square) ** 0.5) <= margin
