"""Evaluation of the predicates of many subscribers over micro-batches of columns.

`bitmap` is the index over all boxes, and `scan` tries one box after the other, which is faster where few
boxes decide most tuples. `Dispatcher` chooses between them for each batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.kernels import njit
from tamis.predicates.bitmap import WORD, Bitmap, mark_owners
from tamis.predicates.boxes import Box
from tamis.predicates.differences import ComputedDimension
from tamis.predicates.keys import KeyOrder, computed_values
from tamis.predicates.ranges import ANYTHING, HIGH

Int64s = npt.NDArray[np.int64]


def spatial_order(lower: Int64s, upper: Int64s) -> Int64s:
    """An order with neighbouring boxes together, as in a k-d tree: boxes are halved at the median of the
    widest dimension until each part fits into a word of bits. `lower`, `upper`: keys of shape (boxes, d).
    """
    middles = lower / 2.0 + upper / 2.0
    out: list[Int64s] = []
    parts = [np.arange(len(lower))]
    while parts:
        rows = parts.pop()
        if len(rows) <= WORD or not middles.shape[1]:
            out.append(rows)
            continue
        widest = int(np.ptp(middles[rows], axis=0).argmax())
        rows = rows[np.argsort(middles[rows, widest], kind="stable")]
        half = (len(rows) // WORD + 1) // 2 * WORD
        parts += [rows[half:], rows[:half]]
    return np.concatenate(out)


def size(box: Box) -> tuple[int, float]:
    """A sort key by which the largest box is first: the number of its bounded ends, then the negated volume
    of its finite ranges (kuntschke-2006, section 6.1).
    """
    bounded, volume = 0, 1.0
    for lower, upper in box.values():
        if upper != HIGH and len(lower) == len(upper) == 2 and not isinstance(lower[1], str):
            bounded += 2
            volume *= float(upper[1]) - float(lower[1])
        else:
            bounded += (len(lower) == 2) + (upper != HIGH)
    return bounded, -volume if math.isfinite(volume) else -math.inf


Bools = npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def scan(keys: Int64s, lower: Int64s, upper: Int64s, boxes: Int64s, out: Bools) -> int:
    """Set `out` where one of the boxes contains the tuple. Returns the number of tests of a box.

    `keys`: (d, n); `lower`, `upper`: (boxes, d), half-open; `boxes`: the boxes to try, in this order.
    """
    looked = 0
    dimensions = keys.shape[0]
    for row in range(keys.shape[1]):
        hit = False
        for box in boxes:
            looked += 1
            hit = True
            for d in range(dimensions):
                key = keys[d, row]
                if key < lower[box, d] or key >= upper[box, d]:
                    hit = False
                    break
            if hit:
                break
        out[row] = hit
    return looked


Columns = Mapping[str, npt.NDArray[np.generic]]

# Rows that are looked up together: their keys stay in the cache.
BLOCK = 8192
# Rows at the head of a batch; they decide whether the rest is scanned or looked up.
SAMPLE = 256
# The cost of the index for one tuple, in tests of a box by the scan. A tuple outside of all ranges of one
# dimension is rejected at once; otherwise each dimension is looked up, and a few words of bits are combined.
# Measured with 10 to 5,000 boxes in one to ten dimensions, so that neither is used where it is much slower.
COST_OUTSIDE, COST_OF_DIMENSION, COST_OF_WORD, MOST_WORDS = 2.0, 10.0, 3.0, 8


class Boxes(Protocol):
    """A predicate: its boxes, and the type of each attribute in them."""

    @property
    def boxes(self) -> Sequence[Box]: ...

    @property
    def types(self) -> Mapping[str, Type]: ...


class Dispatcher:
    """The predicates of many subscribers of one stream, evaluated together.

    `predicates` are in any order; each attribute must have one type. For each batch, the boxes are scanned if
    few tests decide most tuples (as for a wide predicate), and otherwise looked up in the index.
    """

    def __init__(self, predicates: Sequence[Boxes]) -> None:
        types = {name: kind for predicate in predicates for name, kind in predicate.types.items()}
        self._names = sorted({name for p in predicates for box in p.boxes for name in box})
        boxes = [(at, box) for at, p in enumerate(predicates) for box in p.boxes]
        self._largest_firsts = {
            name: KeyOrder.of(
                name.type if isinstance(name, ComputedDimension) else types[name],
                (cut for _, box in boxes for cut in box.get(name, ANYTHING)),
            )
            for name in self._names
        }
        lower, upper = self._bounds([box for _, box in boxes])
        places = spatial_order(lower, upper)
        self._lower, self._upper = lower[places], upper[places]
        self._owners = np.array([boxes[place][0] for place in places.tolist()], np.int64)
        self._subscribers = len(predicates)
        self._bitmap = Bitmap(self._lower, self._upper)
        sizes = [size(boxes[place][1]) for place in places.tolist()]
        self._largest_first = np.array(sorted(range(len(boxes)), key=sizes.__getitem__), np.int64)

    @property
    def read(self) -> frozenset[str]:
        """The attributes that it reads."""
        read = (name.attributes if isinstance(name, ComputedDimension) else (name,) for name in self._names)
        return frozenset(chain.from_iterable(read))

    def any(self, columns: Columns) -> Bools:
        """The tuples that some subscriber wants. `columns`: arrays of shape (n,) by attribute."""
        count = len(next(iter(columns.values()))) if columns else 0
        out = np.zeros(count, np.bool_)
        if not len(self._largest_first):
            return out
        head = slice(0, SAMPLE)
        keys = self._keys(columns, head)
        looked = self._by_scan(keys, out[head])
        way = self._by_scan if looked <= self._cost_of_index(keys) else self._by_index
        for first in range(SAMPLE, count, BLOCK):
            rows = slice(first, first + BLOCK)
            way(self._keys(columns, rows), out[rows])
        return out

    def _cost_of_index(self, keys: Int64s) -> float:
        least, behind = self._lower.min(axis=0)[:, None], self._upper.max(axis=0)[:, None]
        inside: int = int(((keys >= least) & (keys < behind)).all(axis=0).sum())
        words = COST_OF_WORD * min(self._bitmap.words, MOST_WORDS)
        each: float = COST_OF_DIMENSION * len(self._names) + words
        return float((keys.shape[1] - inside) * COST_OUTSIDE + inside * each)

    def _by_scan(self, keys: Int64s, out: Bools) -> int:
        return scan(keys, self._lower, self._upper, self._largest_first, out)

    def _by_index(self, keys: Int64s, out: Bools) -> int:
        self._bitmap.any(keys, out)
        return 0

    def which(self, columns: Columns) -> Bools:
        """The tuples that each subscriber wants: shape (n, subscribers)."""
        keys = self._keys(columns, slice(None))
        # Each subscriber's tuples are contiguous in memory, since they are read as a column.
        out = np.zeros((self._subscribers, keys.shape[1]), np.bool_)
        mark_owners(self._bitmap.which(keys), self._owners, out)
        return out.T

    def _bounds(self, boxes: Sequence[Box]) -> tuple[Int64s, Int64s]:
        shape = len(boxes), len(self._names)
        lower, upper = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for d, name in enumerate(self._names):
            order = self._largest_firsts[name]
            for at, box in enumerate(boxes):
                first, behind = box.get(name, ANYTHING)
                lower[at, d], upper[at, d] = order.of_cut(first), order.of_cut(behind)
        return lower, upper

    def _keys(self, columns: Columns, rows: slice) -> Int64s:
        part = {name: column[rows] for name, column in columns.items()}
        count = len(next(iter(part.values()))) if part else 0
        keys = np.empty((len(self._names), count), np.int64)
        for d, name in enumerate(self._names):
            order = self._largest_firsts[name]
            order.of_values(
                computed_values(name, part, order) if isinstance(name, ComputedDimension) else part[name],
                keys[d],
            )
        return keys
