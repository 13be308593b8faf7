"""Evaluator of UNION and UNION ALL: merges the rows of their SELECTs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.distinct_rows import DistinctRows
from tamis.evaluation.standing.state import pack_state, unpack_state
from tamis.evaluation.standing.timeless.rows import SelectProjectJoin
from tamis.query.model import Catalog, Query


class Union:
    """The SELECTs of a union. UNION keeps the rows given by any of them; the columns have the names of the
    first SELECT.
    """

    def __init__(self, query: Query, catalog: Catalog) -> None:
        self.streams = frozenset(source.stream for source in query.sources)
        self._names = [output.name for output in query.select]
        self._given = DistinctRows() if query.distinct else None
        self._members = [
            SelectProjectJoin(one, catalog, DistinctRows() if one.distinct and not query.distinct else None)
            for one in query.members
        ]

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `StandingEvaluator`."""
        return self.take_interleaved({stream: batch}, np.zeros(rows, np.int64))

    def take_interleaved(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """See `InterleavedInput`."""
        return self._merged([one.take_interleaved(batches, of) for one in self._members])

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `StandingEvaluator`."""
        return self._merged([one.advance(stream, watermark) for one in self._members])

    def entries(self) -> int:
        """See `StandingEvaluator`."""
        return sum(one.entries() for one in self._members) + (len(self._given.rows) if self._given else 0)

    def dump(self) -> bytes:
        """See `StandingEvaluator`."""
        given = None if self._given is None else self._given.dumped()
        return pack_state(self._form(), [[one.dumped() for one in self._members], given])

    def load(self, state: bytes) -> None:
        """See `StandingEvaluator`."""
        members, given = unpack_state(state, self._form())
        for member, dumped in zip(self._members, members, strict=True):
            member.restore(dumped)
        if self._given is not None:
            self._given.restore(given)

    def _form(self) -> list[object]:
        return ["union", self._given is not None, *(one.form() for one in self._members)]

    def _merged(self, members: list[Rows]) -> Rows:
        named = [
            Rows(dict(zip(self._names, one.columns.values(), strict=True)), one.completed) for one in members
        ]
        rows = Rows.concat(named)
        rows = rows.take(np.argsort(rows.completed, kind="stable"))
        return rows if self._given is None else rows.take(self._given.new(list(rows.columns.values())))
