"""A query over streams without time, evaluated over recordings: with its bounded synopses, tuple by tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.evaluate.evaluator import Evaluator
from tamis.bounded.evaluate.synopsis import Entry
from tamis.errors import InputError
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Type, aliases
from tamis.expressions.vectors import Mask, Vector
from tamis.planning.timeless.minimal import Minimal, minimal
from tamis.planning.timeless.translate import Branch, Translation, translate
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import ORDER, Recording

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Result:
    """The rows of a query in the order in which they arose: of each, a row of every source's recording that
    it can be made from. `entries` is the most that the synopses ever had.
    """

    rows: Mapping[str, Rows]
    selected: Mapping[str, Vector]
    entries: int

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


def replay(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> Result:
    """Evaluate `query` over the recordings of its streams, interleaved by their column `_order`, or one after
    the other in the order of `recordings`.

    Raises InputError where some streams have that column and some have not.
    """
    translation = translate(query, catalog)
    found: dict[str, list[int]] = {source.alias: [] for source in query.sources}
    most = 0
    if translation.contradiction is None:
        runs = [_Run(translation, one, recordings) for one in minimal(translation)]
        for stream, row in _interleaved(recordings):
            for run in runs:
                run.push(stream, row, found)
            most = max(most, sum(run.evaluator.entries for run in runs))
    rows = {alias: np.array(numbers, np.int64) for alias, numbers in found.items()}
    columns = {
        (source.alias, name): vector.take(rows[source.alias])
        for source in query.sources
        for name, vector in recordings[source.stream].columns.items()
    }
    count = len(next(iter(rows.values())))
    selected = {output.name: evaluate(output.expr, columns, count) for output in query.select}
    if query.distinct:
        first = _first(list(selected.values()), count)
        rows = {alias: numbers[first] for alias, numbers in rows.items()}
        selected = {name: vector.take(first) for name, vector in selected.items()}
    return Result(rows, selected, most)


def _first(columns: Sequence[Vector], count: int) -> Rows:
    """The first of each group of equal rows."""
    seen: dict[tuple[object, ...], int] = {}
    for row, values in enumerate(zip(*(column.to_list() for column in columns), strict=True)):
        seen.setdefault(values, row)
    return np.array(list(seen.values()) if count else [], np.int64)


def _interleaved(recordings: Mapping[str, Recording]) -> list[tuple[str, int]]:
    """All tuples as (stream, row) in the order of arrival."""
    ordered = [name for name, recording in recordings.items() if recording.order is not None]
    without = [name for name in recordings if name not in ordered]
    if ordered and without:
        raise InputError(
            f"stream {ordered[0]} has a column {ORDER} and stream {without[0]} has none",
            where="--input",
            hint="give every recording one, or none",
        )
    arrived = [(name, row) for name, recording in recordings.items() for row in range(len(recording))]
    if not ordered:
        return arrived
    places = np.concatenate([_order_of(recording) for recording in recordings.values()])
    return [arrived[i] for i in np.argsort(places, kind="stable")]


def _order_of(recording: Recording) -> Rows:
    assert recording.order is not None
    return recording.order


class _Run:
    """One alternative of a query with its evaluator."""

    def __init__(
        self, translation: Translation, minimal_: Minimal, recordings: Mapping[str, Recording]
    ) -> None:
        self.query = query = minimal_.conjunction
        self._stands = minimal_.stands
        self._joins = translation.joins
        self._recordings = recordings
        self.evaluator = Evaluator(query, minimal_.closure, self._hold if translation.joins else None)
        self._coded: dict[object, int] = {text: code for text, code in translation.codes.items()}
        self._passing = [
            _passing(translation, minimal_.branch, alias, recordings[stream])
            for alias, stream in zip(query.aliases, query.streams, strict=True)
        ]
        self._values = [self._numbers(i, recordings[stream]) for i, stream in enumerate(query.streams)]
        self._given: set[tuple[int | None, ...]] = set()

    def push(self, stream: str, row: int, found: Mapping[str, list[int]]) -> None:
        """Push one tuple at every occurrence of its stream; the rows that arise go to `found`."""
        query = self.query
        for occurrence, name in enumerate(query.streams):
            if name != stream or not self._passing[occurrence][row]:
                continue
            values = [column[row] if column is not None else None for column in self._values[occurrence]]
            for payloads, count in self.evaluator.push(occurrence, values, row):
                if query.distinct and not self._new(payloads):
                    continue
                chosen = dict(zip(query.aliases, payloads, strict=True))
                for alias, numbers in found.items():
                    payload = chosen[self._stands.get(alias, alias)]
                    assert isinstance(payload, int)
                    numbers.extend(repeat(payload, count))

    def _new(self, payloads: Sequence[object]) -> bool:
        """Is it a row of projected values that this alternative didn't give yet?"""
        kept = []
        for node in self.query.projected:
            occurrence = self.query.occurrence(node)
            column, payload = self._values[occurrence][node], payloads[occurrence]
            assert column is not None
            assert isinstance(payload, int)
            kept.append(column[payload])
        key = tuple(kept)
        if key in self._given:
            return False
        self._given.add(key)
        return True

    def _hold(self, chosen: Sequence[Entry]) -> bool:
        columns = {}
        for alias, stream, entry in zip(self.query.aliases, self.query.streams, chosen, strict=True):
            at = np.array([entry.payload], np.int64)
            for name, vector in self._recordings[stream].columns.items():
                columns[alias, name] = vector.take(at)
        return all(bool(holds(expr, columns, 1)[0]) for expr in self._joins)

    def _numbers(self, occurrence: int, recording: Recording) -> list[list[int | None] | None]:
        """The values of every node of an occurrence as whole numbers; None for the nodes of others."""
        kinds = {column.name: column.type for column in recording.stream.columns}
        found: list[list[int | None] | None] = [None]
        for node in self.query.nodes:
            own = node.occurrence == occurrence
            found.append(self._whole(recording.columns[node.column], kinds[node.column]) if own else None)
        return found

    def _whole(self, vector: Vector, kind: Type) -> list[int | None]:
        if kind in (Type.VARCHAR, Type.DOUBLE):
            # Numbers stand for values, the same for equal ones; those of constants are known before.
            coded: dict[object, int] = self._coded if kind is Type.VARCHAR else {}
            return [None if v is None else coded.setdefault(v, len(coded)) for v in vector.to_list()]
        return [None if v is None else int(v) for v in vector.to_list()]


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
