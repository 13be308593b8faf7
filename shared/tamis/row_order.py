"""Stable order of rows by key and time, by radix and counting sort; rows that are in order are left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit

# Bits a pass: its counters fit in the first level of cache beside the data that they count.
_DIGIT = 11
# With fewer rows, a comparison sort is done before the counters are cleared.
_FEW = 512
# Rows that are checked without a branch, so that they are compared as vectors; then the check may end.
_BLOCK = 4096

# Row numbers are unsigned: a negative one would mean a row from the end, and keeps loops from vectorising.
_ONE = np.uint64(1)

Int64s = npt.NDArray[np.int64]
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
    """Write the stable order of `times` to `order`; the times are less than 2^`bits` above `least`.

    A word has a row's time in its high bits and its number in the low bits, so that only one column is moved.
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
    """The stable permutation that orders rows by time; None if they are already in that order."""
    if _ascending(times):
        return None
    least = int(times.min())
    bits, row_bits = (int(times.max()) - least).bit_length(), (len(times) - 1).bit_length()
    if len(times) < _FEW or bits + row_bits > 64:
        return np.argsort(times, kind="stable")
    # Allocated by NumPy, which asks for large pages, so that the first touch causes few page faults.
    words, other = np.empty((2, len(times)), np.uint64)
    order = np.empty(len(times), np.int64)
    _radix_sort(times, np.int64(least), bits, np.uint64(row_bits), words, other, order)
    return order


@njit(cache=True)
def _count_sort(keys: Int64s, least: np.int64, order: Int64s, end: Int64s) -> Int64s:
    """Sort `order` by key, stable. `end`: a zero for each possible key and one more."""
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
    """The stable permutation that orders rows by key, then time; None if they are already in that order."""
    if _ordered(keys, times):
        return None
    order = by_time(times)
    if order is None:
        order = np.arange(len(keys))
    least, most = int(keys.min()), int(keys.max())
    # Codes from a dictionary are dense: a counting sort takes linear time, and is some ten times faster
    # than a comparison sort.
    if most - least < 4 * len(keys):
        return _count_sort(keys, np.int64(least), order, np.zeros(most - least + 2, np.int64))
    return order[np.argsort(keys[order], kind="stable")]
