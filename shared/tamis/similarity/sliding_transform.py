"""Sums and DFT coefficients of a sliding window, updated in constant time (goldin-1997, section 7.3.3).

For the readings x of a window of length n the state keeps sums over the differences d = x - anchor: of d, of
d², and of d e^(-2πimp/n) for the coefficients m. The phase p of a reading counts from the last anchoring. The
reading that leaves the window has the phase of the reading that enters, so an update adds one difference per
sum, and no rounding error is multiplied.

An update leaves a rounding error of the size of the largest reading since the anchoring, even after this
reading has left the window. The state is therefore computed anew from the window, with the window's mean as
anchor: after n updates, and as soon as the bound of the error of the variance exceeds `tolerance`. With u =
2^-53 and A the greatest sum of d² since the anchoring, rounding changes the variance by at most 30 u A
(n updates change the sum of d² by at most 13 n u A, and the sum of d by at most 6 n u √(n A)). Both take
constant time per reading on average: a window is computed anew early only if a reading has left that was far
away from the rest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# Columns of a state.
ANCHOR, STEPS, SUM, SQUARES, GREATEST = range(5)
WAVES = 5  # from here on: real and imaginary part of each coefficient
# The phase of a state that has to be computed anew.
STALE = -1.0

# The relative error that the variance may have; with long windows rounding alone comes close to it.
TOLERANCE = 1e-9
_ROUNDING = 30 * 2.0**-53


def columns(coefficients: int) -> int:
    """The number of columns of a state."""
    return WAVES + 2 * coefficients


def tolerance(n: int) -> float:
    """The bound of the relative error of the variance of windows of length `n`."""
    return max(TOLERANCE, 100 * _ROUNDING * n)


def turns(n: int, coefficients: int) -> Floats:
    """Cosine and sine of 2πmp/n by phase p and coefficient m = 1, 2, …, of shape (n, 2 * coefficients)."""
    angles = 2 * np.pi / n * (np.outer(np.arange(n), np.arange(1, coefficients + 1)) % n)
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(n, 2 * coefficients)


@njit(cache=True, error_model="numpy")
def anchor(
    sums: Floats, key: int, group: int, readings: Floats, n: int, turns: Floats, first: int, waves: int
) -> None:
    """Compute the state of `sums[key, group]` for the window `readings`. Its turns begin at `first`."""
    base = readings[n - 1]
    total = 0.0
    for i in range(n):
        total += readings[i] - base
    base += total / n
    sums[key, group, :] = 0.0
    for j in range(n):
        d = readings[j] - base
        sums[key, group, SUM] += d
        sums[key, group, SQUARES] += d * d
        at = first + 2 * waves * j
        for m in range(waves):
            sums[key, group, WAVES + 2 * m] += d * turns[at + 2 * m]
            sums[key, group, WAVES + 2 * m + 1] -= d * turns[at + 2 * m + 1]
    sums[key, group, ANCHOR] = base
    sums[key, group, GREATEST] = sums[key, group, SQUARES]


@njit(cache=True, error_model="numpy")
def variance(sums: Floats, key: int, group: int, n: int) -> float:
    """The variance of the window."""
    mean = sums[key, group, SUM] / n
    found: float = max(sums[key, group, SQUARES] / n - mean * mean, 0.0)
    return found


@njit(cache=True, error_model="numpy")
def advance(
    sums: Floats,
    key: int,
    group: int,
    tails: Floats,
    end: int,
    n: int,
    tolerance: float,
    turns: Floats,
    first: int,
    waves: int,
) -> float:
    """Move `sums[key, group]` to the window `tails[key, end - n : end]`, of which it has all but the last
    reading; returns the variance of the window.
    """
    phase = int(sums[key, group, STEPS])
    if phase >= 0:
        base = sums[key, group, ANCHOR]
        new, old = tails[key, end - 1] - base, tails[key, end - 1 - n] - base
        change = new - old
        squares = sums[key, group, SQUARES] + new * new
        greatest = max(sums[key, group, GREATEST], squares)
        sums[key, group, SUM] += change
        sums[key, group, SQUARES] = squares - old * old
        sums[key, group, GREATEST] = greatest
        at = first + 2 * waves * phase
        for m in range(waves):
            sums[key, group, WAVES + 2 * m] += change * turns[at + 2 * m]
            sums[key, group, WAVES + 2 * m + 1] -= change * turns[at + 2 * m + 1]
        sums[key, group, STEPS] = phase + 1.0
        found = variance(sums, key, group, n)
        if _ROUNDING * greatest <= tolerance * found and phase + 1 < n:
            return found
    anchor(sums, key, group, tails[key, end - n : end], n, turns, first, waves)
    return variance(sums, key, group, n)


@njit(cache=True, error_model="numpy")
def coefficients(
    sums: Floats, key: int, group: int, turns: Floats, first: int, waves: int, out: Floats
) -> None:
    """Write the sums of d e^(-2πimj/n), j counted from the window's first reading, into `out`: real and
    imaginary part of each coefficient.
    """
    at = first + 2 * waves * int(sums[key, group, STEPS])
    for m in range(waves):
        real, imaginary = sums[key, group, WAVES + 2 * m], sums[key, group, WAVES + 2 * m + 1]
        cosine, sine = turns[at + 2 * m], turns[at + 2 * m + 1]
        out[2 * m] = real * cosine - imaginary * sine
        out[2 * m + 1] = real * sine + imaginary * cosine
