"""A standing query over recordings of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.evaluation.standing.contract import InTurn, Rows, Standing
from tamis.recordings.typed import ORDER, Recording

# So many tuples are taken at once.
MOST = 65_536


@dataclass(frozen=True)
class Played:
    """All rows in the order in which they arise, `completed` counted over all tuples; the most entries that
    were kept after a batch; and how many tuples miss in a window, since they came after its end.
    """

    rows: Rows
    entries: int
    late: int = 0


def play(query: Standing, recordings: Mapping[str, Recording]) -> Played:
    """Evaluate a fresh query over streams without time over their recordings, by their column `_order`, or
    one after the other.

    Raises InputError where only some of them have that column; one without tuples needs none.
    """
    assert isinstance(query, InTurn), "without time, tuples may come in any turn"
    names, of, row = _arrived(recordings)
    parts = []
    most = 0
    for start in range(0, max(len(of), 1), MOST):
        some, at = of[start : start + MOST], row[start : start + MOST]
        batches = {
            name: {column: vector.take(at[some == i]) for column, vector in recordings[name].columns.items()}
            for i, name in enumerate(names)
        }
        found = query.take_in_turn(batches, some)
        parts.append(Rows(found.columns, found.completed + start))
        most = max(most, query.entries())
    return Played(Rows.concat(parts), most)


def _arrived(
    recordings: Mapping[str, Recording],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The streams, and of every tuple in their order the number of its stream and its row there."""
    names, orders = list(recordings), [one.order for one in recordings.values()]
    ordered = [name for name, order in zip(names, orders, strict=True) if order is not None]
    without = [name for name in names if name not in ordered and len(recordings[name])]
    if ordered and without:
        raise InputError(
            f"stream {ordered[0]} has a column {ORDER} and stream {without[0]} has none",
            where="--input",
            hint="give every recording one, or none",
        )
    of = np.concatenate([np.full(len(one), i, np.int64) for i, one in enumerate(recordings.values())])
    row = np.concatenate([np.arange(len(one), dtype=np.int64) for one in recordings.values()])
    if ordered:
        arrived = np.argsort(np.concatenate([one for one in orders if one is not None]), kind="stable")
        of, row = of[arrived], row[arrived]
    return names, of, row
