"""One alternative of a query, with its evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Closure
from tamis.bounded.evaluate.columns import Column, TooLargeError
from tamis.bounded.evaluate.evaluator import Evaluator
from tamis.bounded.evaluate.synopsis import Entry, Merge
from tamis.bounded.normal_form import Conjunction
from tamis.evaluation.standing.contract import Batch
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, Value, Vector
from tamis.planning.timeless.minimal import Minimal
from tamis.planning.timeless.numbers import Numbers, conditions, numbers, passing
from tamis.planning.timeless.translate import Translation

Values = tuple[Value, ...]  # of the columns that are kept of a tuple
Payload = Any  # what an entry carries
Codes = dict[Any, int]  # of texts


@dataclass(frozen=True)
class Kept:
    """The columns that are kept of each stream's tuples, and their types."""

    names: Mapping[str, tuple[str, ...]]
    types: Mapping[str, tuple[Type, ...]]

    def values(self, stream: str, batch: Batch, rows: int) -> list[Values]:
        """Of every tuple of a batch."""
        columns = [batch[name].to_list() for name in self.names[stream]]
        return list(zip(*columns, strict=True)) if columns else [()] * rows

    def vectors(self, stream: str, kept: Sequence[Values]) -> dict[str, Vector]:
        """Back in columns."""
        columns = zip(*kept, strict=True) if kept else ([] for _ in self.names[stream])
        return {
            name: Vector.from_list(list(values), kind)
            for name, kind, values in zip(self.names[stream], self.types[stream], columns, strict=True)
        }


@dataclass(frozen=True)
class Keeping:
    """How tuples are kept: `values_of` finds the values in a payload; `asked` and `merge` are the
    evaluator's.
    """

    kept: Kept
    values_of: Callable[[Payload], Values]
    asked: tuple[Conjunction, Closure] | None = None
    merge: Merge | None = None


@dataclass(frozen=True)
class Prepared:
    """Tuples of one stream as an alternative sees them, for each occurrence of it: which must be pushed, and
    the columns of all nodes as numbers, None for those of others.
    """

    moving: Mapping[int, list[bool]]
    numbers: Mapping[int, list[Numbers | None]]


