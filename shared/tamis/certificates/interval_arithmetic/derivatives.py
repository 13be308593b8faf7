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


DECLARE = "declare CHECKs that rule it out"
REWRITE = "write the condition as comparisons that are combined with AND, OR and NOT"


class UndefinedError(Exception):
    """Nothing can be proved about a sub-expression with the variable, because the variable may decide whether
    it is NULL, or because the prover doesn't know its form.

    `why` completes the sentence that begins with the SQL of `expr`. `advice` tells the user what to change:
    CHECKs only help where the values of columns decide.
    """

    def __init__(self, expr: Expr, why: str, advice: str = DECLARE) -> None:
        self.expr, self.why, self.advice = expr, why, advice
        super().__init__(why)


@dataclass
class PossibleNulls:
    """The boxes over which a part may be NULL, and the error for the first such part."""

    boxes: Mask = field(default_factory=lambda: np.zeros((), np.bool_))
    error: UndefinedError | None = None

    def add(self, boxes: Mask, expr: Expr, why: str, advice: str = DECLARE) -> None:
        """Mark `boxes`, over which `expr` may be NULL."""
        if np.any(boxes):
            self.boxes = self.boxes | boxes
            self.error = self.error or UndefinedError(expr, why, advice)

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
