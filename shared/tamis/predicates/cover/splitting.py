"""The split algorithm (kuntschke-2006, section 3.5), compiled: decides whether boxes cover another box.

Boxes are compressed to arrays of the numbers of their cuts. A strategy takes one box of shape (d,), the boxes
that may cover it, of shape (boxes, d), and a budget. It returns `COVERED`, `OPEN`, or `SPENT` if it needed
more parts than the budget, or had to keep too many. Empty parts of a split are never kept (erratum of the
paper). Tamis uses the strategy `filtered_depth_first`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.predicates.boxes import Box
from tamis.predicates.ranges import ANYTHING, Cut

Int32s = npt.NDArray[np.int32]


class CompressedBoxes(NamedTuple):
    """Half-open ranges of numbers of cuts, of shape (boxes, attributes), and the cuts of each attribute,
    ascending.
    """

    lower: Int32s
    upper: Int32s
    cuts: Mapping[str, Sequence[Cut]]


def compress(boxes: Sequence[Box]) -> CompressedBoxes:
    """The boxes over all attributes that any of them names, ascending (at least one)."""
    lower, upper = [], []
    cuts: dict[str, Sequence[Cut]] = {}
    for name in sorted(set().union(*boxes)) or [""]:
        ranges = [box.get(name, ANYTHING) for box in boxes]
        firsts, behinds = [found[0] for found in ranges], [found[1] for found in ranges]
        cuts[name] = ends = sorted({*firsts, *behinds})
        number = dict(zip(ends, range(len(ends)), strict=True))
        lower.append([number[cut] for cut in firsts])
        upper.append([number[cut] for cut in behinds])
    return CompressedBoxes(_by_box(lower), _by_box(upper), cuts)


def _by_box(rows: list[list[int]]) -> Int32s:
    return np.ascontiguousarray(np.array(rows, np.int32).T)


COVERED, OPEN, SPENT = 1, 0, -1
# The most parts that a strategy keeps at a time, some hundred megabytes.
MOST_PARTS = 4_000_000


@njit(cache=True, nogil=True)
def overlap(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s) -> bool:
    """True if two boxes overlap."""
    for d in range(len(lo)):  # noqa: SIM110 - a generator isn't compiled
        if lo[d] >= upper[d] or hi[d] <= lower[d]:
            return False
    return True


@njit(cache=True, nogil=True)
def split(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, los: Int32s, his: Int32s, n: int) -> int:
    """Write the parts of a box outside of another, overlapping box from row `n` on; returns the new number of
    rows. `lo` and `hi` are narrowed to the overlap.
    """
    for d in range(len(lo)):
        if lo[d] < lower[d]:
            los[n], his[n] = lo, hi
            his[n, d] = lower[d]
            n += 1
            lo[d] = lower[d]
        if upper[d] < hi[d]:
            los[n], his[n] = lo, hi
            los[n, d] = upper[d]
            n += 1
            hi[d] = upper[d]
    return n


@njit(cache=True, nogil=True)
def with_room(rows: Int32s, wanted: int) -> Int32s:
    """The array of rows, or a larger copy if it has no room for `wanted` rows."""
    if wanted <= len(rows):
        return rows
    more = np.empty((2 * wanted, rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@njit(cache=True, nogil=True)
def filtered_depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int) -> int:
    """Split depth first. Each part has a list of the boxes that overlap it, and is split by the box that
    covers most of it.

    A part inside one box is covered. A part that no box overlaps ends the search. The boxes of a part are a
    run of `known`, which is filtered from the run of the part before the split. So no index is needed whose
    entries can be switched off, as in section 3.6 of the paper.
    """
    d, boxes = len(lo), len(lower)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    runs = np.empty((2 * d + 1, 2), np.int64)
    known = np.empty(max(4 * boxes, 16), np.int32)
    m = 0
    for box in range(boxes):
        if overlap(lo, hi, lower[box], upper[box]):
            known[m] = box
            m += 1
    los[0], his[0], runs[0, 0], runs[0, 1] = lo, hi, 0, m
    n, spent = 1, 0
    while n:
        spent += 1
        if spent > budget:
            return SPENT
        n -= 1
        part_lo, part_hi = los[n].copy(), his[n].copy()
        first, behind = runs[n, 0], runs[n, 1]
        if first == behind:
            return OPEN
        best, most = -1, -1.0
        for i in range(first, behind):
            share = 1.0
            for k in range(d):
                inside = min(part_hi[k], upper[known[i], k]) - max(part_lo[k], lower[known[i], k])
                share *= inside / (part_hi[k] - part_lo[k])
            if share > most:
                best, most = known[i], share
        if most >= 1.0:
            continue
        los, his = with_room(los, n + 2 * d), with_room(his, n + 2 * d)
        if n + 2 * d > len(runs):
            more = np.empty((2 * (n + 2 * d), 2), np.int64)
            more[: len(runs)] = runs
            runs = more
        parts = split(part_lo, part_hi, lower[best], upper[best], los, his, n)
        end = behind
        for part in range(n, parts):
            if end + behind - first > len(known):
                longer = np.empty(2 * (end + behind - first), np.int32)
                longer[:end] = known[:end]
                known = longer
            start = end
            for i in range(first, behind):
                box = known[i]
                if box != best and overlap(los[part], his[part], lower[box], upper[box]):
                    known[end] = box
                    end += 1
            if end == start:
                return OPEN
            runs[part, 0], runs[part, 1] = start, end
        n = parts
    return COVERED
