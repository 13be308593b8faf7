"""Compiled inner loops over batches of tuples."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def numbered(codes: Ints, size: int):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Codes below `size` as numbers without gaps, by first appearance; and where each appears first."""
    table = np.full(size, -1, np.int64)
    first = np.empty(len(codes), np.int64)
    out = np.empty(len(codes), np.int64)
    count = 0
    for row in range(len(codes)):
        number = table[codes[row]]
        if number < 0:
            number = count
            table[codes[row]] = number
            first[number] = row
            count += 1
        out[row] = number
    return out, first[:count]


@njit(cache=True)
def rising(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    numbers: Ints, leads: Ints, best: Ints, known: NDArray[np.bool_]
):
    """Which rows are the first of their number, or lead all of it before. `best` and `known` go on."""
    out = np.zeros(len(numbers), np.bool_)
    for row in range(len(numbers)):
        number = numbers[row]
        if not known[number] or leads[row] > best[number]:
            known[number] = True
            best[number] = leads[row]
            out[row] = True
    return out
