"""Fingerprints after many updates, compared with a DFT of the window in long doubles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.random_cases import SEED, also_long

from tamis.similarity import Fingerprint

Floats = npt.NDArray[np.float64]


def readings_of(random: np.random.Generator, count: int) -> Floats:
    """A walk with plateaus, spikes of up to 10^15, gaps, and changes of level and of unit."""
    walk = random.normal(size=count).cumsum()
    begins = np.where(random.random(count) < 0.3, np.arange(count), 0)
    walk = np.where(random.random(count) < 0.5, walk[np.maximum.accumulate(begins)], walk)
    for number, part in enumerate(np.array_split(walk, 40)):
        part[:] *= 10.0 ** random.integers(-6, 6)
        part[:] += random.choice([0.0, 1e3, -1e6, 1e9, 1e12]) * abs(part[0] or 1.0)
        if number % 3 == 0:
            part[random.integers(len(part), size=max(len(part) // 500, 1))] *= 1e15
        if number % 4 == 1:
            part[random.integers(len(part), size=3)] = np.nan
        if number % 5 == 2:
            part[len(part) // 2 :] = part[0]
    return walk


def direct(window: Floats, k: int) -> tuple[npt.NDArray[np.clongdouble], np.longdouble, np.longdouble]:
    """Coefficients of the normal form, mean and deviation, by their definitions."""
    n = len(window)
    values = window.astype(np.longdouble)
    values -= window[0]
    mean = values.mean()
    values -= mean
    deviation = np.sqrt((values * values).mean())
    angles = 2 * np.pi * np.longdouble(1) / n * np.outer(np.arange(1, k + 1), np.arange(n))
    found = (values / deviation) @ (np.cos(angles) - 1j * np.sin(angles)).T / np.sqrt(np.longdouble(n))
    return found, mean + window[0], deviation


# Over 10^7 updates in the long search.
@pytest.mark.parametrize("times", also_long(50))
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (16, 3), (128, 3), (1000, 6)])
def test_errors_do_not_grow(n: int, k: int, times: int) -> None:
    random = np.random.default_rng([SEED, n, times])
    watched, checked, constant = Fingerprint(n, k), 0, 0
    kept = np.empty(0)
    for _ in range(times):
        readings = readings_of(random, 200_000)
        found = watched.extend(readings)
        series = np.concatenate([kept, readings])
        for row in random.integers(0, len(readings), 300).tolist():
            end = len(kept) + row + 1
            window = series[max(end - n, 0) : end]
            if len(window) < n or not np.isfinite(window).all():
                assert np.isnan(found.deviation[row]) and np.isnan(found.coefficients[row]).all()
                continue
            if np.ptp(window) == 0:
                assert found.deviation[row] == 0 and (found.coefficients[row] == 0).all()
                assert found.mean[row] == window[0]
                constant += 1
                continue
            coefficients, mean, deviation = direct(window, k)
            assert abs(found.deviation[row] / deviation - 1) < 1e-9
            assert abs(found.mean[row] - mean) <= 1e-9 * deviation + 1e-15 * abs(mean)
            assert np.abs(found.coefficients[row] - coefficients).max() < 1e-9 * np.sqrt(n)
            checked += 1
        kept = series[-n:]
    assert checked > 20 * times
    assert constant > 0
