"""A standing query, fed in one piece or in random pieces, each of which goes on from the dumped state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from tamis.evaluation.standing import Rows, Standing
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector

Columns = dict[str, tuple[tuple[str, Type], ...]]  # names and types, by stream
Tuples = Sequence[tuple[str, tuple[object, ...]]]
Row = tuple[object, ...]


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
    r: random.Random, make: Callable[[], Standing], columns: Columns, tuples: Tuples
) -> tuple[list[Row], Standing]:
    """All rows, by tuple and otherwise in no order, and the query at the end: random runs of tuples of one
    stream make a batch, and after some of them a fresh query goes on.
    """
    query, found, start = make(), [], 0
    while start < len(tuples):
        stream, end = tuples[start][0], start + 1
        most = start + r.choice((1, 2, 5, 50))
        while end < min(most, len(tuples)) and tuples[end][0] == stream:
            end += 1
        own = [one for _, one in tuples[start:end]]
        made = query.take(stream, batch(columns, stream, own), len(own))
        found += [(start + place, *row) for place, *row in rows(made)]
        start = end
        if r.random() < 0.4:
            state, query = query.dump(), make()
            query.load(state)
            assert query.dump() == state
    return sorted(found, key=lambda row: (row[0], repr(row))), query
