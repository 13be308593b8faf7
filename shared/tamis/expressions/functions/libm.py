"""`exp`, `ln`, `log10` and `power` over arrays of doubles, bit for bit as in the C library.

On some processors NumPy uses its own vectorised versions, which differ in the last bit, and an alarm at the
threshold must not depend on the machine. Outside of their domains the functions return NaN or an infinity.

A function is compiled, or loaded from numba's cache, at its first call.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis.kernels import njit

Doubles = NDArray[np.float64]


def exp(x: ArrayLike) -> Doubles:
    """e to the power x; an infinity if that overflows."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _exp(x.ravel(), out.reshape(-1))
    return out[()]


def ln(x: ArrayLike) -> Doubles:
    """Natural logarithm; NaN below zero, -infinity at zero."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _ln(x.ravel(), out.reshape(-1))
    return out[()]


def log10(x: ArrayLike) -> Doubles:
    """Decimal logarithm; NaN below zero, -infinity at zero."""
    x = np.asarray(x, np.float64)
    out = np.empty(x.shape)
    _log10(x.ravel(), out.reshape(-1))
    return out[()]


def power(x: ArrayLike, y: ArrayLike) -> Doubles:
    """x to the power y; NaN for a fraction of a negative x, an infinity for a negative power of zero."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    shape = np.broadcast_shapes(xs.shape, ys.shape)
    out = np.empty(shape)
    _power(_repeated(xs, shape).ravel(), _repeated(ys, shape).ravel(), out.reshape(-1))
    return out[()]


def _repeated(x: Doubles, shape: tuple[int, ...]) -> Doubles:
    """`x` in a shape, copied if it is broadcast: compiled code takes no array that repeats elements."""
    return x if x.shape == shape else np.broadcast_to(x, shape).copy()


@njit(cache=True)
def _exp(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.exp(x[i])


@njit(cache=True)
def _ln(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.log(x[i])


@njit(cache=True)
def _log10(x: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.log10(x[i])


@njit(cache=True)
def _power(x: Doubles, y: Doubles, out: Doubles) -> None:
    for i in range(len(x)):
        out[i] = math.pow(x[i], y[i])
