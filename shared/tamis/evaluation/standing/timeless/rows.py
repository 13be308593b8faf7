"""The rows of a query without aggregates over streams without time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.timeless.arrivals import arrivals
from tamis.evaluation.standing.timeless.conjunct import Conjunct, Keeping, Kept, Values
from tamis.evaluation.standing.timeless.state import packed, unpacked
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Column, columns
from tamis.expressions.vectors import Columns, Vector
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.translate import Translation, translate
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
        self._source = {source.alias: source.stream for source in query.sources}
        keeping = Keeping(self._kept, _values)
        self._conjuncts = [Conjunct(translation, one, keeping) for one in minimal(translation)]

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `Standing`."""
        return self.take_in_turn({stream: batch}, np.zeros(rows, np.int64))

    def take_in_turn(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """See `InTurn`."""
        if len(self._source) == 1:
            return self._alone(batches, of)
        found: dict[str, list[Values]] = {alias: [] for alias in self._source}
        completed: list[int] = []
        for one in arrivals(self._conjuncts, self._kept, batches, of):
            for number, conjunct in enumerate(self._conjuncts):
                for chosen, count in one.push(number, conjunct, one.carried):
                    for alias, kept in found.items():
                        kept.extend([chosen[alias]] * count)
                    completed.extend([one.place] * count)
        return self._rows(found, np.array(completed, np.int64))

    def _alone(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """The rows of one stream, each tuple's by itself, all at once."""
        ((alias, stream),) = self._source.items()
        if stream not in batches:
            return self._rows({alias: []}, np.zeros(0, np.int64))
        batch, places = batches[stream], np.flatnonzero(of == list(batches).index(stream))
        found = [np.flatnonzero(one.keeping(0, batch, len(places))) for one in self._conjuncts]
        at = np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
        made = {(alias, name): batch[name].take(at) for name in self._kept.names[stream]}
        return self._selected(made, places[at])

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `Standing`: without time nothing follows."""
        return self._rows({alias: [] for alias in self._source}, np.zeros(0, np.int64))

    def entries(self) -> int:
        """See `Standing`."""
        given = 0 if self._given is None else len(self._given.rows)
        return sum(one.evaluator.entries for one in self._conjuncts) + given

    def dump(self) -> bytes:
        """See `Standing`."""
        return packed(self.form(), self.dumped())

    def load(self, state: bytes) -> None:
        """See `Standing`."""
        self.restore(unpacked(state, self.form()))

    def form(self) -> list[Any]:
        """What a state must fit."""
        return ["rows", self._given is not None, len(self._conjuncts), dict(sorted(self._kept.names.items()))]

    def dumped(self) -> list[Any]:
        """What is kept, as JSON."""
        given = None if self._given is None else self._given.dumped()
        return [[one.dump(list) for one in self._conjuncts], given]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Take back what was kept."""
        conjuncts, given = dumped
        for conjunct, entries in zip(self._conjuncts, conjuncts, strict=True):
            conjunct.load(entries, lambda _, one: tuple(one))
        if self._given is not None:
            self._given.restore(given)

    def _rows(self, found: Mapping[str, list[Values]], completed: NDArray[np.int64]) -> Rows:
        made = {
            (alias, name): vector
            for alias, kept in found.items()
            for name, vector in self._kept.vectors(self._source[alias], kept).items()
        }
        return self._selected(made, completed)

    def _selected(self, made: Columns, completed: NDArray[np.int64]) -> Rows:
        count = len(completed)
        selected = {output.name: evaluate(output.expr, made, count) for output in self._query.select}
        rows = Rows(selected, completed)
        return rows if self._given is None else rows.take(self._given.new(list(selected.values())))


def _values(payload: Values) -> Values:
    return payload


def needed(*translations: Translation) -> list[Column]:
    """The columns that the conditions and the nodes of queries have."""
    found = [column for one in translations for column in one.columns]
    return found + [column for one in translations for expr in one.joins for column in columns(expr)]


def kept_columns(query: Query, catalog: Catalog, read: Iterable[Column]) -> Kept:
    """What is kept of the tuples of each stream: those columns of `read` that any of its sources needs."""
    wanted = {(column.alias, column.name) for column in read}
    wanted |= {(c.alias, c.name) for output in query.select for c in columns(output.expr) if c.alias}
    own = {
        stream: {
            name
            for alias, name in wanted
            for one in query.sources
            if (one.alias, one.stream) == (alias, stream)
        }
        for stream in {source.stream for source in query.sources}
    }
    shown = {
        stream: [column for column in catalog.streams[stream].columns if column.name in names]
        for stream, names in own.items()
    }
    return Kept(
        {stream: tuple(column.name for column in found) for stream, found in shown.items()},
        {stream: tuple(column.type for column in found) for stream, found in shown.items()},
    )
