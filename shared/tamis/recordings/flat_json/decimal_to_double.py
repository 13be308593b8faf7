"""Decimal numbers to the nearest DOUBLE, exactly as a correctly rounding parser does it.

D. Lemire: Number Parsing at a Gigabyte per Second, Software: Practice and Experience 51(8), 2021, section 5;
the short way for small numbers is that of W. D. Clinger (PLDI 1990), section 3.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

# Decimal exponents of either sign. Within them no result is subnormal or infinite.
MOST_EXPONENT = 64


def _powers_of_five() -> NDArray[np.uint64]:
    """The leading 128 bits of 5**q for each exponent q: the upper half, and then the lower half. Those of
    negative exponents are rounded up, as the paper's error bound asks for.
    """
    halves: list[int] = []
    for q in range(-MOST_EXPONENT, MOST_EXPONENT + 1):
        if q < 0:
            divisor = 5**-q
            bits = divisor.bit_length()  # 5**-q is no power of two
            power = 2 ** (bits + 127) // divisor + 1
        else:
            power = 5**q
            power = power << 128 >> power.bit_length()
        halves += [power >> 64, power & (2**64 - 1)]
    return np.array(halves, np.uint64)


POWERS = _powers_of_five()
_TENS = np.array([10.0**power for power in range(23)])
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_EXACT = np.uint64(2**53)
# The bits below the result's, without the first: all of them are 1 if a carry could reach the result.
_BELOW = np.uint64(2**9 - 1)


@njit(cache=True)
def _product(a, b):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The upper and the lower half of the product of two 64-bit numbers."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW)


@njit(cache=True)
def nearest(mantissa, exponent):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The DOUBLE nearest to `mantissa * 10**exponent`, ties to even. `mantissa`: uint64; `exponent`: int64,
    of at most `MOST_EXPONENT` in magnitude.
    """
    if mantissa == np.uint64(0):
        return 0.0
    if mantissa <= _EXACT and -22 <= exponent <= 22:
        # Both numbers are exact, so one rounding gives the nearest.
        whole = float(mantissa)
        return whole / _TENS[-exponent] if exponent < 0 else whole * _TENS[exponent]
    shift = np.uint64(0)
    while mantissa >> np.uint64(63) == np.uint64(0):
        mantissa <<= _ONE
        shift += _ONE
    at = 2 * (exponent + MOST_EXPONENT)
    high, low = _product(mantissa, POWERS[at])
    if high & _BELOW == _BELOW:
        carry, _ = _product(mantissa, POWERS[at + 1])
        low += carry
        if low < carry:
            high += _ONE
    upper = high >> np.uint64(63)
    dropped = upper + np.uint64(9)
    bits = high >> dropped
    if low <= _ONE and -4 <= exponent <= 23 and bits & np.uint64(3) == _ONE and bits << dropped == high:
        bits &= ~_ONE  # exactly between two DOUBLEs, of which this is the even one
    bits = (bits + (bits & _ONE)) >> _ONE
    binary = ((217706 * exponent) >> 16) + np.int64(upper) - np.int64(shift) + 11
    return math.ldexp(float(bits), binary)
