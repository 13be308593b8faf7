"""Interval derivatives: enclosures of an expression's value, first and second derivative over boxes.

An *enclosure* is an interval that surely contains a number. The derivatives are those with respect to one
column, the *variable*. Many boxes are computed at once: an interval is a pair of arrays (see `intervals`).

A sub-expression that contains the variable must never be NULL, because a NULL in the middle of the domain of
the variable invalidates every proof. If this isn't shown for a box, the box is recorded in `PossibleNulls`. A
sub-expression without the variable may be NULL; the enclosures then hold for the cases in which it isn't
NULL.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import (
    REWRITE,
    Box,
    Derivatives,
    PossibleNulls,
)
from tamis.certificates.interval_arithmetic.intervals import ONE, WHOLE, ZERO
from tamis.certificates.interval_arithmetic.operator_derivatives import combine
from tamis.expressions.nodes import Call, Column, Expr, Literal, columns


def derivatives(
    expr: Expr, box: Box, variable: Column, nulls: PossibleNulls, *, strict: bool = False
) -> Derivatives:
    """The interval derivatives of `expr` over `box`. With `strict` no part may be NULL, with or without the
    variable.
    """
    if isinstance(expr, Column):
        varies = expr == variable
        return Derivatives(box.get(expr, WHOLE), ONE if varies else ZERO, ZERO, varies or strict, varies)
    if isinstance(expr, Literal):
        if strict and expr.value is None:
            nulls.add(np.ones((), np.bool_), expr, "is a branch of a CASE", REWRITE)
        return replace(_literal(expr), varies=strict)
    if expr.op == "case":
        values = (*expr.args[1:-1:2], expr.args[-1])
        if variable_selects(expr, variable):
            strict = True
            if not null_together(values, variable):
                nulls.add(
                    np.ones((), np.bool_), expr, "may be NULL in one branch and not in another", REWRITE
                )
        results = tuple(
            derivatives(v, box, variable, nulls, strict=strict) for v in values if not is_null_literal(v)
        )
        if strict and len(results) < len(values):
            nulls.add(np.ones((), np.bool_), expr, "has a branch that is NULL", REWRITE)
        return combine_case(expr, results, variable)
    args = tuple(derivatives(arg, box, variable, nulls, strict=strict) for arg in expr.args)
    return combine(expr, args, nulls)


def is_null_literal(expr: Expr) -> bool:
    """True for the constant NULL."""
    return isinstance(expr, Literal) and expr.value is None


def _literal(expr: Literal) -> Derivatives:
    """The derivatives of a constant. NULL, and a constant that is no number, may have any value."""
    if isinstance(expr.value, (bool, str)) or expr.value is None:
        return Derivatives(WHOLE)
    value = float(expr.value)
    if int(value) == expr.value or isinstance(expr.value, float):
        return Derivatives(iv.point(value), never_null=True)
    return Derivatives(
        iv.span(math.nextafter(value, -math.inf), math.nextafter(value, math.inf)), never_null=True
    )


def combine_case(expr: Call, results: tuple[Derivatives, ...], variable: Column) -> Derivatives:
    """A CASE: the hull of its values. If the variable selects the value, its derivatives are unknown."""
    if not results:
        return Derivatives(WHOLE)
    selects = variable_selects(expr, variable)
    return Derivatives(
        iv.hull(*(j.value for j in results)),
        WHOLE if selects else iv.hull(*(j.first for j in results)),
        WHOLE if selects else iv.hull(*(j.second for j in results)),
        selects or any(j.varies for j in results),
    )


def variable_selects(expr: Call, variable: Column) -> bool:
    """True if the variable decides which value a CASE takes."""
    return any(mentions(condition, variable) for condition in expr.args[:-1:2])


def null_together(values: tuple[Expr, ...], variable: Column) -> bool:
    """True if all of `values` are NULL for the same values of the other columns. Each has a value if all its
    columns have one.

    If the variable selects between them, anything else would make NULL depend on the variable.
    """
    rests = {frozenset(c for c in columns(v) if c != variable) for v in values}
    skips = any(_mentions_op(v, ("least", "greatest", "coalesce", "case")) for v in values)
    return (
        len(rests) == 1
        and not any(is_null_literal(v) for v in values)
        and (not skips or rests == {frozenset()})
    )


def _mentions_op(expr: Expr, ops: tuple[str, ...]) -> bool:
    return isinstance(expr, Call) and (expr.op in ops or any(_mentions_op(arg, ops) for arg in expr.args))


def mentions(expr: Expr, variable: Column) -> bool:
    """True if the expression contains the variable."""
    if isinstance(expr, Call):
        return any(mentions(arg, variable) for arg in expr.args)
    return expr == variable
