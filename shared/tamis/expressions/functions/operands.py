"""Operands of vectorised operators: a column's data and NULLs, possibly with a value that isn't finite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Mask, Vector


@dataclass(frozen=True)
class Operand:
    """Data and NULLs of one step. Both have one item if all rows have the same value; NumPy broadcasts it.

    If not `finite`, the data may have NaN and infinities, which stand for NULL.
    """

    data: NDArray[Any]
    null: Mask | None = None
    finite: bool = True

    @staticmethod
    def of(vector: Vector) -> Operand:
        """The operand of a vector, without a copy."""
        return Operand(vector.data, vector.null)

    def without_nonfinite(self) -> Operand:
        """The operand with NULL for each value that isn't finite."""
        if self.finite:
            return self
        finite = np.isfinite(self.data)
        if finite.all():
            return replace(self, finite=True)
        return Operand(np.where(finite, self.data, 0.0), any_null(~finite, self.null))

    def doubles(self) -> NDArray[Any]:
        """The data as float64."""
        return self.data.astype(np.float64, copy=False)

    def true(self) -> Mask:
        """Mask of the rows in which a condition is true."""
        return self.data if self.null is None else self.data & ~self.null

    def false(self) -> Mask:
        """Mask of the rows in which a condition is false."""
        return ~self.data if self.null is None else ~(self.data | self.null)


def any_null(a: Mask | None, b: Mask | None) -> Mask | None:
    """Mask of the rows in which one of two operands is NULL; None if there are none."""
    if a is None or b is None:
        return b if a is None else a
    return a | b
