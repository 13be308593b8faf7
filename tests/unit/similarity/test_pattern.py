"""Patterns that are accepted or refused, and the limits on the windows that may match them."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.similarity import Pattern, distance, internal_query

RAMP = [0.0, 1.0, 2.0, 3.0]
DEVIATION = sqrt(1.25)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0], {}, "at least two"),
        ([2.0, 2.0], {}, "all equal"),
        ([1.0, nan], {}, "value 1 is nan"),
        (RAMP, {"epsilon": -0.1}, "epsilon is -0.1"),
        (RAMP, {"epsilon": nan}, "epsilon is nan"),
        (RAMP, {"epsilon": inf}, "epsilon is inf"),
        (RAMP, {"epsilon": "small"}, "epsilon is 'small'"),
        (RAMP, {"scale": (2, 1)}, "scale from 2 to 1 is empty"),
        (RAMP, {"scale": (-1, 0)}, "no scale up to 0"),
        (RAMP, {"scale": (nan, 1)}, "scale is nan"),
        (RAMP, {"scale": 1.0}, "scale is 1.0.*pair"),
        (RAMP, {"shift": (1, 2, 3)}, r"shift is \(1, 2, 3\).*pair"),
        (RAMP, {"shift": (inf, inf)}, "shift from inf to inf is empty"),
        (RAMP, {"shift": (1, -1)}, "shift from 1 to -1 is empty"),
    ],
)
def test_what_means_nothing_is_refused(values: list[float], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"pattern p: .*{message}"):
        Pattern("p", values, **{"epsilon": 0.1, **options})


@pytest.mark.parametrize("scale", [None, (0, 2), (-1, None), (None, 5)])
@pytest.mark.parametrize(
    ("shift", "least"),
    [(None, DEVIATION), ((0, 2), DEVIATION), ((2.5, 3), sqrt(2.25)), ((-inf, -1.5), sqrt(10.25))],
)
def test_an_epsilon_that_every_window_passes_is_refused_with_the_limit(
    scale: Any, shift: Any, least: float
) -> None:
    Pattern("p", RAMP, epsilon=0.999 * least, scale=scale, shift=shift)
    # The allowance for rounding lets windows pass up to 1e-12 above epsilon.
    for epsilon in (least * (1 - 0.9e-12), least * (1 + 1e-12), 10 * least):
        with pytest.raises(InputError, match=f"every window would match.*less than {least:.6g}"):
            Pattern("p", RAMP, epsilon=epsilon, scale=scale, shift=shift)
    # With a least scale, windows with large deviations don't match.
    Pattern("p", RAMP, epsilon=10 * least, scale=(0.1, None), shift=shift)


def test_values_and_ranges_can_be_read() -> None:
    given = np.array(RAMP)
    pattern = Pattern("p", given, epsilon=0.5, scale=(-3, None), shift=(None, 7))
    given[0] = 9.0
    assert pattern.values.tolist() == RAMP
    assert (pattern.scale, pattern.shift) == ((0, inf), (-inf, 7))
    assert (len(pattern), pattern.mean, pattern.deviation) == (4, 1.5, DEVIATION)
    assert repr(pattern) == "Pattern('p', <4 values>, epsilon=0.5, scale=(0.0, inf), shift=(-inf, 7.0))"


def test_limits_are_those_of_figure_7_2_with_its_rows_exchanged() -> None:
    pattern = Pattern("p", [8.0, 12.0], epsilon=1.0, scale=(0.5, 4.0), shift=(-3.0, 3.0))
    query = internal_query(pattern)
    assert query.distance == pytest.approx(sqrt(2 - 2 * sqrt(1 - 0.25)))
    assert query.deviation == pytest.approx((1 / 4, 3 / 0.5))
    assert query.mean == pytest.approx(((10 - 3 - 1) / 4, (10 + 3 + 1) / 0.5))


def test_negative_numerators_take_the_other_end_of_the_scales() -> None:
    query = internal_query(Pattern("p", [-2.0, 2.0], epsilon=1.0, scale=(0.5, 4.0), shift=(-3.0, 3.0)))
    assert query.mean == pytest.approx((-4 / 0.5, 4 / 0.5))
    query = internal_query(Pattern("p", [-12.0, -8.0], epsilon=1.0, scale=(0.5, 4.0), shift=(-3.0, 3.0)))
    assert query.mean == pytest.approx((-14 / 0.5, -6 / 4))


def test_open_ranges_give_open_limits() -> None:
    query = internal_query(Pattern("p", RAMP, epsilon=0.5))
    assert query.deviation == (0.0, inf)
    assert query.mean == (-inf, inf)
    assert internal_query(Pattern("p", RAMP, epsilon=2.0, scale=(1, 1))).distance == inf


def test_the_limit_of_the_distance_is_attained() -> None:
    """A window at exactly that similarity distance is at epsilon from the pattern."""
    pattern = np.array([1.0, -1.0, 1.0, -1.0])
    other = np.array([1.0, 1.0, -1.0, -1.0])
    epsilon = 0.6
    window = 0.8 * pattern + 0.6 * other
    limit = internal_query(Pattern("p", pattern, epsilon=epsilon)).distance
    assert distance(pattern, window) == pytest.approx(limit)
