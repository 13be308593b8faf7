"""Enclosures of a value and its derivatives, and the record of where a value may be NULL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tamis.certificates.interval_arithmetic.intervals import ZERO, Interval, Mask
from tamis.expressions.nodes import Column, Expr, Type

Box = Mapping[Column, Interval]

# The variable of expressions that have none.
NO_VARIABLE = Column("", "", Type.DOUBLE)


class UndefinedError(Exception):
    """A sub-expression with the variable in it may be NULL. `why` completes the sentence that begins with its
    SQL.
    """

    def __init__(self, expr: Expr, why: str) -> None:
        self.expr, self.why = expr, why
        super().__init__(why)


@dataclass
class PossibleNulls:
    """The boxes over which a part may be NULL, and the error for the first such part."""

    boxes: Mask = field(default_factory=lambda: np.zeros((), np.bool_))
    error: UndefinedError | None = None

    def add(self, boxes: Mask, expr: Expr, why: str) -> None:
        """Mark `boxes`."""
        if np.any(boxes):
            self.boxes = self.boxes | boxes
            self.error = self.error or UndefinedError(expr, why)

    def check(self) -> None:
        """Raises the first UndefinedError, if there is one."""
        if self.error is not None:
            raise self.error


@dataclass(frozen=True)
class Derivatives:
    """Enclosures of a value, its first and its second derivative by the variable.

    `varies`: the expression contains the variable. `never_null`: it is never NULL, whatever the rest is.
    """

    value: Interval
    first: Interval = ZERO
    second: Interval = ZERO
    varies: bool = False
    never_null: bool = False
