"""A standing query over recordings of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.evaluation.standing.contract import Rows, Standing
from tamis.recordings.typed import ORDER, Recording


@dataclass(frozen=True)
class Played:
    """All rows in the order in which they arise, `completed` counted over all tuples; and the most entries
    that were kept after a run of tuples of one stream.
    """

    rows: Rows
    entries: int


def play(query: Standing, recordings: Mapping[str, Recording]) -> Played:
    """Evaluate a fresh standing query over the recordings of its streams, by their column `_order`, or one
    after the other.

    Raises InputError where only some of them have that column.
    """
    first = next(iter(recordings))
    empty = {name: vector.take(np.zeros(0, np.int64)) for name, vector in recordings[first].columns.items()}
    parts = [query.take(first, empty, 0)]
    most = taken = 0
    for stream, at in _runs(recordings):
        batch = {name: vector.take(at) for name, vector in recordings[stream].columns.items()}
        found = query.take(stream, batch, len(at))
        parts.append(Rows(found.columns, found.completed + taken))
        taken += len(at)
        most = max(most, query.entries())
    return Played(Rows.concat(parts), most)


def _runs(recordings: Mapping[str, Recording]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Tuples that arrive one after the other and are of one stream: the rows of its recording."""
    names, orders = list(recordings), [one.order for one in recordings.values()]
    ordered = [name for name, order in zip(names, orders, strict=True) if order is not None]
    without = [name for name in names if name not in ordered]
    if ordered and without:
        raise InputError(
            f"stream {ordered[0]} has a column {ORDER} and stream {without[0]} has none",
            where="--input",
            hint="give every recording one, or none",
        )
    of = np.concatenate([np.full(len(one), i) for i, one in enumerate(recordings.values())])
    row = np.concatenate([np.arange(len(one)) for one in recordings.values()])
    if ordered:
        arrived = np.argsort(np.concatenate([one for one in orders if one is not None]), kind="stable")
        of, row = of[arrived], row[arrived]
    cuts = np.flatnonzero(np.diff(of)) + 1
    for part in np.split(np.arange(len(of)), cuts):
        if len(part):
            yield names[of[part[0]]], row[part]
