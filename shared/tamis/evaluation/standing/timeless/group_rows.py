"""Rows that groups currently have in the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.bounded.synopses.columns import Ints, Mask
from tamis.bounded.synopses.row_numbering import grown
from tamis.evaluation.standing.row_store import Store
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector


class GroupRows:
    """The last row of each group, and the mask of the groups that have a row now."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._rows = Store(types)
        self._has: Mask = np.zeros(0, np.bool_)

    def grow(self, groups: int) -> None:
        """Make room."""
        self._rows.grow(groups)
        self._has = grown(self._has, groups)

    def changes(self, group: Ints, rows: Sequence[Vector], holding: Mask) -> Mask:
        """The mask of the rows that change their group, if rows are taken one after the other. A row changes
        its group if it differs from the group's last row. It also does if it isn't `holding` and the group
        has a row, which is then removed.
        """
        count = len(group)
        order = np.argsort(group, kind="stable")
        follows = group[order[1:]] == group[order[:-1]]
        # Index of the group's last row: among these rows, or after them the stored one.
        last = count + np.arange(count)
        last[order[1:][follows]] = order[:-1][follows]
        had = np.concatenate([holding, self._has[group]])[last]
        same = np.ones(count, np.bool_)
        for column, vector in enumerate(rows):
            same &= _equal(vector, Vector.concat([vector, self._rows.take(column, group)]).take(last))
        ends = np.ones(count, np.bool_)
        ends[last[last < count]] = False
        self._rows.put(group[ends], [vector.take(ends) for vector in rows])
        self._has[group[ends]] = holding[ends]
        return np.where(holding, ~(had & same), had)

    def dumped(self, groups: int) -> list[Any]:
        """As JSON."""
        return [self._has[:groups].tolist(), self._rows.dumped()]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore the dumped rows of all groups."""
        has, rows = dumped
        self._has = np.array(has, np.bool_)
        self._rows.restore(rows, len(has))


def _equal(one: Vector, other: Vector) -> Mask:
    """The rows in which values are equal; NULL equals itself."""
    null = [np.zeros(len(v), np.bool_) if v.null is None else v.null for v in (one, other)]
    return np.where(null[0] | null[1], null[0] & null[1], one.data == other.data)
