"""Compiled scanners of the parts of JSON: strings, numbers, literals, and times of ISO 8601.

All of them read `buffer`, uint8, from position `at` to before `end`, and return the position behind the part
first. It is -1 for everything that is left to `orjson`, whether that is JSON or not.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

# Decimal exponents of either sign. Within them no result is subnormal or infinite.
MOST_EXPONENT = 64

QUOTE, BACKSLASH, MINUS, PLUS, POINT, ZERO, NINE = 34, 92, 45, 43, 46, 48, 57
# A mantissa of so many digits fits into 64 bits.
MOST_DIGITS = 19
# FNV-1a, of 64 bits.
HASH, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
TEN = np.uint64(10)
# What `iso_time` returns in place of a time.
NO_TIME = -(2**63)
_DAY = 86_400_000_000


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


@njit(cache=True)
def is_space(byte):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True for the four bytes that are white space in JSON."""
    return byte == 32 or 9 <= byte <= 10 or byte == 13


@njit(cache=True)
def string(buffer, at, end, utf8):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The position of the closing quote of a string whose first character is at `at`, and the hash of its
    bytes. `utf8`: the buffer is known to be UTF-8, so that other bytes than ASCII may occur.
    """
    value = HASH
    while at < end:
        byte = buffer[at]
        if byte == QUOTE:
            return at, value
        if byte == BACKSLASH or byte < 32 or (byte > 127 and not utf8):
            break
        value = (value ^ np.uint64(byte)) * PRIME
        at += 1
    return -1, value


@njit(cache=True)
def number(buffer, at, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A number as its sign, its mantissa (uint64), its decimal exponent, and whether it is written as an
    integer.
    """
    mantissa, exponent, digits = np.uint64(0), 0, 0
    negative = buffer[at] == MINUS
    if negative:
        at += 1
    first = at
    while at < end and ZERO <= buffer[at] <= NINE:
        mantissa = mantissa * TEN + np.uint64(buffer[at] - ZERO)
        digits += digits > 0 or buffer[at] != ZERO
        at += 1
    good = at > first and (buffer[first] != ZERO or at == first + 1)
    integral = True
    if at < end and buffer[at] == POINT:
        integral = False
        at += 1
        first = at
        while at < end and ZERO <= buffer[at] <= NINE:
            mantissa = mantissa * TEN + np.uint64(buffer[at] - ZERO)
            digits += digits > 0 or buffer[at] != ZERO
            at += 1
        good = good and at > first
        exponent = first - at
    if at < end and (buffer[at] == 101 or buffer[at] == 69):
        integral = False
        at += 1
        minus = at < end and buffer[at] == MINUS
        if at < end and (buffer[at] == MINUS or buffer[at] == PLUS):
            at += 1
        first, power = at, 0
        while at < end and ZERO <= buffer[at] <= NINE:
            power = min(power * 10 + buffer[at] - ZERO, 10_000)
            at += 1
        good = good and at > first
        exponent += -power if minus else power
    # Digits count from the first that isn't 0. More of them may have overflowed the mantissa.
    if not good or digits > MOST_DIGITS or abs(exponent) > MOST_EXPONENT:
        at = -1
    return at, negative, mantissa, exponent, integral


@njit(cache=True)
def literal(buffer, at, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The position behind `true`, `false` or `null`."""
    if end - at >= 4:
        if buffer[at] == 116 and buffer[at + 1] == 114 and buffer[at + 2] == 117 and buffer[at + 3] == 101:
            return at + 4
        if buffer[at] == 110 and buffer[at + 1] == 117 and buffer[at + 2] == 108 and buffer[at + 3] == 108:
            return at + 4
    false = end - at >= 5 and buffer[at] == 102 and buffer[at + 1] == 97 and buffer[at + 2] == 108
    return at + 5 if false and buffer[at + 3] == 115 and buffer[at + 4] == 101 else -1


@njit(cache=True)
def _digits(buffer, at, count):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number that some digits make; a large negative number if one of them is no digit."""
    value = 0
    for place in range(at, at + count):
        if not ZERO <= buffer[place] <= NINE:
            return -(2**40)
        value = value * 10 + buffer[place] - ZERO
    return value


@njit(cache=True)
def iso_time(buffer, at, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Microseconds since 1970 of `2024-05-01T12:00:00.123456Z`, or `NO_TIME`. The fraction may have fewer
    digits or be left out, and so may the zone.
    """
    if end > at and buffer[end - 1] == 90:
        end -= 1
    size = end - at
    if size < 19 or size == 20 or size > 26 or (size > 19 and buffer[at + 19] != POINT):
        return NO_TIME
    if buffer[at + 4] != MINUS or buffer[at + 7] != MINUS or buffer[at + 10] != 84:
        return NO_TIME
    if buffer[at + 13] != 58 or buffer[at + 16] != 58:
        return NO_TIME
    year, month, day = _digits(buffer, at, 4), _digits(buffer, at + 5, 2), _digits(buffer, at + 8, 2)
    hour, minute, second = (
        _digits(buffer, at + 11, 2),
        _digits(buffer, at + 14, 2),
        _digits(buffer, at + 17, 2),
    )
    fraction = _digits(buffer, at + 20, size - 20) if size > 20 else 0
    for _ in range(26 - max(size, 20)):
        fraction *= 10
    if year < 1 or not 1 <= month <= 12 or day < 1 or fraction < 0:
        return NO_TIME
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return NO_TIME
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    long_month = month in (1, 3, 5, 7, 8, 10, 12)
    most = (29 if leap else 28) if month == 2 else (31 if long_month else 30)
    if day > most:
        return NO_TIME
    # Days since 1970 in the Gregorian calendar, where a year begins in March.
    shifted = year - (month <= 2)
    month_from_march = (month + 9) % 12
    days = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400
    days += (153 * month_from_march + 2) // 5 + day - 1 - 719_468
    return days * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
