"""Evaluation of conditions as computed, and in exact arithmetic if rounding could decide.

The condition is computed for all rows at once, together with a bound of its rounding error. If the bound
leaves the exact result open and the computed condition is false, the row is decided in exact arithmetic. A
row counts unless exact arithmetic excludes the condition, because an edge may have omitted a tuple whose
rounded value was the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import holds
from tamis.expressions.exact.conditions import TRUE, outcomes
from tamis.expressions.exact.rounding import certain
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Columns, Mask, Vector


class ExactCheck:
    """A condition with its error bound. Both are always the same objects, because programs are cached by
    identity.
    """

    def __init__(self, condition: Expr, margins: tuple[Margin, ...] = ()) -> None:
        self._condition, self._margins = condition, margins
        self._certain = certain(condition, margins)

    def met(self, columns: Columns, rows: int) -> NDArray[np.int64]:
        """The rows that meet the condition, ascending."""
        met = holds(self._condition, columns, rows)
        if self._certain is None or met.all():
            return np.flatnonzero(met)
        left = np.flatnonzero(~met)
        left = left[~self._is_certain(columns, rows)[left]]
        if len(left):
            possible = outcomes(self._condition, _TakenColumns(columns, left), len(left), self._margins)
            met = met.copy()
            met[left[(possible & TRUE) > 0]] = True
        return np.flatnonzero(met)

    def _is_certain(self, columns: Columns, rows: int) -> Mask:
        """The mask of rows where exact arithmetic certainly gives the computed result."""
        assert self._certain is not None
        parts = [slice(at, at + _PART) for at in range(0, rows, _PART)]
        sizes = [min(_PART, rows - part.start) for part in parts]
        pairs = zip(parts, sizes, strict=True)
        return np.concatenate([holds(self._certain, _TakenColumns(columns, part), n) for part, n in pairs])


# Rows at a time: a bound has many operators, and their results stay in a core's cache, which halves the time.
_PART = 16_384


class _TakenColumns(dict[tuple[str, str], Vector]):
    """Columns at some rows. Each is taken when it is first read."""

    def __init__(self, columns: Columns, rows: NDArray[np.int64] | slice) -> None:
        super().__init__()
        self._columns, self._rows = columns, rows

    def __missing__(self, name: tuple[str, str]) -> Vector:
        self[name] = found = self._columns[name].take(self._rows)
        return found
