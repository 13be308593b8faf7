"""One alternative of a query over recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.evaluate.evaluator import Evaluator
from tamis.bounded.evaluate.synopsis import Entry, Merge
from tamis.bounded.normal_form import Conjunction
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Type, aliases
from tamis.expressions.vectors import Mask, Vector
from tamis.planning.timeless.differences import place
from tamis.planning.timeless.minimal import Minimal
from tamis.planning.timeless.translate import Branch, Translation
from tamis.recordings.typed import Recording

Payload = Callable[[str, int], object]  # alias, row of its stream's recording
RowOf = Callable[[object], int]  # the row of a payload


@dataclass(frozen=True)
class Keeping:
    """What is kept of tuples: `row_of` finds the recording's row in a payload; `asked` and `merge` are the
    evaluator's.
    """

    row_of: RowOf
    asked: tuple[Conjunction, Closure] | None = None
    merge: Merge | None = None


class Run:
    """An alternative with its evaluator."""

    def __init__(
        self,
        translation: Translation,
        minimal: Minimal,
        recordings: Mapping[str, Recording],
        keeping: Keeping,
    ) -> None:
        self.query = query = minimal.conjunction
        self.stands = minimal.stands
        self._row_of = keeping.row_of
        self._joins = translation.joins
        self._recordings = recordings
        holding = self._hold if translation.joins else None
        self.evaluator = Evaluator(query, minimal.closure, holding, keeping.asked, keeping.merge)
        self._coded: dict[object, int] = {}
        self._coded.update(translation.codes)
        self._passing = [
            _passing(translation, minimal.branch, alias, recordings[stream])
            for alias, stream in zip(query.aliases, query.streams, strict=True)
        ]
        self._values = [self._numbers(i, recordings[stream]) for i, stream in enumerate(query.streams)]

    def push(self, stream: str, row: int, payload: Payload) -> Iterator[tuple[dict[str, object], int]]:
        """Push one tuple at every occurrence of its stream: payloads by alias, and how many rows they are."""
        query = self.query
        for occurrence, name in enumerate(query.streams):
            if name != stream or not self._passing[occurrence][row]:
                continue
            values = [column[row] if column is not None else None for column in self._values[occurrence]]
            carried = payload(query.aliases[occurrence], row)
            for payloads, count in self.evaluator.push(occurrence, values, carried):
                chosen = dict(zip(query.aliases, payloads, strict=True))
                for gone, kept in self.stands.items():
                    chosen[gone] = chosen[kept]
                yield chosen, count

    def shown(self, chosen: Mapping[str, object]) -> tuple[Bound | None, ...]:
        """The projected values of a row, as numbers."""
        found = []
        for node in self.query.projected:
            occurrence = self.query.occurrence(node)
            column = self._values[occurrence][node]
            assert column is not None
            found.append(column[self._row_of(chosen[self.query.aliases[occurrence]])])
        return tuple(found)

    def _hold(self, chosen: Sequence[Entry]) -> bool:
        columns = {}
        for alias, stream, entry in zip(self.query.aliases, self.query.streams, chosen, strict=True):
            at = np.array([self._row_of(entry.payload)], np.int64)
            for name, vector in self._recordings[stream].columns.items():
                columns[alias, name] = vector.take(at)
        return all(bool(holds(expr, columns, 1)[0]) for expr in self._joins)

    def _numbers(self, occurrence: int, recording: Recording) -> list[list[Bound | None] | None]:
        """The values of every node of an occurrence as numbers; None for the nodes of others."""
        kinds = {column.name: column.type for column in recording.stream.columns}
        found: list[list[Bound | None] | None] = [None]
        for node in self.query.nodes:
            own = node.occurrence == occurrence
            found.append(self._whole(recording.columns[node.column], kinds[node.column]) if own else None)
        return found

    def _whole(self, vector: Vector, kind: Type) -> list[Bound | None]:
        values = vector.to_list()
        if kind is Type.VARCHAR:
            # Numbers stand for texts, the same for equal ones; those of constants are known before.
            coded = self._coded
            return [None if v is None else coded.setdefault(v, len(coded)) for v in values]
        if kind is Type.DOUBLE:
            return [None if v is None else place(float(v)) for v in values]
        return [None if v is None else int(v) for v in values]


def _passing(translation: Translation, branch: Branch, alias: str, recording: Recording) -> Mask:
    """Which tuples of a source keep its conditions, and belong to this alternative."""
    columns, rows = recording.under(alias), len(recording)
    keep = np.ones(rows, np.bool_)
    for expr in (*translation.filters[alias], *translation.present[alias]):
        keep &= holds(expr, columns, rows)
    for expr, wanted in ((e, w) for es, w in ((branch.taken, True), (branch.before, False)) for e in es):
        if alias in aliases(expr):
            keep &= holds(expr, columns, rows) == wanted
    return keep
