"""The rows of a query without aggregates over streams without time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.timeless.alternatives import alternative
from tamis.evaluation.standing.timeless.kept import kept_columns, needed
from tamis.evaluation.standing.timeless.matches import Matches, Wanted
from tamis.evaluation.standing.timeless.state import packed, unpacked
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.expressions.vectors import Vector
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.translate import translate
from tamis.query.model import Catalog, Query

Row = tuple[object, ...]


class Given:
    """The rows that a query with DISTINCT has given already, by their values in SELECT."""

    def __init__(self) -> None:
        self.rows: dict[Row, None] = {}

    def new(self, columns: Sequence[Vector]) -> np.ndarray:
        """The places of rows that were not given yet, each once; they count as given now."""
        found = []
        for place, row in enumerate(zip(*(column.to_list() for column in columns), strict=True)):
            if row not in self.rows:
                self.rows[row] = None
                found.append(place)
        return np.array(found, np.int64)

    def dumped(self) -> list[Row]:
        """The rows as JSON."""
        return list(self.rows)

    def restore(self, dumped: Sequence[Sequence[object]]) -> None:
        """Take back rows."""
        self.rows = dict.fromkeys(map(tuple, dumped))


class SelectProjectJoin:
    """A query without aggregates. `given` where it has DISTINCT and isn't part of a UNION: without it rows
    may come again.
    """

    def __init__(self, query: Query, catalog: Catalog, given: Given | None) -> None:
        self.streams = frozenset(source.stream for source in query.sources)
        self._query, self._given = query, given
        translation = translate(query, catalog)
        self._kept = kept_columns(query, catalog, needed(translation))
        shown = (c for output in query.select for c in columns(output.expr) if c.alias)
        self._wanted = Wanted(tuple(dict.fromkeys(shown)))
        self._alternatives = [
            alternative(translation, one, self._kept, self._wanted) for one in minimal(translation)
        ]

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `Standing`."""
        return self.take_in_turn({stream: batch}, np.zeros(rows, np.int64))

    def take_in_turn(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """See `InTurn`."""
        return self._rows([one.take(batches, of) for one in self._alternatives])

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `Standing`: without time nothing follows."""
        return self._rows([])

    def entries(self) -> int:
        """See `Standing`."""
        given = 0 if self._given is None else len(self._given.rows)
        return sum(one.entries for one in self._alternatives) + given

    def dump(self) -> bytes:
        """See `Standing`."""
        return packed(self.form(), self.dumped())

    def load(self, state: bytes) -> None:
        """See `Standing`."""
        self.restore(unpacked(state, self.form()))

    def form(self) -> list[Any]:
        """What a state must fit."""
        names = dict(sorted(self._kept.names.items()))
        return ["rows", self._given is not None, len(self._alternatives), names]

    def dumped(self) -> list[Any]:
        """What is kept, as JSON."""
        given = None if self._given is None else self._given.dumped()
        return [[one.dumped() for one in self._alternatives], given]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Take back what was kept."""
        alternatives, given = dumped
        for one, kept in zip(self._alternatives, alternatives, strict=True):
            one.restore(kept)
        if self._given is not None:
            self._given.restore(given)

    def _rows(self, parts: Sequence[Matches]) -> Rows:
        found = Matches.merged([Matches.none(self._wanted), *parts])
        at = np.repeat(np.arange(len(found.places)), found.weights.astype(np.int64))
        made = {name: vector.take(at) for name, vector in found.columns.items()}
        selected = {output.name: evaluate(output.expr, made, len(at)) for output in self._query.select}
        rows = Rows(selected, found.places[at])
        return rows if self._given is None else rows.take(self._given.new(list(selected.values())))
