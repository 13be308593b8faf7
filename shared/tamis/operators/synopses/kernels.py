"""Compiled inner loops of `row_numbering` and `bucket_maxima`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]


@njit(cache=True)
def slot_of(table: Ints, keys: Ints, key: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The slot of a key in the table, or the free slot where it would be."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for part in key:
        mixed = (mixed ^ np.uint64(part)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    slot = np.int64(mixed & np.uint64(len(table) - 1))
    while table[slot] >= 0:
        same = True
        for place in range(len(key)):
            if keys[table[slot], place] != key[place]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@njit(cache=True)
def entered(table: Ints, keys: Ints, count: int) -> None:  # pragma: no cover - compiled
    """Enter the first keys in an empty table, whose size is a power of two."""
    for number in range(count):
        table[slot_of(table, keys, keys[number])] = number


@njit(cache=True)
def numbered(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    table: Ints, keys: Ints, count: int, rows: Ints, start: int, out: Ints
):
    """Write the numbers of rows, from `start` on, into `out`. New rows are numbered from `count` on.

    Returns the number of keys afterwards, and the row at which there was no room for a new key, or the number
    of rows.
    """
    for row in range(start, len(rows)):
        slot = slot_of(table, keys, rows[row])
        if table[slot] < 0:
            if count == len(keys):
                return count, row
            table[slot] = count
            keys[count] = rows[row]
            count += 1
        out[row] = table[slot]
    return count, len(rows)


@njit(cache=True)
def rising(
    best: Ints, count: int, numbers: Ints, leads: Ints, out: NDArray[np.bool_]
) -> None:  # pragma: no cover - compiled
    """Mark rows with a new number (at least `count`), or with a greater lead than all rows of their number
    before. `best` has room for all numbers.
    """
    for row in range(len(numbers)):
        number = numbers[row]
        if number >= count:
            count = number + 1
        elif leads[row] <= best[number]:
            continue
        best[number] = leads[row]
        out[row] = True
