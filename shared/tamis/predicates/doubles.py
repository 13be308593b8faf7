"""DOUBLEs by their numbers: whole numbers in the order of the values."""

from __future__ import annotations

import math
import struct
import sys

_SIGN = 0x7FFF_FFFF_FFFF_FFFF


def key_of_double(value: float) -> int:
    """The number of a DOUBLE; 0.0 and -0.0 have the same.

    >>> key_of_double(0.0), key_of_double(5e-324), key_of_double(-5e-324)
    (0, 1, -1)
    """
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & _SIGN)


def value_of_key(key: int) -> float:
    """The DOUBLE with a number.

    >>> value_of_key(key_of_double(-2.5))
    -2.5
    """
    value: float = struct.unpack("<d", struct.pack("<q", abs(key)))[0]
    return math.copysign(value, key) if key else 0.0


GREATEST_KEY = key_of_double(sys.float_info.max)
