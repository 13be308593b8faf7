"""Evaluators of a predicate with one contract: those of Tamis, of the paper, and of an R-tree library.

`Evaluator(predicate).any(columns)` is a mask of the rows that satisfy the predicate. Columns are arrays of
shape (n,) by attribute; NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from rtree.index import Index, Property

from benchmarks.predicates.packed_tree import PackedTree
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, Cut

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[np.float64]]

FAR_MORE = 2**62  # looks at boxes than the index costs
# Coordinates of R-trees: beyond all values, and NULL below them.
FAR, NULL_PLACE = 1e9, -2e9


class Evaluator(Protocol):
    """See the module."""

    def any(self, columns: Columns) -> Bools:
        """Which rows satisfy the predicate."""
        ...


class _Ours:
    def __init__(self, predicate: Predicate) -> None:
        self._dispatcher = self.kind([predicate])

    kind: type[Dispatcher] = Dispatcher

    def any(self, columns: Columns) -> Bools:
        """See `Evaluator`."""
        return self._dispatcher.any(columns)


class Ours(_Ours):
    """As edges evaluate: by index or by scan, which is chosen for each batch."""


class ByIndex(_Ours):
    """Always by the bitmap index."""

    class kind(Dispatcher):
        """Leaves no choice."""

        def _by_scan(self, keys: Int64s, out: Bools) -> int:
            return self._by_index(keys, out) + FAR_MORE


class ByScan(_Ours):
    """SE: always box by box."""

    class kind(Dispatcher):
        """Leaves no choice."""

        def _by_index(self, keys: Int64s, out: Bools) -> int:
            return self._by_scan(keys, out)


class Paper:
    """IE and IE+SC: a packed R-tree over the boxes, with the paper's variants."""

    def __init__(
        self,
        predicate: Predicate,
        short_circuit: bool,
        levels: int | None = None,
        dimensions: int | None = None,
    ) -> None:
        """`levels`: how far down to look; what is left open there counts as satisfied. `dimensions`: how
        many of the most selective ones the tree has; the others are looked at box by box.
        """
        self._names, lower, upper = _bounds(predicate)
        self._tree = PackedTree(lower, upper, short_circuit, levels, dimensions)

    def any(self, columns: Columns) -> Bools:
        """See `Evaluator`."""
        return self._tree.any(_points(self._names, columns))


class Library:
    """IE over the R*-tree of libspatialindex, all items in one call. It has no short circuit."""

    def __init__(self, predicate: Predicate) -> None:
        self._names, lower, upper = _bounds(predicate)
        settings = Property(dimension=max(len(self._names), 2), leaf_capacity=10, index_capacity=10)
        self._index = Index(properties=settings, interleaved=True)
        pad = np.zeros((len(lower), max(0, 2 - len(self._names))))
        for at, (lo, hi) in enumerate(zip(np.hstack([lower, pad]), np.hstack([upper, pad]), strict=True)):
            self._index.insert(at, (*lo, *hi))

    def any(self, columns: Columns) -> Bools:
        """See `Evaluator`."""
        points = _points(self._names, columns)
        points = np.hstack([points, np.zeros((len(points), max(0, 2 - len(self._names))))])
        _, counts = self._index.intersection_v(points, points)  # type: ignore[no-untyped-call]
        found: Bools = counts > 0
        return found


EVALUATORS: Mapping[str, Callable[[Predicate], Evaluator]] = {
    "index": ByIndex,
    "Tamis": Ours,
    "SE": ByScan,
    "IE": partial(Paper, short_circuit=False),
    "IE+SC": partial(Paper, short_circuit=True),
    "IE+SC, 2 dimensions": partial(Paper, short_circuit=True, dimensions=2),
    "IE, library": Library,
}


def _bounds(predicate: Predicate) -> tuple[list[str], Floats, Floats]:
    """Closed boxes of shape (boxes, d)."""
    names = sorted({name for box in predicate.boxes for name in box}) or ["d00"]
    ranges = [[box.get(name, ANYTHING) for name in names] for box in predicate.boxes]
    shape = len(ranges), len(names)
    lower = np.array([_place(found[0]) for row in ranges for found in row]).reshape(shape)
    upper = np.array([np.nextafter(_place(found[1]), -np.inf) for row in ranges for found in row])
    return names, lower, upper.reshape(shape)


def _place(cut: Cut) -> float:
    if len(cut) == 2:
        return float(cut[1])
    return {LOW: -FAR, HIGH: FAR}.get(cut, NULL_PLACE)


def _points(names: list[str], columns: Columns) -> Floats:
    found = np.column_stack([columns[name] for name in names])
    return np.ascontiguousarray(np.where(np.isfinite(found), found, NULL_PLACE))
