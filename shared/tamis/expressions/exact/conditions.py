"""Conditions decided in exact arithmetic, for the few rows where rounding could change the outcome.

A condition has a set of possible outcomes: `TRUE | FALSE` if the balls of a comparison overlap at every
precision (see `exact_arithmetic`). The value of a `Margin` may be any number within the margin of the
computed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate
from tamis.expressions.exact.arithmetic import (
    UNKNOWN,
    Number,
    Unknown,
    ball,
    extreme,
    first_given,
    number_of,
    operation,
    union,
    within_type,
)
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Columns, Value

TRUE, FALSE, NULL = 1, 2, 4
ANY = TRUE | FALSE | NULL

_BITS = (128, 1_024, 8_192)  # precisions, tried in turn


def outcomes(
    condition: Expr, given: Columns, rows: int, margins: tuple[Margin, ...] = ()
) -> NDArray[np.uint8]:
    """The set of possible outcomes of `condition` in each row: a sum of `TRUE`, `FALSE` and `NULL`.

    Equal rows are decided once.
    """
    inputs = _inputs(condition, margins)
    if not inputs:
        return np.full(rows, _decided(condition, {}, {}), np.uint8)
    lists = [_values(expr, given, rows) for expr in inputs]
    known: dict[tuple[Value, ...], int] = {}
    found = np.empty(rows, np.uint8)
    by_value = {margin.value: margin for margin in margins}
    for row, values in enumerate(zip(*lists, strict=True)):
        if values not in known:
            known[values] = _decided(condition, dict(zip(inputs, values, strict=True)), by_value)
        found[row] = known[values]
    return found


def _inputs(condition: Expr, margins: tuple[Margin, ...]) -> list[Expr]:
    """The parts whose values are taken as computed: columns, calls of Python, functions of text and time, and
    values with a margin.
    """
    found: dict[Expr, None] = {}
    values = {margin.value for margin in margins}

    def visit(expr: Expr) -> None:
        as_computed = isinstance(expr, Call) and FUNCTIONS[expr.op].computed
        if expr in values or isinstance(expr, Column) or as_computed:
            found[expr] = None
        elif isinstance(expr, Call):
            for arg in expr.args:
                visit(arg)

    visit(condition)
    return list(found)


def _values(expr: Expr, given: Columns, rows: int) -> list[Value]:
    return (
        given[expr.alias, expr.name] if isinstance(expr, Column) else evaluate(expr, given, rows)
    ).to_list()


def _decided(condition: Expr, row: Mapping[Expr, Value], margins: Mapping[Expr, Margin]) -> int:
    found = ANY
    before = ctx.prec
    try:
        for bits in _BITS:
            ctx.prec = bits
            found = _Row(row, margins).condition(condition)
            if found in (TRUE, FALSE, NULL):
                break
    finally:
        ctx.prec = before
    return found


class _Row:
    """The exact numbers and the outcomes of conditions in one row."""

    def __init__(self, row: Mapping[Expr, Value], margins: Mapping[Expr, Margin]) -> None:
        self._row, self._margins = row, margins
        self._numbers: dict[Expr, Number] = {}

    def condition(self, expr: Expr) -> int:
        """The set of possible outcomes of a condition."""
        if expr in self._row:
            value = self._row[expr]
            return NULL if value is None else TRUE if value else FALSE
        if isinstance(expr, Literal):
            return NULL if expr.value is None else TRUE if expr.value else FALSE
        assert isinstance(expr, Call)
        match expr.op:
            case "and":
                return _conjunction([self.condition(arg) for arg in expr.args])
            case "or":
                return _negated(_conjunction([_negated(self.condition(arg)) for arg in expr.args]))
            case "not":
                return _negated(self.condition(expr.args[0]))
            case "is_null":
                return self._is_null(expr.args[0])
            case "case":
                return _union_of([self.condition(value) for value in self._branches(expr)])
        if expr.args[0].type is Type.BOOLEAN:
            return _equality(expr.op, *(self.condition(arg) for arg in expr.args))
        return _comparison(expr.op, *(self.number(arg) for arg in expr.args))

    def _is_null(self, expr: Expr) -> int:
        if expr.type is Type.BOOLEAN:
            found = self.condition(expr)
            return (TRUE if found & NULL else 0) | (FALSE if found & ~NULL else 0)
        value = self.number(expr)
        return TRUE if value is None else TRUE | FALSE if value is UNKNOWN else FALSE

    def _branches(self, expr: Call) -> list[Expr]:
        """The values of a CASE that may be chosen."""
        out = []
        for condition, value in zip(expr.args[:-1:2], expr.args[1:-1:2], strict=True):
            found = self.condition(condition)
            if found & TRUE:
                out.append(value)
            if found == TRUE:
                return out
        return [*out, expr.args[-1]]

    def number(self, expr: Expr) -> Number:
        """The exact value of a number, a string or a time."""
        if expr not in self._numbers:
            self._numbers[expr] = self._number(expr)
        return self._numbers[expr]

    def _number(self, expr: Expr) -> Number:
        if expr in self._row:
            value = number_of(self._row[expr])
            margin = self._margins.get(expr)
            if margin is None or not isinstance(value, fmpq):
                return value
            radius = abs(ball(value)) * margin.relative + margin.absolute
            return ball(value) + arb(0, radius.upper())
        if isinstance(expr, Literal):
            return number_of(expr.value)
        assert isinstance(expr, Call)
        if expr.op == "case":
            return union([self.number(value) for value in self._branches(expr)])
        args = [self.number(arg) for arg in expr.args]
        if expr.op in ("least", "greatest"):
            return extreme(expr.op, args)
        if expr.op == "coalesce":
            return first_given(args)
        if any(arg is None for arg in args):
            return None
        if any(arg is UNKNOWN for arg in args):
            return UNKNOWN
        return within_type(operation(expr, args), expr.type)


def _union_of(parts: Sequence[int]) -> int:
    """The union of several sets of outcomes."""
    out = 0
    for part in parts:
        out |= part
    return out


def _conjunction(parts: list[int]) -> int:
    out = 0
    if all(part & TRUE for part in parts):
        out |= TRUE
    if any(part & FALSE for part in parts):
        out |= FALSE
    if any(part & NULL for part in parts) and all(part & (TRUE | NULL) for part in parts):
        out |= NULL
    return out


def _negated(part: int) -> int:
    return (part & NULL) | (FALSE if part & TRUE else 0) | (TRUE if part & FALSE else 0)


def _equality(op: str, left: int, right: int) -> int:
    """The outcomes of = or != between two conditions."""
    if left not in (TRUE, FALSE) or right not in (TRUE, FALSE):
        return NULL if NULL in (left, right) else ANY
    return TRUE if (left == right) == (op == "=") else FALSE


def _comparison(op: str, left: Number, right: Number) -> int:
    if left is None or right is None:
        return NULL
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return ANY
    if isinstance(left, arb) or isinstance(right, arb):
        left, right = ball(left), ball(right)
        less, more = bool(left < right), bool(left > right)
        at = bool(left == right)
        possible = {-1} if less else {1} if more else {0} if at else {-1, 0, 1}
    else:
        possible = {(left > right) - (left < right)}  # type: ignore[operator]
    holds = {at in _SIGNS[op] for at in possible}
    return (TRUE if True in holds else 0) | (FALSE if False in holds else 0)


_SIGNS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "=": (0,), "!=": (-1, 1)}
assert set(_SIGNS) == set(COMPARISONS)