class Conjunct:
    """An alternative."""

    def __init__(self, translation: Translation, minimal: Minimal, keeping: Keeping) -> None:
        self.query = query = minimal.conjunction
        self._stands = minimal.stands
        self._keeping = keeping
        self._joins = translation.joins
        self._codes = translation.codes
        # Of the texts that make buckets: as many as entries have.
        self._texts: Codes = dict(translation.codes)
        self._conditions = {alias: conditions(translation, minimal, alias) for alias in query.aliases}
        holding = self._hold if translation.joins else None
        self.evaluator = Evaluator(query, minimal.closure, holding, keeping.asked, keeping.merge)

    def moving(self, stream: str, batch: Batch, rows: int) -> dict[int, Mask]:
        """Which tuples of a batch must be pushed, for each occurrence of their stream (see `Evaluator`)."""
        at = [i for i, name in enumerate(self.query.streams) if name == stream]
        return {i: self._moving(i, batch, rows) for i in at}

    def prepare(self, batch: Batch, moving: Mapping[int, Mask]) -> Prepared:
        """Get ready to push tuples. `batch` has at least the columns that are kept."""
        return Prepared(
            {i: mask.tolist() for i, mask in moving.items()},
            {i: self._numbers(i, batch) for i, mask in moving.items() if mask.any()},
        )

    def push(
        self, prepared: Prepared, row: int, payload: Callable[[str], Payload]
    ) -> Iterator[tuple[dict[str, Payload], int]]:
        """Push one tuple at every occurrence of its stream: payloads by alias, and how many rows they are.
        `payload` makes the tuple's for a source.
        """
        aliases_ = self.query.aliases
        for occurrence, moving in prepared.moving.items():
            if not moving[row]:
                continue
            values = _at(prepared.numbers[occurrence], row)
            carried = payload(aliases_[occurrence])
            for payloads, count in self.evaluator.push(occurrence, values, carried):
                chosen = dict(zip(aliases_, payloads, strict=True))
                for gone, kept in self._stands.items():
                    chosen[gone] = chosen[kept]
                yield chosen, count

    def dump(self, text: Callable[[Payload], Any]) -> list[Any]:
        """All entries, by occurrence and cell; `text` makes JSON of a payload."""
        return [
            [[[text(one.payload), one.count] for one in cell.values()] for cell in synopsis.buckets]
            for synopsis in self.evaluator.synopses
        ]

    def load(self, dumped: list[Any], payload: Callable[[str, Any], Payload]) -> None:
        """Take back all entries; `payload` makes a payload of a source from its JSON."""
        for occurrence, cells in enumerate(dumped):
            alias, stream = self.query.aliases[occurrence], self.query.streams[occurrence]
            for cell, entries in enumerate(cells):
                payloads = [payload(alias, one) for one, _ in entries]
                values = [self._keeping.values_of(one) for one in payloads]
                numbers = self._numbers(occurrence, self._keeping.kept.vectors(stream, values))
                for row, (carried, (_, count)) in enumerate(zip(payloads, entries, strict=True)):
                    self.evaluator.synopses[occurrence].restore(cell, _at(numbers, row), carried, count)

    def keeping(self, occurrence: int, batch: Batch, rows: int) -> Mask:
        """Which tuples keep all conditions on their source and belong to this alternative."""
        alias = self.query.aliases[occurrence]
        found = passing(self._conditions[alias], alias, batch, rows)
        at = np.flatnonzero(found)
        if len(at):
            nodes = self.query.own(occurrence)
            try:
                columns = self._columns(nodes, batch, at, dict(self._codes))
                found[at] = self.evaluator.keeps(occurrence, columns, len(at))
            except TooLargeError:
                some = {
                    name: batch[name].take(at) for name in {self.query.nodes[n - 1].column for n in nodes}
                }
                numbers_ = self._numbers(occurrence, some)
                found[at] = [self.evaluator.passes(occurrence, _at(numbers_, row)) for row in range(len(at))]
        return found

    def _moving(self, occurrence: int, batch: Batch, rows: int) -> Mask:
        """Of the tuples that keep all conditions on their source, those that must be pushed."""
        found = self.keeping(occurrence, batch, rows)
        at = np.flatnonzero(found)
        if len(at):
            columns = self._columns(self.evaluator.told_by(occurrence), batch, at, self._texts)
            found[at] = self.evaluator.moving(occurrence, columns, len(at))
        return found

    def _columns(
        self, nodes: Iterable[int], batch: Batch, at: NDArray[np.int64], codes: Codes
    ) -> dict[int, Column]:
        return {node: _column(batch[self.query.nodes[node - 1].column].take(at), codes) for node in nodes}

    def _hold(self, chosen: Sequence[Entry]) -> bool:
        columns = {}
        for alias, stream, entry in zip(self.query.aliases, self.query.streams, chosen, strict=True):
            one = self._keeping.kept.vectors(stream, [self._keeping.values_of(entry.payload)])
            columns.update({(alias, name): vector for name, vector in one.items()})
        return all(bool(holds(expr, columns, 1)[0]) for expr in self._joins)

    def _numbers(self, occurrence: int, batch: Batch) -> list[Numbers | None]:
        """The values of every node of an occurrence as numbers."""
        found: list[Numbers | None] = [None]
        for node in self.query.nodes:
            own = node.occurrence == occurrence
            found.append(numbers(batch[node.column], self._codes) if own else None)
        return found


def _column(vector: Vector, codes: Codes) -> Column:
    """A column as numbers; new texts are given new codes."""
    if vector.data.dtype == np.object_:
        coded = [codes.setdefault(text, len(codes)) for text in vector.data.tolist()]
        return Column(np.array(coded, np.int64), vector.null)
    if vector.data.dtype == np.float64:
        places = np.abs(vector.data).view(np.int64)
        return Column(np.where(vector.data < 0, -places, places), vector.null)
    return Column(vector.data.astype(np.int64, copy=False), vector.null)


def _at(numbers: Sequence[Numbers | None], row: int) -> Numbers:
    return [None if column is None else column[row] for column in numbers]
