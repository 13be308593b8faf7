"""Compiled loops over slots: a slot is the number of a combination of pane and group in arrays.

Exact sums are kept in digits of 32 bits with room for carries, in int64: the sum of a slot is the sum of
`digits[slot, i] * 2^(32 * i)` times 2^`base[slot]`. Every product of a number is a magnitude in words of 32
bits, which is shifted and added with its sign (cf. Kulisch, *Computer Arithmetic and Validity*, chapter 8,
and the small superaccumulator of Neal, *Fast Exact Summation Using Small and Large Superaccumulators*, 2015).
A number changes a digit by less than 2^35, so `MOST` numbers can be added before digits overflow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]
Numbers = NDArray[np.float64 | np.int64]
Mask = NDArray[np.bool_]

MOST = 1 << 28
# Digits for sums of whole numbers and of their squares.
DIGITS, DIGITS_OF_SQUARES = 2, 4
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
# Of the bits of a DOUBLE: those of the fraction, and those of the exponent.
_FRACTION = np.int64((1 << 52) - 1)
_EXPONENT = np.int64(0x7FF)
# The product of an odd 64-bit number spreads the bits of a key (Knuth's multiplicative hashing).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@njit(cache=True)
def find_slots(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names
    table: Ints, pane_of: Ints, group_of: Ints, used: int, panes: Ints, groups: Ints, slots: Ints
):  # pragma: no cover - compiled
    """Write the slot of each pane and group; returns how many slots are used then.

    `table` is a hash table with open addressing of a power of two places, -1 where there is no slot; less
    than all of its places are needed. New slots get their pane and group in `pane_of` and `group_of`.
    """
    last = np.uint64(len(table) - 1)
    for row in range(len(panes)):
        pane, group = panes[row], groups[row]
        key = (np.uint64(pane) * _SPREAD) ^ np.uint64(group)
        key = (key ^ (key >> _SHIFT)) * _SPREAD
        at = (key ^ (key >> _32)) & last
        slot = table[at]
        while slot >= 0 and (pane_of[slot] != pane or group_of[slot] != group):
            at = (at + np.uint64(1)) & last
            slot = table[at]
        if slot < 0:
            slot = used
            used += 1
            table[at] = slot
            pane_of[slot] = pane
            group_of[slot] = group
        slots[row] = slot
    return used


@njit(cache=True)
def add_counts(counts: Ints, slots: Ints) -> None:  # pragma: no cover - compiled
    """Count one at each slot."""
    for slot in slots:
        counts[slot] += 1


@njit(cache=True)
def keep_extremes(
    state: Numbers,
    known: Mask,
    slots: Ints,
    values: Numbers,
    greatest: bool,
) -> None:  # pragma: no cover - compiled
    """Keep the greatest or the least value of each slot; `known`: the slots that have a value."""
    for row in range(len(slots)):
        slot, value = slots[row], values[row]
        if not known[slot]:
            state[slot] = value
            known[slot] = True
        elif value > state[slot] if greatest else value < state[slot]:
            state[slot] = value


@njit(cache=True)
def keep_arguments(  # noqa: PLR0917 - compiled, it takes no names
    orders: Numbers,
    state: Numbers,
    known: Mask,
    slots: Ints,
    order: Numbers,
    values: Numbers,
    greatest: bool,
) -> None:  # pragma: no cover - compiled
    """Keep the value with the greatest or the least order of each slot; of equal orders, the greatest or the
    least value.
    """
    for row in range(len(slots)):
        slot, at, value = slots[row], order[row], values[row]
        if known[slot]:
            if greatest:
                if at < orders[slot] or (at == orders[slot] and value <= state[slot]):
                    continue
            elif at > orders[slot] or (at == orders[slot] and value >= state[slot]):
                continue
        orders[slot], state[slot], known[slot] = at, value, True


@njit(cache=True)
def _add(
    digits: Ints, low: np.uint64, high: np.uint64, shift: int, negative: bool
) -> None:  # pragma: no cover - compiled
    """Add a magnitude of two words, below 2^32 each, shifted by `shift` bits, to the digits of one slot."""
    place, part = shift >> 5, np.uint64(shift & 31)
    low <<= part
    high <<= part
    first = np.int64(low & _LOW)
    second = np.int64((low >> _32) + (high & _LOW))
    third = np.int64(high >> _32)
    if negative:
        first, second, third = -first, -second, -third
    digits[place] += first
    digits[place + 1] += second
    if third != 0:
        digits[place + 2] += third


@njit(cache=True)
def _add_square(digits: Ints, magnitude: np.uint64, shift: int) -> None:  # pragma: no cover - compiled
    """Add the square of a magnitude, shifted, to the digits of one slot."""
    low, high = magnitude & _LOW, magnitude >> _32
    square, product = low * low, low * high
    _add(digits, square & _LOW, square >> _32, shift, False)
    _add(digits, product & _LOW, product >> _32, shift + 33, False)
    square = high * high
    _add(digits, square & _LOW, square >> _32, shift + 64, False)


@njit(cache=True)
def _magnitude(value: int):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The absolute value of an int64."""
    return np.uint64(value) if value >= 0 else np.uint64(~value) + np.uint64(1)


@njit(cache=True)
def add_whole(digits: Ints, slots: Ints, values: Ints) -> None:  # pragma: no cover - compiled
    """Add whole numbers to the sums of their slots, of which each has `DIGITS` digits."""
    for row in range(len(slots)):
        size = _magnitude(values[row])
        _add(digits[slots[row]], size & _LOW, size >> _32, 0, values[row] < 0)


@njit(cache=True)
def add_squares_of_whole(digits: Ints, slots: Ints, values: Ints) -> None:  # pragma: no cover - compiled
    """Add the squares of whole numbers to the sums of their slots, of which each has `DIGITS_OF_SQUARES`
    digits.
    """
    for row in range(len(slots)):
        _add_square(digits[slots[row]], _magnitude(values[row]), 0)


@njit(cache=True)
def add_doubles(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names
    digits: Ints, base: Ints, known: Mask, slots: Ints, bits: Ints, outside: Ints, squares: bool
):  # pragma: no cover - compiled
    """Add DOUBLEs, given as their bits, or their squares to the sums of their slots.

    A slot's `base` is the exponent, as DOUBLEs have it in their bits, of its first digit: half of the
    exponents within reach are below that of its first number. The rows of numbers out of reach are written to
    `outside`; returns how many there are. 0 needs no digits.
    """
    reach = 32 * (digits.shape[1] - (5 if squares else 2))
    reach //= 2 if squares else 1
    count = 0
    for row in range(len(slots)):
        exponent = (bits[row] >> 52) & _EXPONENT
        fraction = bits[row] & _FRACTION
        if exponent > 0:
            fraction |= _FRACTION + 1
        elif fraction == 0:
            continue
        else:
            exponent = 1
        slot = slots[row]
        if not known[slot]:
            base[slot] = max(exponent - reach // 2, 1)
            known[slot] = True
        shift = exponent - base[slot]
        if shift < 0 or shift >= reach:
            outside[count] = row
            count += 1
            continue
        size = np.uint64(fraction)
        if squares:
            _add_square(digits[slot], size, 2 * shift)
        else:
            _add(digits[slot], size & _LOW, size >> _32, shift, bits[row] < 0)
    return count
