"""Compiled loops over bitmaps that have one bit for each slot: one row of 64-bit words for each filter.

A slot is the number that a row has in the bitmaps, for as long as the row is kept. `row_of` has the row of
each slot, -1 for slots without a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

_ONE = np.uint64(1)
_LOW = np.int64(63)


@njit(cache=True)
def store_results(words: Words, found: Bools, slots: Ints) -> None:  # pragma: no cover - compiled
    """Set the bits of `slots`, which are clear, where `found` of shape (filters, slots) is true."""
    for row in range(found.shape[0]):
        for at in range(len(slots)):
            if found[row, at]:
                slot = slots[at]
                words[row, slot >> 6] |= _ONE << np.uint64(slot & _LOW)


@njit(cache=True)
def stored_by_filter(words: Words, slots: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Which of `slots` have their bit set, by filter: `(ends, found)`, where the numbers of filter f are
    `found[ends[f]:ends[f + 1]]`.
    """
    ends = np.zeros(words.shape[0] + 1, np.int64)
    for row in range(words.shape[0]):
        count = np.int64(0)
        for slot in slots:
            count += np.int64((words[row, slot >> 6] >> np.uint64(slot & _LOW)) & _ONE)
        ends[row + 1] = ends[row] + count
    found = np.empty(ends[-1], np.int64)
    for row in range(words.shape[0]):
        at = ends[row]
        if at == ends[row + 1]:
            continue
        for number in range(len(slots)):
            slot = slots[number]
            if (words[row, slot >> 6] >> np.uint64(slot & _LOW)) & _ONE:
                found[at] = number
                at += 1
    return ends, found


@njit(cache=True)
def rows_in_ranges(words: Words, slots: Ints, start: Ints, stop: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The rows of ascending ranges whose bits are set in the bitmap of one filter, ascending."""
    rows = np.empty((stop - start).sum(), np.int64)
    found = 0
    for which in range(len(start)):
        for row in range(start[which], stop[which]):
            if (words[slots[row] >> 6] >> np.uint64(slots[row] & _LOW)) & _ONE:
                rows[found] = row
                found += 1
    return rows[:found]


@njit(cache=True)
def stored_rows(words: Words, row_of: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The rows whose bits are set in the bitmap of one filter, in the order of their slots."""
    count = np.int64(0)
    for word in words:
        count += _bits_of(word)
    rows = np.empty(count, np.int64)
    found = 0
    for at in range(len(words)):
        word = words[at]
        while word:
            lowest = word & (~word + _ONE)
            word ^= lowest
            row = row_of[(at << 6) + _bits_of(lowest - _ONE)]
            if row >= 0:
                rows[found] = row
                found += 1
    return rows[:found]


@njit(cache=True)
def bits_by_slot(mask: Bools, slots: Ints, size: int):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A mask of rows as a bitmap of `size` words by slot."""
    words = np.zeros(size, np.uint64)
    for row in range(len(mask)):
        if mask[row]:
            words[slots[row] >> 6] |= _ONE << np.uint64(slots[row] & _LOW)
    return words


@njit(cache=True)
def mask_by_row(words: Words, slots: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A bitmap by slot as a mask of rows."""
    mask = np.empty(len(slots), np.bool_)
    for row in range(len(slots)):
        mask[row] = (words[slots[row] >> 6] >> np.uint64(slots[row] & _LOW)) & _ONE != 0
    return mask


@njit(cache=True)
def count_within(words: Words, rows: Ints, within: Words, union: Words):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of set bits of each of the filters `rows` that are also set in `within`. All of these bits
    are set in `union`, too.
    """
    counts = np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        count = np.int64(0)
        for place in range(len(within)):
            word = words[rows[at], place] & within[place]
            union[place] |= word
            count += _bits_of(word)
        counts[at] = count
    return counts


@njit(cache=True)
def _bits_of(word: np.uint64) -> np.int64:  # pragma: no cover - compiled
    """The number of set bits of a word (Warren, Hacker's Delight, section 5-1)."""
    word -= (word >> _ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
