"""`exp`, `ln`, `log10` and `power` over arrays of doubles, bit for bit as the C library has them.

NumPy brings its own vectorised versions on some processors, which differ in the last bit; an alarm at the
threshold must not depend on the machine. Outside their domains these give NaN or an infinity; none raises.

Each is compiled, or loaded from numba's cache, when it is first called: few queries call one, and loading all
of them takes a second of every process that can evaluate an expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Doubles = NDArray[np.float64]


def exp(x: ArrayLike) -> Doubles:
    """e to the power x; an infinity where that overflows."""
    return _compiled(_exp)(x)


def ln(x: ArrayLike) -> Doubles:
    """Natural logarithm; NaN below zero, -infinity at zero."""
    return _compiled(_ln)(x)


def log10(x: ArrayLike) -> Doubles:
    """Decimal logarithm; NaN below zero, -infinity at zero."""
    return _compiled(_log10)(x)


def power(x: ArrayLike, y: ArrayLike) -> Doubles:
    """x to the power y; NaN for a fraction of a negative x, an infinity for a negative power of zero."""
    return _compiled(_power)(x, y)


def warm() -> None:
    """Compile all of them, for numba to keep."""
    for function in (_exp, _ln, _log10, _power):
        _compiled(function)


@cache
def _compiled(function: Callable[..., float]) -> Callable[..., Doubles]:
    from numba import vectorize

    signature = f"float64({', '.join(['float64'] * function.__code__.co_argcount)})"
    ufunc: Callable[..., Doubles] = vectorize([signature], cache=True)(function)  # type: ignore[no-untyped-call]
    return ufunc


def _exp(x: float) -> float:
    return math.exp(x)


def _ln(x: float) -> float:
    return math.log(x)


def _log10(x: float) -> float:
    return math.log10(x)


def _power(x: float, y: float) -> float:
    return math.pow(x, y)
