"""The order of DOUBLEs as whole numbers: the number of each finite DOUBLE among all of them.

A greater DOUBLE has a greater number, neighbouring DOUBLEs have neighbouring numbers, and 0.0 and -0.0 both
have the number 0. The number of a positive DOUBLE is its bit pattern (IEEE 754), read as a whole number.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Int64s = NDArray[np.int64]

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_EXPONENT = np.int64(0x7FF0_0000_0000_0000)


def number_of(value: float) -> int:
    """The number of a DOUBLE.

    >>> number_of(0.0), number_of(-0.0), number_of(5e-324), number_of(-5e-324)
    (0, 0, 1, -1)
    >>> number_of(-1.5) < number_of(-1.0) < number_of(1e300)
    True
    """
    bits: int = struct.unpack("<q", struct.pack("<d", abs(value)))[0]
    return -bits if value < 0 else bits


def double_at(number: int) -> float:
    """The DOUBLE that has this number.

    >>> double_at(number_of(-2.5)), double_at(0)
    (-2.5, 0.0)
    """
    value: float = struct.unpack("<d", struct.pack("<q", abs(number)))[0]
    return -value if number < 0 else value


GREATEST = number_of(sys.float_info.max)


def numbers_of(values: NDArray[Any], *, not_finite: int = 0) -> Int64s:
    """The numbers of a column of DOUBLEs, of shape (n,); NaN and infinities have the number `not_finite`.

    >>> numbers_of(np.array([5e-324, -0.0, -5e-324, np.nan]), not_finite=7).tolist()
    [1, 0, -1, 7]
    """
    out = np.empty(len(values), np.int64)
    write_numbers(np.ascontiguousarray(values, np.float64), not_finite, out)
    return out


@njit(cache=True, nogil=True)
def write_numbers(values: NDArray[np.float64], not_finite: int, out: Int64s) -> None:
    """Write the result of `numbers_of` into `out`."""
    bits = values.view(np.int64)
    for i in range(len(bits)):
        found = bits[i]
        if found & _EXPONENT == _EXPONENT:
            found = not_finite
        elif found < 0:
            found = -(found & _MAGNITUDE)  # -0.0 becomes 0
        out[i] = found
