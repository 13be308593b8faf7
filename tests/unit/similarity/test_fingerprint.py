"""Fingerprints of short windows, and what has none."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.similarity import Fingerprint, normal_form


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (5, 4), (8, 3), (64, 7)])
def test_coefficients_are_those_of_the_normal_form(n: int, k: int) -> None:
    readings = np.random.default_rng(n).normal(size=5 * n).cumsum()
    watched = Fingerprint(n, k)
    for end, reading in enumerate(readings, 1):
        found = watched.push(reading)
        if end < n:
            assert found is None
            continue
        assert found is not None
        window = readings[end - n : end]
        expected = np.fft.fft(normal_form(window), norm="ortho")[1 : k + 1]
        assert found.coefficients.shape == (k,)
        assert np.abs(found.coefficients - expected).max() < 1e-12 * n
        assert found.mean == pytest.approx(window.mean())
        assert found.deviation == pytest.approx(window.std())


def test_constant_windows_have_deviation_0() -> None:
    found = Fingerprint(3, 1).extend([1e9, 0.1, 0.1, 0.1, 0.1, 0.2])
    assert found.deviation[3:5].tolist() == [0, 0]
    assert found.mean[3:5].tolist() == [0.1, 0.1]
    assert found.coefficients[3:5].tolist() == [[0], [0]]
    assert found.deviation[5] > 0


@pytest.mark.parametrize("gap", [None, nan, inf, -inf, -2e150])
def test_a_window_with_a_gap_has_none(gap: float | None) -> None:
    watched = Fingerprint(2, 1)
    assert [watched.push(v) is None for v in (1.0, 2.0, gap, 3.0, 4.0)] == [True, False, True, True, False]


def test_one_by_one_or_all_at_once() -> None:
    readings = np.random.default_rng(1).normal(size=300)
    whole, watched = Fingerprint(7, 2).extend(readings), Fingerprint(7, 2)
    for row, reading in enumerate(readings):
        found = watched.push(reading)
        if found is not None:
            assert (found.coefficients == whole.coefficients[row]).all()
            assert (found.mean, found.deviation) == (whole.mean[row], whole.deviation[row])


@pytest.mark.parametrize(("n", "k"), [(1, 1), (0, 0), (4, 4), (4, 0), (4, -1)])
def test_windows_without_so_many_coefficients_are_refused(n: int, k: int) -> None:
    with pytest.raises(InputError, match=f"windows of {n} readings have no {k} coefficients"):
        Fingerprint(n, k)


def test_readings_that_are_no_column_of_numbers_are_refused() -> None:
    for readings in ([[1.0]], ["warm"]):
        with pytest.raises(InputError, match="column"):
            Fingerprint(2, 1).extend(readings)
