"""The tuples of one source that stand for its others: the greatest, the least or the first of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Expr, Type
from tamis.expressions.vectors import Columns, Mask, Vector
from tamis.operators.row_store import Store, TextCodes, as_numbers
from tamis.operators.synopses.kernels import rising
from tamis.operators.synopses.row_numbering import RowNumbering, grown
from tamis.plan.nodes import Cover

Ints = NDArray[np.int64]


class Synopsis(Protocol):
    """The tuples that one `Cover` keeps, in columns.

    A batch is joined with the tuples that were kept before it. So `change` only says which tuples of the
    batch belong into the synopsis, and they are in it from `keep` on.
    """

    def __len__(self) -> int:
        """The number of kept tuples."""

    def change(self, columns: Columns, size: int) -> Ints:
        """The places, ascending, of the tuples that change the synopsis when they come one by one."""

    def keep(self, changed: Sequence[Vector]) -> None:
        """Keep the tuples that the last `change` has named, in place of those for which they stand. At edges
        nothing is read of kept tuples, so these have no columns.
        """

    def kept(self) -> list[Vector]:
        """The columns of all kept tuples."""


class Extremes:
    """The tuple with the greatest or the least value of each group; without a value, the first one."""

    def __init__(self, cover: Cover, types: Sequence[Type]) -> None:
        self._cover, self._rows = cover, Store(types)
        self._codes: TextCodes = {}
        self._groups = RowNumbering(2 * len(cover.equal))
        self._best = np.zeros(0, np.int64)
        self._changed = np.zeros(0, np.int64)  # the groups of the tuples of the last `change`

    def __len__(self) -> int:
        return len(self._rows)

    def change(self, columns: Columns, size: int) -> Ints:
        """The tuples that are the first of their group, or better than all of it before."""
        at, leads = leading(self._cover, columns, size)
        known = len(self._groups)
        groups = self._groups.of(group_rows(self._cover.equal, columns, size, self._codes)[at])
        self._best = grown(self._best, len(self._groups))
        changes = np.zeros(len(at), np.bool_)
        rising(self._best, known, groups, leads, changes)
        self._changed = groups[changes]
        return at[changes]

    def keep(self, changed: Sequence[Vector]) -> None:
        """Put each tuple in the place of its group's."""
        # Of several tuples of one group the last one is the best.
        groups, from_end = np.unique(self._changed[::-1], return_index=True)
        last = len(self._changed) - 1 - from_end
        self._rows.grow(len(self._groups))
        self._rows.put(groups, [one.take(last) for one in changed])

    def kept(self) -> list[Vector]:
        """The columns of all kept tuples, by group."""
        return self._rows.all()


def meeting(conditions: Sequence[Expr], columns: Columns, size: int) -> Mask:
    """A mask of the tuples that meet all of these conditions."""
    keep = np.ones(size, np.bool_)
    for condition in conditions:
        keep &= holds(condition, columns, size)
    return keep


def leading(cover: Cover, columns: Columns, size: int) -> tuple[Ints, Ints]:
    """The places of the tuples that have the value of a cover, and their values as numbers: the greatest one
    is the best. Where the value is NULL, the condition can't be true.
    """
    if cover.value is None:
        return np.arange(size), np.zeros(size, np.int64)
    found = as_numbers(evaluate(cover.value, columns, size), {})
    at = np.arange(size) if found.null is None else np.flatnonzero(~found.null)
    leads = found.data[at]
    return at, ~leads if cover.least else leads


def group_rows(equal: Sequence[Expr], columns: Columns, size: int, codes: TextCodes) -> Ints:
    """The values of expressions as rows of numbers, two for each value: NULL is a value of its own."""
    rows = np.zeros((size, 2 * len(equal)), np.int64)
    for place, expr in enumerate(equal):
        found = as_numbers(evaluate(expr, columns, size), codes)
        rows[:, 2 * place] = found.data if found.null is None else np.where(found.null, 0, found.data)
        rows[:, 2 * place + 1] = 0 if found.null is None else found.null
    return rows
