"""Evaluator of a DISTINCT query of which only representatives are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tamis.operators.contract import Batch, Rows
from tamis.operators.representatives.join import RepresentedJoin
from tamis.operators.row_store import DistinctRows
from tamis.operators.state import pack_state, unpack_state
from tamis.plan import nodes


class Representatives:
    """A query with DISTINCT over several sources.

    A tuple that isn't joined completes no row that wasn't given before.
    """

    def __init__(self, node: nodes.Representatives) -> None:
        self.streams = frozenset(one.stream for one in node.sources)
        self._names = [name for name, _ in node.select]
        self._join = RepresentedJoin(node.sources, [expr for _, expr in node.select])
        self._given = DistinctRows()

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """The new rows that the tuples complete."""
        return self.take_interleaved({stream: batch}, np.zeros(rows, np.int64))

    def take_interleaved(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """The new rows that interleaved tuples complete, in the order of these tuples."""
        parts = [self._none()]
        for places, values in self._join.take(batches, of):
            rows = Rows(dict(zip(self._names, values, strict=True)), places)
            parts.append(rows.take(self._given.new(values)))
        return Rows.concat(parts)

    def advance(self, stream: str, watermark: int) -> Rows:
        """No rows: watermarks have no effect on streams without event time."""
        return self._none()

    def entries(self) -> int:
        """The number of kept tuples, and of rows that DISTINCT remembers."""
        return self._join.entries + len(self._given.rows)

    def dump(self) -> bytes:
        """The kept tuples and the rows that were given, as JSON."""
        return pack_state(self._form(), [self._join.dumped(), self._given.dumped()])

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        kept, given = unpack_state(state, self._form())
        self._join.restore(kept)
        self._given.restore(given)

    def _form(self) -> list[object]:
        return ["representatives", *self._join.form()]

    def _none(self) -> Rows:
        places, values = self._join.nothing()
        return Rows(dict(zip(self._names, values, strict=True)), places)
