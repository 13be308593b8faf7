"""`exp`, `ln`, `log10` and `power` over arrays of doubles, bit for bit as the C library has them.

NumPy brings its own vectorised versions on some processors, which differ in the last bit; an alarm at the
threshold must not depend on the machine. Outside their domains these give NaN or an infinity; none raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import vectorize


def _compiled(function: Callable[..., float]) -> np.ufunc:
    # With the signature given it is compiled (or loaded from the cache) now, not within the first batch.
    signature = f"float64({', '.join(['float64'] * function.__code__.co_argcount)})"
    ufunc: np.ufunc = vectorize([signature], cache=True)(function)  # type: ignore[no-untyped-call]
    return ufunc


@_compiled
def exp(x: float) -> float:
    """e to the power x; an infinity where that overflows."""
    return math.exp(x)


@_compiled
def ln(x: float) -> float:
    """Natural logarithm; NaN below zero, -infinity at zero."""
    return math.log(x)


@_compiled
def log10(x: float) -> float:
    """Decimal logarithm; NaN below zero, -infinity at zero."""
    return math.log10(x)


@_compiled
def power(x: float, y: float) -> float:
    """x to the power y; NaN for a fraction of a negative x, an infinity for a negative power of zero."""
    return math.pow(x, y)
