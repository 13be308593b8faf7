"""The order of rows by key and time: found only where they aren't in it, and by counting, not comparing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tamis.omission.columns import Int64s

# As many counters as fit in the first level of cache beside what they count.
_DIGIT = 11
# Below, comparing is done before the counters are cleared.
_FEW = 512
# Rows that are looked at before the answer can be no: all of them without a branch, as vectors.
_BLOCK = 4096

# Row numbers without a sign: since one below 0 would mean a row from the end, loops over others stay scalar.
_ONE = np.uint64(1)

Words = npt.NDArray[np.uint64]


@njit(cache=True)
def _ascending(times: Int64s) -> bool:
    for start in range(1, len(times), _BLOCK):
        wrong = False
        for i in range(np.uint64(start), np.uint64(min(start + _BLOCK, len(times)))):
            wrong |= times[i] < times[i - _ONE]
        if wrong:
            return False
    return True


@njit(cache=True)
def _ordered(keys: Int64s, times: Int64s) -> bool:
    for start in range(1, len(times), _BLOCK):
        wrong = False
        for i in range(np.uint64(start), np.uint64(min(start + _BLOCK, len(times)))):
            wrong |= keys[i] < keys[i - _ONE]
            wrong |= (keys[i] == keys[i - _ONE]) & (times[i] < times[i - _ONE])
        if wrong:
            return False
    return True


@njit(cache=True)
def _radix_sort(
    times: Int64s, least: np.int64, bits: int, row_bits: np.uint64, words: Words, other: Words, order: Int64s
) -> None:
    """`order` becomes the stable order of `times`, which lie less than 2^`bits` above `least`.

    A word is a row's time above its number, so that one column moves, not two.
    """
    for i in range(len(times)):
        words[i] = (np.uint64(times[i]) - np.uint64(least)) << row_bits | np.uint64(i)
    passes = -(-bits // _DIGIT)
    width = np.uint64(-(-bits // passes))
    ends = np.empty(1 << width, np.int64)
    mask, shift = np.uint64(len(ends) - 1), row_bits
    for _ in range(passes):
        ends[:] = 0
        for word in words:
            ends[(word >> shift) & mask] += 1
        end = 0
        for digit in range(len(ends)):
            end, ends[digit] = end + ends[digit], end
        for word in words:
            digit = (word >> shift) & mask
            other[np.uint64(ends[digit])] = word
            ends[digit] += 1
        words, other = other, words
        shift += width
    mask = (np.uint64(1) << row_bits) - np.uint64(1)
    for i in range(len(words)):
        order[i] = words[i] & mask


def by_time(times: Int64s) -> Int64s | None:
    """The stable permutation that orders rows by time; None where they are in that order already."""
    if _ascending(times):
        return None
    least = int(times.min())
    bits, row_bits = (int(times.max()) - least).bit_length(), (len(times) - 1).bit_length()
    if len(times) < _FEW or bits + row_bits > 64:
        return np.argsort(times, kind="stable")
    # NumPy's columns, not compiled code's: it asks for large pages, of which few are missing at first touch.
    words, other = np.empty((2, len(times)), np.uint64)
    order = np.empty(len(times), np.int64)
    _radix_sort(times, np.int64(least), bits, np.uint64(row_bits), words, other, order)
    return order


@njit(cache=True)
def _count_sort(keys: Int64s, least: np.int64, order: Int64s, end: Int64s) -> Int64s:
    """`order` sorted by key, stable; `end` is zeros, one for each possible key and one more."""
    for key in keys:
        end[key - least + 1] += 1
    for k in range(1, len(end)):
        end[k] += end[k - 1]
    out = np.empty_like(order)
    for row in order:
        k = keys[row] - least
        out[end[k]] = row
        end[k] += 1
    return out


def by_key_and_time(keys: Int64s, times: Int64s) -> Int64s | None:
    """The stable permutation that orders rows by key, then time; None where they are in that order
    already."""
    if _ordered(keys, times):
        return None
    order = by_time(times)
    if order is None:
        order = np.arange(len(keys))
    least, most = int(keys.min()), int(keys.max())
    # Codes from a dictionary are dense; counting them is linear, and some ten times faster than comparing
    # them.
    if most - least < 4 * len(keys):
        return _count_sort(keys, np.int64(least), order, np.zeros(most - least + 2, np.int64))
    return order[np.argsort(keys[order], kind="stable")]
