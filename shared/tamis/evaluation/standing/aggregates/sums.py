"""Exact sums of runs of numbers as Python's integers; DOUBLEs are in units of 2^-SCALE.

Every DOUBLE is an integer of 53 bits times a power of two. The integers of one run and one power are added as
two halves, neither of which can overflow. The few sums that remain are shifted and added without limit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Exact = NDArray[np.object_]
Places = NDArray[np.int64]

# frexp of the least DOUBLE, 2^-1074, gives the power -1073, and 53 bits become the integer part.
SCALE = 1126
_BITS = 53
_HALF = 32
_LIMIT = 1 << 63


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
    whole, shift = _split(values)
    run = np.zeros(len(values), np.int64)
    run[starts[1:]] = 1
    alike = np.cumsum(run) * (2 * SCALE + _BITS) + shift
    order = np.argsort(alike, kind="stable")
    placed = alike[order]
    begin = np.flatnonzero(np.concatenate(([True], placed[1:] != placed[:-1])))
    shifted = of_whole(whole[order], begin) << shift[order[begin]].astype(np.object_)
    first = np.searchsorted(placed[begin] // (2 * SCALE + _BITS), np.arange(len(starts)))
    return np.asarray(np.add.reduceat(shifted, first), np.object_)


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


def fitting(total: int) -> int | None:
    """A sum as BIGINT; None if it doesn't fit in 64 bits."""
    return total if -_LIMIT <= total < _LIMIT else None
