"""Tuples that belong to an alternative of a query, and their values as numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tamis.bounded.synopses.columns import Column
from tamis.bounded.synopses.evaluator import Filter
from tamis.bounded.timeless.minimised_alternatives import Minimal, conditions, passing
from tamis.bounded.timeless.translate import Translation
from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.value_numbers import TextCodes, as_numbers
from tamis.expressions.vectors import Mask


class AlternativeTuples:
    """The tuples of an alternative, by the occurrences of their streams."""

    def __init__(self, translation: Translation, minimal: Minimal) -> None:
        self.query = query = minimal.conjunction
        self._constants = translation.codes
        # Codes of texts in the columns that define buckets: no more than entries have.
        self._texts: TextCodes = dict(translation.codes)
        self._conditions = [conditions(translation, minimal, alias) for alias in query.aliases]
        self._filters = [Filter(query, minimal.closure, i) for i in range(len(query.streams))]

    def belonging(self, occurrence: int, batch: Batch, rows: int) -> Mask:
        """The mask of a batch's tuples that meet all conditions on their source and belong to this
        alternative.
        """
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
        """The values of nodes of one occurrence; equal values have the same number in every batch."""
        return {node: as_numbers(batch[self.query.nodes[node - 1].column], self._texts) for node in nodes}
