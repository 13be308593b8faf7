"""The reference's distances of windows, compared with exact arithmetic."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.similarity.direct_distance import least_square
from tests.oracle.similarity.random_series import ends, variant

from tamis.verification.window_matches import Pairs, exact_distance, least_fits


@pytest.mark.parametrize("times", also_long(200))
def test_distances_are_exact_up_to_their_error(times: int) -> None:
    random = np.random.default_rng([SEED, times])
    large = 0
    for _ in range(cases(0.01) * times):
        n = int(random.choice([2, 3, 5, 9]))
        pattern = random.normal(size=n).cumsum()
        shape = variant(random, pattern + random.choice([0, 1e6]))
        offset, size = random.choice([0, 1, 1e3, 1e9, 1e13]), random.choice([1e-3, 1, 1e6])
        windows = np.round(random.normal(size=(4, n)) * size, int(random.integers(0, 4))) + offset
        windows[0] = windows[0, 0]
        windows[1] = pattern * size + offset
        scale, shift = ends(shape.scale, 0.0), ends(shape.shift, -inf)
        fits = least_fits(Pairs(shape.values, windows), scale, shift)
        for window, distance, error in zip(windows.tolist(), fits.distance, fits.error, strict=True):
            square, at = least_square(shape.values.tolist(), window, scale, shift)
            exact = exact_distance(shape.values.tolist(), window, scale, shift)
            # The least value may only be approached as the scale falls to 0: then both are above it.
            if at > 0:
                assert exact == pytest.approx(sqrt(square), rel=1e-15)
            assert exact >= sqrt(square) * (1 - 1e-15)
            if np.isfinite(distance):
                assert abs(distance - exact) <= error + 1e-15 * exact
                large += error > 1e-10 * shape.values.std()
            else:
                assert exact == inf
    assert large > 20
