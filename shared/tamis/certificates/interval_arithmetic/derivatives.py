"""Enclosures of a value and its derivatives over boxes of domains, and where a value may be NULL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tamis.certificates.interval_arithmetic.intervals import ZERO, Interval, Mask, span
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import ends
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, Type, columns

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


def domain(column: ColumnDef, alias: str = "", filters: tuple[Expr, ...] = ()) -> Interval:
    """An interval with every value of a numeric or TIMESTAMP column that edges accept and that passes
    `filters`, the predicates of its source `alias`.
    """
    return span(*ends(column, alias, filters))


def box_of(
    conditions: tuple[Expr, ...],
    streams: Mapping[str, StreamDef],
    filters: Mapping[str, tuple[Expr, ...]],
) -> dict[Column, Interval]:
    """The domains of the numbers and instants in `conditions`; streams and filters are by alias."""
    return {
        c: domain(definition, c.alias, filters.get(c.alias, ()))
        for c in dict.fromkeys(c for part in conditions for c in columns(part))
        if (definition := streams[c.alias].column(c.name)) and (c.type.numeric or c.type is Type.TIMESTAMP)
    }
