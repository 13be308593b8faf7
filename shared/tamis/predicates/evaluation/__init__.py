"""Evaluation of the predicates of many subscribers over micro-batches of columns.

`keys` converts values of all types to int64 keys. `bitmap` is the index over all boxes, and `scan` tries one
box after the other, which is faster where few boxes decide most tuples. `Dispatcher` chooses between them for
each batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box
from tamis.predicates.differences import Difference
from tamis.predicates.evaluation.bitmap import Bitmap, mark_owners
from tamis.predicates.evaluation.box_orders import size, spatial_order
from tamis.predicates.evaluation.keys import KeyOrder, differences
from tamis.predicates.evaluation.scan import scan
from tamis.predicates.ranges import ANYTHING

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
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
        self._orders = {
            name: KeyOrder.of(
                name.type if isinstance(name, Difference) else types[name],
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
        self._order = self._largest_first
        self._active = np.ones(len(predicates), np.bool_)

    @property
    def read(self) -> frozenset[str]:
        """The attributes that it reads."""
        pairs = ((name.left, name.right) if isinstance(name, Difference) else (name,) for name in self._names)
        return frozenset(chain.from_iterable(pairs))

    def activate(self, subscriber: int, active: bool = True) -> None:
        """Switch a subscriber's predicate on or off; nothing is rebuilt."""
        self._active[subscriber] = active
        for box in np.flatnonzero(self._owners == subscriber).tolist():
            self._bitmap.activate(box, active)
        self._order = self._largest_first[self._active[self._owners[self._largest_first]]]

    def any(self, columns: Columns) -> Bools:
        """The tuples that some active subscriber wants. `columns`: arrays of shape (n,) by attribute."""
        count = len(next(iter(columns.values()))) if columns else 0
        out = np.zeros(count, np.bool_)
        if not len(self._order):
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
        return scan(keys, self._lower, self._upper, self._order, out)

    def _by_index(self, keys: Int64s, out: Bools) -> int:
        self._bitmap.any(keys, out)
        return 0

    def which(self, columns: Columns) -> Bools:
        """The tuples that each active subscriber wants: shape (n, subscribers)."""
        keys = self._keys(columns, slice(None))
        # Each subscriber's tuples are contiguous in memory, since they are read as a column.
        out = np.zeros((self._subscribers, keys.shape[1]), np.bool_)
        mark_owners(self._bitmap.which(keys), self._owners, out)
        return out.T

    def _bounds(self, boxes: Sequence[Box]) -> tuple[Int64s, Int64s]:
        shape = len(boxes), len(self._names)
        lower, upper = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for d, name in enumerate(self._names):
            order = self._orders[name]
            for at, box in enumerate(boxes):
                first, behind = box.get(name, ANYTHING)
                lower[at, d], upper[at, d] = order.of_cut(first), order.of_cut(behind)
        return lower, upper

    def _keys(self, columns: Columns, rows: slice) -> Int64s:
        part = {name: column[rows] for name, column in columns.items()}
        count = len(next(iter(part.values()))) if part else 0
        keys = np.empty((len(self._names), count), np.int64)
        for d, name in enumerate(self._names):
            order = self._orders[name]
            order.of_values(
                differences(name, part, order) if isinstance(name, Difference) else part[name], keys[d]
            )
        return keys
