"""Exact sums of runs of numbers as Python's integers; DOUBLEs are in units of 2^-SCALE.

Every DOUBLE is an integer of 53 bits times a power of two. The integers of one run and one power are added as
two halves, neither of which can overflow. The few sums that remain are shifted and added without limit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Exact = NDArray[np.object_]
Places = NDArray[np.int64]

# frexp of the least DOUBLE, 2^-1074, gives the power -1073, and 53 bits become the integer part.
SCALE = 1126
_BITS = 53
_HALF = 32
_LIMIT = 1 << 63

SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def of_whole(values: NDArray[np.int64], starts: Places) -> Exact:
    """The sum of each run of `values`; the runs begin at `starts`, the first one at 0.

    >>> of_whole(np.array([2**62, 2**62, -1]), np.array([0, 2])).tolist() == [2**63, -1]
    True
    """
    low = np.add.reduceat(values & ((1 << _HALF) - 1), starts)
    high = np.add.reduceat(values >> _HALF, starts)
    return np.asarray((high.astype(np.object_) << _HALF) + low.astype(np.object_), np.object_)


def units(values: NDArray[np.float64]) -> Exact:
    """Finite DOUBLEs in units of 2^-SCALE, exactly.

    >>> [one / (1 << SCALE) for one in units(np.array([0.5, -1e300, 5e-324])).tolist()]
    [0.5, -1e+300, 5e-324]
    """
    whole, shift = _split(values)
    return np.asarray(whole.astype(np.object_) << shift.astype(np.object_), np.object_)


def of_doubles(values: NDArray[np.float64], starts: Places) -> Exact:
    """The sum of each run of finite DOUBLEs, in units of 2^-SCALE.

    >>> (total,) = of_doubles(np.array([1e300, 0.5, -1e300]), np.array([0])).tolist()
    >>> total / (1 << SCALE)
    0.5
    """
    return _shifted_sums(values, starts, of_whole, 1)


def _shifted_sums(
    values: NDArray[np.float64],
    starts: Places,
    sums: Callable[[NDArray[np.int64], Places], Exact],
    power: int,
) -> Exact:
    """The sums of a power of DOUBLEs by runs; `sums` adds that power of whole numbers."""
    whole, shift = _split(values)
    run = np.zeros(len(values), np.int64)
    run[starts[1:]] = 1
    alike = np.cumsum(run) * (2 * SCALE + _BITS) + shift
    order = np.argsort(alike, kind="stable")
    placed = alike[order]
    begin = np.flatnonzero(np.concatenate(([True], placed[1:] != placed[:-1])))
    shifted = sums(whole[order], begin) << (power * shift[order[begin]]).astype(np.object_)
    first = np.searchsorted(placed[begin] // (2 * SCALE + _BITS), np.arange(len(starts)))
    return np.asarray(np.add.reduceat(shifted, first), np.object_)


def squares_of_whole(values: NDArray[np.int64], starts: Places) -> Exact:
    """The sum of the squares of each run.

    >>> squares_of_whole(np.array([-(2**63), 3, 1]), np.array([0, 2])).tolist() == [2**126 + 9, 1]
    True
    """
    low, high = values & ((1 << _HALF) - 1), values >> _HALF
    # The square of the lower half takes 64 bits.
    unsigned = low.astype(np.uint64) * low.astype(np.uint64)
    parts = (
        (of_whole((unsigned & np.uint64((1 << _HALF) - 1)).astype(np.int64), starts), 0),
        (of_whole((unsigned >> np.uint64(_HALF)).astype(np.int64), starts), _HALF),
        (of_whole(low * high, starts), _HALF + 1),
        (of_whole(high * high, starts), 2 * _HALF),
    )
    return np.asarray(sum(part << shift for part, shift in parts), np.object_)


def squares_of_doubles(values: NDArray[np.float64], starts: Places) -> Exact:
    """The sum of the squares of each run of finite DOUBLEs, in units of 2^-(2 * SCALE).

    >>> (total,) = squares_of_doubles(np.array([1e200, 0.5]), np.array([0])).tolist()
    >>> total == (int(1e200) ** 2 << 2 * SCALE) + (1 << 2 * SCALE - 2)
    True
    """
    return _shifted_sums(values, starts, squares_of_whole, 2)


def _split(values: NDArray[np.float64]) -> tuple[Places, Places]:
    """DOUBLEs as integers times powers of 2 of the unit: the integers and the exponents."""
    fraction, power = np.frexp(values)
    return np.ldexp(fraction, _BITS).astype(np.int64), power.astype(np.int64) - _BITS + SCALE


def quotient(above: int, below: int) -> float | None:
    """The DOUBLE nearest to a quotient; None if it is too large for a DOUBLE."""
    try:
        return above / below
    except OverflowError:
        return None


def root(above: int, below: int) -> float | None:
    """The DOUBLE nearest to the square root of a quotient that isn't negative; None if it is too large.

    >>> root(2, 1) == 2**0.5, root(1, 1 << 2000) == 2.0**-1000, root(1 << 4000, 1)
    (True, True, None)
    """
    # Enough bits that the rest, as one more bit, decides between two neighbouring DOUBLEs.
    bits = above.bit_length() - below.bit_length()
    shift = max(0, (2 * _BITS + 10 - bits) // 2)
    number, rest = divmod(above << 2 * shift, below)
    whole = isqrt(number)
    inexact = rest != 0 or whole * whole != number
    return quotient(2 * whole + inexact, 1 << (shift + 1))


def spread(function: str, count: int, total: int, squares: int, unit: int) -> float | None:
    """A variance or a standard deviation, correctly rounded, of `count` values; None if there are too few.

    `total` is their sum in units of 1 / `unit`, `squares` the sum of their squares in units of 1 / unit^2.

    >>> spread("var_samp", 3, 6, 14, 1), spread("stddev_pop", 1, 5, 25, 1), spread("var_samp", 1, 5, 25, 1)
    (1.0, 0.0, None)
    """
    divisor = count * (count if function.endswith("_pop") else count - 1)
    if divisor == 0:
        return None
    above, below = count * squares - total * total, divisor * unit * unit
    return root(above, below) if function.startswith("stddev") else quotient(above, below)


def interpolated(low: int, high: int, share: Fraction, unit: int) -> float | None:
    """The DOUBLE nearest to low + (high - low) * share, in units of 1 / `unit`."""
    weighted = low * (share.denominator - share.numerator) + high * share.numerator
    return quotient(weighted, share.denominator * unit)


def fitting(total: int) -> int | None:
    """A sum as BIGINT; None if it doesn't fit in 64 bits."""
    return total if -_LIMIT <= total < _LIMIT else None
