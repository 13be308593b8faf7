"""Methods of matching of kuntschke-2006 that Tamis doesn't use: strategies of splitting, and HSR unchecked.

The strategies are BFS, DFS and MIX (Algorithms 10 to 12), compiled. A part is compared with one box after the
other, and is split by each box that overlaps it. If a part remains after the last box, the box isn't covered,
and the search ends.

With a bitmap index (section 3.6), only overlapping boxes are visited. For each dimension and each cut, the
index has two sets of boxes as bits: the boxes that begin before the cut, and the boxes that end after it. Two
look-ups for each dimension, combined with AND, give the boxes that overlap a part. A part must not be split
again by a box by which it has been split already. These are all boxes up to some number, so they are skipped
without a change of the index. The paper asks for such an index, so that DFS and MIX can use an index, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates import matching
from tamis.predicates.bitmap import first_bit
from tamis.predicates.cover import decided
from tamis.predicates.cover.splitting import (
    COVERED,
    MOST_PARTS,
    OPEN,
    SPENT,
    Int32s,
    overlap,
    split,
    with_room,
)
from tamis.predicates.cover.zones import compares
from tamis.predicates.heuristics import Boxes, Floats, measured_boxes, quick_check
from tamis.predicates.matching import Match, Method
from tamis.predicates.predicate import Predicate

Words = npt.NDArray[np.uint64]


class Index(NamedTuple):
    """Boxes, and the sets of boxes that begin before a cut, and that end after it, of shape (d, cuts, words).

    There are no cuts if one box after the other is tried.
    """

    lower: Int32s
    upper: Int32s
    begun: Words
    open: Words


@njit(cache=True, nogil=True)
def index(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, bitmaps: bool) -> Index:
    """The index by which parts of the box `lo` to `hi` find others."""
    boxes, dimensions = lower.shape
    cuts = 0
    if bitmaps:
        for d in range(dimensions):
            cuts = max(cuts, hi[d] + 1)
            for box in range(boxes):
                cuts = max(cuts, upper[box, d] + 1)
    words = (boxes + 63) // 64
    begun = np.zeros((dimensions, cuts, words), np.uint64)
    open_ = np.zeros((dimensions, cuts, words), np.uint64)
    if cuts == 0:
        return Index(lower, upper, begun, open_)
    for d in range(dimensions):
        for box in range(boxes):
            bit = np.uint64(1) << np.uint64(box % 64)
            begun[d, lower[box, d] + 1, box // 64] |= bit
            open_[d, upper[box, d] - 1, box // 64] |= bit
        for cut in range(1, cuts):
            for word in range(words):
                begun[d, cut, word] |= begun[d, cut - 1, word]
        for cut in range(cuts - 2, -1, -1):
            for word in range(words):
                open_[d, cut, word] |= open_[d, cut + 1, word]
    return Index(lower, upper, begun, open_)


@njit(cache=True, nogil=True)
def following(lo: Int32s, hi: Int32s, box: int, by: Index) -> int:
    """The first box from `box` on that overlaps a part; the number of boxes if there is none."""
    if by.begun.shape[1] == 0:
        for other in range(box, len(by.lower)):
            if overlap(lo, hi, by.lower[other], by.upper[other]):
                return other
        return len(by.lower)
    for word in range(box // 64, by.begun.shape[2]):
        found = ~np.uint64(0)
        if word == box // 64:
            found <<= np.uint64(box % 64)
        for d in range(len(lo)):
            found &= by.begun[d, hi[d], word] & by.open[d, lo[d], word]
            if found == 0:
                break
        if found != 0:
            return word * 64 + first_bit(found)
    return len(by.lower)


@njit(cache=True, nogil=True)
def breadth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """BFS, Algorithm 10: in each round, every remaining part is split by its next box."""
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
    los, his, at = np.empty((1, d), np.int32), np.empty((1, d), np.int32), np.zeros((1, 1), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    while n:
        spent += n
        if spent > budget:
            return SPENT
        next_los, next_his = np.empty((n + 2 * d, d), np.int32), np.empty((n + 2 * d, d), np.int32)
        next_at = np.empty((n + 2 * d, 1), np.int32)
        m = int(np.int64(0))  # of a constant numba would compile `split` once more
        for part in range(n):
            box = following(los[part], his[part], at[part, 0], by) if indexed else at[part, 0]
            if box == boxes:
                return OPEN
            wanted = m + 2 * d
            if wanted > MOST_PARTS:
                return SPENT
            if wanted > len(next_at):
                next_los, next_his = with_room(next_los, wanted), with_room(next_his, wanted)
                next_at = with_room(next_at, wanted)
            first = m
            if indexed or overlap(los[part], his[part], lower[box], upper[box]):
                m = split(los[part], his[part], lower[box], upper[box], next_los, next_his, m)
            else:
                next_los[m], next_his[m] = los[part], his[part]
                m += 1
            for piece in range(first, m):
                next_at[piece, 0] = box + 1
        los, his, at, n = next_los, next_his, next_at, m
    return COVERED


@njit(cache=True, nogil=True)
def depth_first(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """DFS, Algorithm 11, with a stack: one part is split by the next box that overlaps it, then the parts
    that are left of it.
    """
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
    los, his = np.empty((2 * d + 1, d), np.int32), np.empty((2 * d + 1, d), np.int32)
    at = np.zeros((2 * d + 1, 1), np.int32)
    los[0], his[0] = lo, hi
    n, spent = 1, 0
    while n:
        spent += 1
        if spent > budget:
            return SPENT
        n -= 1
        part_lo, part_hi = los[n].copy(), his[n].copy()
        box = following(part_lo, part_hi, at[n, 0], by)
        if box == boxes:
            return OPEN
        los, his, at = with_room(los, n + 2 * d), with_room(his, n + 2 * d), with_room(at, n + 2 * d)
        m = split(part_lo, part_hi, lower[box], upper[box], los, his, n)
        at[n:m, 0] = box + 1
        n = m
    return COVERED


@njit(cache=True, nogil=True)
def mixed(lo: Int32s, hi: Int32s, lower: Int32s, upper: Int32s, budget: int, indexed: bool) -> int:
    """MIX, Algorithm 12: all parts that one split has made are split by one box, then the parts of each of
    them.

    A group is a run of parts on the stack, with the number of the box with which to continue.
    """
    d, boxes = len(lo), len(lower)
    by = index(lo, hi, lower, upper, indexed)
    los, his = np.empty((4 * d + 1, d), np.int32), np.empty((4 * d + 1, d), np.int32)
    begins, at = np.zeros((4, 1), np.int32), np.zeros((4, 1), np.int32)
    los[0], his[0] = lo, hi
    n, groups, spent = 1, 1, 0
    while groups:
        groups -= 1
        begin, after = int(np.int64(begins[groups, 0])), at[groups, 0]
        members = n - begin
        spent += members
        if spent > budget:
            return SPENT
        old_los, old_his = los[begin:n].copy(), his[begin:n].copy()
        n = begin
        begins, at = with_room(begins, groups + members + 1), with_room(at, groups + members + 1)
        for part in range(members):
            box = following(old_los[part], old_his[part], after, by) if indexed else after
            if box == boxes:
                return OPEN
            los, his = with_room(los, n + 2 * d), with_room(his, n + 2 * d)
            first = n
            if indexed or overlap(old_los[part], old_his[part], lower[box], upper[box]):
                n = split(old_los[part], old_his[part], lower[box], upper[box], los, his, n)
            else:
                los[n], his[n] = old_los[part], old_his[part]
                n += 1
            if n > first:
                begins[groups, 0], at[groups, 0] = first, box + 1
                groups += 1
    return COVERED


@njit(cache=True, nogil=True)
def by_volume(lower: Int32s, upper: Int32s, places: Floats, boxes: int) -> npt.NDArray[np.int64]:
    """The first `boxes` boxes, the largest first: by unbounded ends, then by the volume of finite ranges.

    The largest boxes cover the most, so splitting by them first leaves little (kuntschke-2006, section 6.1).
    """
    unbounded, volume = np.zeros(boxes), np.ones(boxes)
    for box in range(boxes):
        for d in range(lower.shape[1]):
            length = places[d, upper[box, d]] - places[d, lower[box, d]]
            if length < math.inf:
                volume[box] *= length
            else:
                unbounded[box] += 1.0
    order = np.argsort(-volume, kind="mergesort")
    return order[np.argsort(-unbounded[order], kind="mergesort")]


def by_splitting(strategy: Callable[..., int], *, check: bool, indexed: bool = False) -> Method:
    """The paper's method: by a strategy over the boxes of the stream, the largest first, with or without the
    quick check (Algorithm 1) and an index.
    """

    def method(stream: Boxes, query: Boxes, types: Mapping[str, Type]) -> Boxes | None:
        if any(map(compares, (*stream, *query))):
            return matching.exact(stream, query, types)  # where attributes are compared, there is one way
        boxes = measured_boxes(stream, query, types)
        lower, upper = boxes.lower, boxes.upper
        rows = by_volume(lower, upper, boxes.places, len(stream))
        changed = False
        for row in range(len(stream), len(lower)):
            checked = quick_check(lower[row], upper[row], lower, upper, rows) if check else 0
            if checked < 0 or (
                checked == 0
                and not decided(
                    partial(strategy, indexed=indexed), lower[row], upper[row], lower[rows], upper[rows]
                )
            ):
                inside = (lower[rows] >= lower[row]).all(axis=1) & (upper[rows] <= upper[row]).all(axis=1)
                rows, changed = np.append(rows[~inside], row), True
        return tuple((*stream, *query)[row] for row in sorted(rows.tolist())) if changed else None

    return method


def _unchecked(stream: Boxes, query: Boxes, types: Mapping[str, Type]) -> Boxes | None:
    return (*stream, *query) if query else None


METHODS: Mapping[str, Method] = {
    **matching.METHODS,
    "hsr-unchecked": _unchecked,
    **{
        name + suffix: by_splitting(strategy, check=suffix != "-unchecked", indexed=suffix == "-indexed")
        for name, strategy in (("bfs", breadth_first), ("dfs", depth_first), ("mix", mixed))
        for suffix in ("", "-indexed", "-unchecked")
    },
}
"""All methods: those of Tamis, and the paper's."""


def match(stream: Predicate, query: Predicate, method: str = "exact") -> Match:
    """Match a query with a stream by one of `METHODS`."""
    return matching.match_by(METHODS[method], stream, query)
