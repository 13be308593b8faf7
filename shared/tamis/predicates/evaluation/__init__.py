"""Evaluating predicates over micro-batches of columns: does any box hold a tuple, and whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box
from tamis.predicates.differences import Difference
from tamis.predicates.evaluation.bitmap import Bitmap, mark_owners
from tamis.predicates.evaluation.keys import KeyOrder, differences
from tamis.predicates.evaluation.scan import scan
from tamis.predicates.ranges import ANYTHING

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[np.generic]]

# Rows at the head of a batch on which the way of the rest is chosen.
SAMPLE = 256
# What the index costs for one tuple, in looks at a box of the scan: for each dimension and each word of bits.
# Measured with 10 to 5,000 boxes in three dimensions; neither way may be taken where it is much slower.
COST_OF_DIMENSION = 5.0
COST_OF_WORD = 3.5


class Boxes(Protocol):
    """A predicate: its boxes, and the type of each attribute that they name."""

    @property
    def boxes(self) -> Sequence[Box]: ...

    @property
    def types(self) -> Mapping[str, Type]: ...


class Dispatcher:
    """The predicates of many subscribers of one stream, evaluated together.

    `predicates` in any order; their attributes must have one type each. For a batch the boxes are tried one
    after the other while few looks decide most tuples (a wide predicate), and by the index otherwise.
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
        self._owners = np.array([at for at, _ in boxes], np.int64)
        self._subscribers = len(predicates)
        self._lower, self._upper = self._bounds([box for _, box in boxes])
        self._bitmap = Bitmap(self._lower, self._upper)
        self._order = np.arange(len(boxes))
        self._active = np.ones(len(predicates), np.bool_)

    def activate(self, subscriber: int, active: bool = True) -> None:
        """Let a subscriber's predicate count or not; nothing is rebuilt."""
        self._active[subscriber] = active
        for box in np.flatnonzero(self._owners == subscriber).tolist():
            self._bitmap.activate(box, active)
        self._order = np.flatnonzero(self._active[self._owners])

    def any(self, columns: Columns) -> Bools:
        """Which tuples some active subscriber wants. `columns`: arrays of shape (n,) by attribute."""
        keys = self._keys(columns)
        out = np.zeros(keys.shape[1], np.bool_)
        if not len(self._order):
            return out
        sample = keys[:, :SAMPLE]
        looked = scan(sample, self._lower, self._upper, self._order, out[:SAMPLE])
        rest = keys[:, SAMPLE:]
        cost = COST_OF_DIMENSION * len(self._names) + COST_OF_WORD * self._bitmap.words
        if looked <= cost * sample.shape[1]:
            scan(rest, self._lower, self._upper, self._order, out[SAMPLE:])
        else:
            self._bitmap.any(rest, out[SAMPLE:])
        return out

    def which(self, columns: Columns) -> Bools:
        """Which active subscribers want which tuples: shape (n, subscribers)."""
        keys = self._keys(columns)
        # Subscriber by subscriber in memory: what one of them wants is looked at as a column.
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

    def _keys(self, columns: Columns) -> Int64s:
        size = len(next(iter(columns.values()))) if columns else 0
        keys = np.empty((len(self._names), size), np.int64)
        for d, name in enumerate(self._names):
            order = self._orders[name]
            keys[d] = order.of_values(
                differences(name, columns, order) if isinstance(name, Difference) else columns[name]
            )
        return keys
