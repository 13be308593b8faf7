"""The rows of a query without aggregates over recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from tamis.bounded.closure import Bound
from tamis.evaluation.timeless.order import interleaved
from tamis.evaluation.timeless.run import Keeping, Run
from tamis.expressions.evaluate import evaluate
from tamis.expressions.vectors import Vector
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.translate import translate
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Result:
    """The rows of a query in the order in which they arose: of each, a row of every source's recording that
    it can be made from. `entries` is the most that was ever kept for later tuples. `withdrawn` marks rows of
    groups for which HAVING stopped to hold.
    """

    rows: Mapping[str, Rows]
    selected: Mapping[str, Vector]
    entries: int
    arrived: Rows  # of each row: how many tuples had come before the one that made it
    withdrawn: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


def replay_rows(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> Result:
    """Evaluate a query without aggregates over the recordings of its streams.

    Raises InputError where only some recordings say in which order their tuples came.
    """
    translation = translate(query, catalog)
    found: dict[str, list[int]] = {source.alias: [] for source in query.sources}
    steps: list[int] = []
    most = 0
    runs = [Run(translation, one, recordings, Keeping(_row)) for one in minimal(translation)]
    given: list[set[tuple[Bound | None, ...]]] = [set() for _ in runs]
    for step, (stream, row) in enumerate(interleaved(recordings)):
        for run, seen in zip(runs, given, strict=True):
            for chosen, count in run.push(stream, row, _payload):
                if query.distinct:
                    shown = run.shown(chosen)
                    if shown in seen:
                        continue
                    seen.add(shown)
                for alias, numbers in found.items():
                    numbers.extend(repeat(_row(chosen[alias]), count))
                steps.extend(repeat(step, count))
        most = max(most, sum(run.evaluator.entries for run in runs))
    rows = {alias: np.array(numbers, np.int64) for alias, numbers in found.items()}
    columns = taken(query, recordings, rows)
    count, arrived = len(steps), np.array(steps, np.int64)
    selected = {output.name: evaluate(output.expr, columns, count) for output in query.select}
    if query.distinct:
        first = first_of_equal(list(selected.values()), count)
        arrived = arrived[first]
        rows = {alias: numbers[first] for alias, numbers in rows.items()}
        selected = {name: vector.take(first) for name, vector in selected.items()}
    return Result(rows, selected, most, arrived)


def taken(
    query: Query, recordings: Mapping[str, Recording], rows: Mapping[str, Rows]
) -> dict[tuple[str, str], Vector]:
    """All columns of the sources, at some rows of each."""
    return {
        (source.alias, name): vector.take(rows[source.alias])
        for source in query.sources
        for name, vector in recordings[source.stream].columns.items()
    }


def _payload(_alias: str, row: int) -> object:
    return row


def _row(payload: object) -> int:
    assert isinstance(payload, int)
    return payload


def first_of_equal(columns: Sequence[Vector], count: int) -> Rows:
    """The first of each group of equal rows."""
    seen: dict[tuple[object, ...], int] = {}
    for row, values in enumerate(zip(*(column.to_list() for column in columns), strict=True)):
        seen.setdefault(values, row)
    return np.array(list(seen.values()) if count else [], np.int64)
