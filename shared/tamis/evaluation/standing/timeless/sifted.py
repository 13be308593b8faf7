"""Which tuples belong to an alternative of a query, and their values as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis.bounded.evaluate.columns import Column
from tamis.bounded.evaluate.filters import Filter
from tamis.evaluation.standing.contract import Batch
from tamis.expressions.vectors import Mask, Vector
from tamis.planning.timeless.minimal import Minimal
from tamis.planning.timeless.numbers import conditions, passing
from tamis.planning.timeless.translate import Translation

Codes = dict[Any, int]  # of texts


class Sifted:
    """The tuples of an alternative, by the occurrences of their streams."""

    def __init__(self, translation: Translation, minimal: Minimal) -> None:
        self.query = query = minimal.conjunction
        self._constants = translation.codes
        # Of the texts that make buckets: as many as entries have.
        self._texts: Codes = dict(translation.codes)
        self._conditions = [conditions(translation, minimal, alias) for alias in query.aliases]
        self._filters = [Filter(query, minimal.closure, i) for i in range(len(query.streams))]

    def keeping(self, occurrence: int, batch: Batch, rows: int) -> Mask:
        """Which tuples of a batch keep all conditions on their source and belong to this alternative."""
        query = self.query
        found = passing(self._conditions[occurrence], query.aliases[occurrence], batch, rows)
        at = np.flatnonzero(found)
        if len(at):
            codes = dict(self._constants)
            columns = {
                node: as_numbers(batch[query.nodes[node - 1].column].take(at), codes)
                for node in query.own(occurrence)
            }
            found[at] = self._filters[occurrence].keeps(columns, len(at))
        return found

    def columns(self, nodes: Iterable[int], batch: Batch) -> dict[int, Column]:
        """The values of nodes of one occurrence; the same value has the same number in every batch."""
        return {node: as_numbers(batch[self.query.nodes[node - 1].column], self._texts) for node in nodes}


def as_numbers(vector: Vector, codes: Codes) -> Column:
    """A column as numbers in the order of its values, but for texts; new texts are given new codes."""
    if vector.data.dtype == np.object_:
        coded = [codes.setdefault(text, len(codes)) for text in vector.data.tolist()]
        return Column(np.array(coded, np.int64), vector.null)
    if vector.data.dtype == np.float64:
        places = np.abs(vector.data).view(np.int64)
        return Column(np.where(vector.data < 0, -places, places), vector.null)
    return Column(vector.data.astype(np.int64, copy=False), vector.null)
