"""Runs of a standing query in one batch, or in random pieces that each continue from the dumped state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import InterleavedInput, Rows, StandingEvaluator

Columns = dict[str, tuple[tuple[str, Type], ...]]  # names and types, by stream
Tuples = Sequence[tuple[str, tuple[object, ...]]]
Row = tuple[Any, ...]


def batch(columns: Columns, stream: str, tuples: Sequence[tuple[object, ...]]) -> dict[str, Vector]:
    """Tuples of one stream in columns."""
    return {
        name: Vector.from_list([one[i] for one in tuples], kind)
        for i, (name, kind) in enumerate(columns[stream])
    }


def rows(found: Rows) -> Iterator[Row]:
    """The rows with the place of the tuple that completed them, and with `_withdrawn`."""
    columns = [vector.to_list() for vector in found.columns.values()]
    yield from zip(found.completed.tolist(), *columns, strict=True)


def pieces(
    r: random.Random, make: Callable[[], StandingEvaluator], columns: Columns, tuples: Tuples
) -> tuple[list[Row], StandingEvaluator]:
    """All rows, by tuple and otherwise in no order, and the query at the end; see `cut`."""
    found, query = cut(r, make, columns, tuples)
    return sorted(found, key=lambda row: (row[0], repr(row))), query


def cut(
    r: random.Random,
    make: Callable[[], StandingEvaluator],
    columns: Columns,
    tuples: Tuples,
    sizes: Sequence[int] = (1, 2, 5, 50),
) -> tuple[list[Row], StandingEvaluator]:
    """All rows in their order, and the query at the end: random runs of tuples, of one stream or of several
    in turn, make a batch, and after some of them a fresh query goes on.
    """
    query, found, start = make(), [], 0
    while start < len(tuples):
        mixed = isinstance(query, InterleavedInput) and r.random() < 0.5
        most, end = start + r.choice(sizes), start + 1
        while end < min(most, len(tuples)) and (mixed or tuples[end][0] == tuples[start][0]):
            end += 1
        made = _taken(query, columns, tuples[start:end], mixed=mixed)
        found += [(start + place, *row) for place, *row in rows(made)]
        start = end
        if r.random() < 0.4:
            state, query = query.dump(), make()
            query.load(state)
            assert query.dump() == state
    return found, query


def _taken(query: StandingEvaluator, columns: Columns, tuples: Tuples, *, mixed: bool) -> Rows:
    names = sorted({stream for stream, _ in tuples})
    batches = {
        name: batch(columns, name, [one for stream, one in tuples if stream == name]) for name in names
    }
    if mixed:
        assert isinstance(query, InterleavedInput)
        return query.take_interleaved(batches, np.array([names.index(one) for one, _ in tuples], np.int64))
    (name,) = names
    return query.take(name, batches[name], len(tuples))
