"""Fingerprint of the latest readings of one series (goldin-1997, section 7.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.kernels import njit
from tamis.similarity.best_fit import LEAST_VARIANCE
from tamis.similarity.sliding_transform import (
    ANCHOR,
    STALE,
    STEPS,
    SUM,
    Floats,
    Int64s,
    advance,
    coefficients,
    columns,
    tolerance,
    turns,
)
from tamis.similarity.watch_kernel import EQUAL, MARKS, RUN, append, column

Complexes = npt.NDArray[np.complex128]


class WindowFingerprint(NamedTuple):
    """Fingerprint, mean and deviation of a window.

    `coefficients`, of shape (k,), are the coefficients 1 to k of the unitary DFT (with the factor 1/√n) of
    the window's normal form (definition 33). A constant window has no normal form: its deviation is exactly
    0, and so are its coefficients.
    """

    coefficients: Complexes
    mean: float
    deviation: float


class Fingerprints(NamedTuple):
    """Fingerprints as columns: `coefficients` of shape (readings, k), `mean` and `deviation` of shape
    (readings,). All are NaN where the window is not full, or has a gap.
    """

    coefficients: Complexes
    mean: Floats
    deviation: Floats


class Fingerprint:
    """The first `k` DFT coefficients of the normal form of the last `n` readings.

    A reading takes constant time. Rounding errors do not add up, whatever the readings were: the variance is
    exact to 10^-9 (for n up to 3,000; above to n * 3.4 * 10^-13), and so are the coefficients.
    """

    def __init__(self, n: int, k: int = 3) -> None:
        """Raises `InputError` unless 2 <= n and 1 <= k < n."""
        if not 1 <= k < n:
            raise InputError(f"windows of {n} readings have no {k} coefficients", hint="use 1 <= k < n")
        self.n, self.k = n, k
        self._turns = turns(n, k).ravel()
        self._tails = np.zeros((1, n + max(16, n // 4)))
        self._marks = np.zeros((1, MARKS), np.int64)
        self._sums = np.zeros((1, 1, columns(k)))
        self._sums[:, :, STEPS] = STALE

    def push(self, v: float | None) -> WindowFingerprint | None:
        """Append a reading; returns the fingerprint of the last n readings.

        Returns None as long as there are fewer, or one of them is a gap: None, NaN, infinite or of magnitude
        above 1e150.
        """
        found = self.extend([np.nan if v is None else v])
        if np.isnan(found.deviation[0]):
            return None
        return WindowFingerprint(found.coefficients[0], float(found.mean[0]), float(found.deviation[0]))

    def extend(self, readings: npt.ArrayLike) -> Fingerprints:
        """Append readings; returns the fingerprint after each.

        Raises `InputError` if they are no column of numbers.
        """
        try:
            values = column(readings, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"readings must be a column of numbers: {error}") from None
        if values.ndim != 1:
            raise InputError(f"readings have the shape {values.shape}, not that of a column")
        out = np.full((len(values), 2 * self.k + 2), np.nan)
        bound = tolerance(self.n)
        _extend(values, self.n, bound, self._turns, self._tails, self._marks, self._sums, out)
        found = out[:, 2:].copy().view(np.complex128)
        return Fingerprints(found, out[:, 0].copy(), out[:, 1].copy())


@njit(cache=True, error_model="numpy")
def _extend(
    readings: Floats,
    n: int,
    tolerance: float,
    turns: Floats,
    tails: Floats,
    marks: Int64s,
    sums: Floats,
    out: Floats,
) -> None:
    """Append readings to the only series; writes mean, deviation and coefficients after each."""
    waves = (out.shape[1] - 2) // 2
    found = np.empty(2 * waves)
    for row in range(len(readings)):
        end = append(tails, marks, 0, readings[row], n)
        if marks[0, RUN] < n:
            sums[0, 0, STEPS] = STALE
            continue
        out[row, 1:] = 0.0
        if marks[0, EQUAL] >= n:
            sums[0, 0, STEPS] = STALE
            out[row, 0] = readings[row]
            continue
        spread = advance(sums, 0, 0, tails, end, n, tolerance, turns, 0, waves)
        out[row, 0] = sums[0, 0, ANCHOR] + sums[0, 0, SUM] / n
        if spread < LEAST_VARIANCE:
            continue
        out[row, 1] = np.sqrt(spread)
        coefficients(sums, 0, 0, turns, 0, waves, found)
        for i in range(2 * waves):
            out[row, 2 + i] = found[i] / np.sqrt(n * spread)
