"""Rules of composition: the curvature of an operator from the curvature and the range of its arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.certificates.curvature import properties as rules
from tamis.certificates.curvature.properties import CONSTANT, Curvature
from tamis.certificates.interval_arithmetic.derivatives import Derivatives
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.interval_arithmetic.operator_derivatives import whole_exponent
from tamis.certificates.interval_arithmetic.step_derivatives import (
    MOST_ROUNDED,
    digits_of,
    remainder_is_number,
)
from tamis.expressions import python_functions
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call


@dataclass(frozen=True)
class Fact:
    """The properties of a number over the whole box."""

    derivatives: Derivatives
    curvature: Curvature


def _sign(span: Interval) -> int | None:
    return 1 if np.all(span.lo >= 0) else -1 if np.all(span.hi <= 0) else None


def compose(expr: Call, args: list[Fact]) -> Curvature:
    """The curvature of an operator that contains the variable, from the curvature and the range of its
    arguments.
    """
    a = args[0]
    b = args[1] if len(args) > 1 else a
    signs = [_sign(f.derivatives.value) for f in args]
    match expr.op:
        case "+":
            return rules.sum_of([a.curvature, b.curvature])
        case "-" | "difference":
            return rules.sum_of([a.curvature, rules.negated(b.curvature)])
        case "neg":
            return rules.negated(a.curvature)
        case "abs":
            return rules.absolute(a.curvature, signs[0])
        case "*":
            return _product(expr, args, signs)
        case "/":
            return _quotient(args, signs)
        case "power":
            return _power(expr, args)
        case "greatest":
            return rules.maximum([f.curvature for f in args])
        case "least":
            return rules.minimum([f.curvature for f in args])
        case "python":
            return _declared(expr, args)
        case "round":
            size = a.derivatives.value.magnitude
            rises = digits_of(expr) == 0 or bool(np.all(size < MOST_ROUNDED))
            return rules.composed(a.curvature) if rises else Curvature.NONE
        case "mod":
            same = np.all(remainder_is_number(a.derivatives.value, b.derivatives.value))
            return a.curvature if same else Curvature.NONE
        case "coalesce":
            return a.curvature if a.derivatives.never_null else rules.in_all([f.curvature for f in args])
    function = FUNCTIONS[expr.op]
    if function.real is not None:
        return rules.composed(a.curvature, _CURVATURES[function.real.curvature])
    return rules.composed(a.curvature) if function.steps is not None else Curvature.NONE


_CURVATURES = {1: Curvature.CONVEX, -1: Curvature.CONCAVE, 0: Curvature.NONE}


def _declared(expr: Call, args: list[Fact]) -> Curvature:
    """The curvature of a Python function, from what is declared for the arguments that contain the
    variable.
    """
    moving = [
        (s, f)
        for s, f in zip(python_functions.shapes_of(expr), args[2:], strict=True)
        if f.derivatives.varies
    ]
    if len(moving) > 1:
        directed = [rules.scaled(f.curvature, _DIRECTIONS[s]) for s, f in moving if s in _DIRECTIONS]
        rays = rules.in_all(directed) & (Curvature.RISING | Curvature.FALLING)
        return rules.closed(rays) if len(directed) == len(moving) else Curvature.NONE
    ((curvature, fact),) = moving
    if curvature in _DIRECTIONS:
        return rules.composed(rules.scaled(fact.curvature, _DIRECTIONS[curvature]))
    if fact.curvature & rules.MONOTONE != rules.MONOTONE:
        return Curvature.NONE
    return {
        python_functions.MONOTONE: rules.MONOTONE,
        python_functions.QUASICONVEX: Curvature.QUASICONVEX,
    }.get(curvature, Curvature.NONE)


_DIRECTIONS = {python_functions.INCREASING: 1, python_functions.DECREASING: -1}


def _product(expr: Call, args: list[Fact], signs: list[int | None]) -> Curvature:
    a, b = args
    if not b.derivatives.varies:
        return rules.scaled(a.curvature, signs[1])
    if not a.derivatives.varies:
        return rules.scaled(b.curvature, signs[0])
    if expr.args[0] == expr.args[1]:
        return _raised(a, 2)
    return rules.product(a.curvature, signs[0], b.curvature, signs[1])


def _quotient(args: list[Fact], signs: list[int | None]) -> Curvature:
    a, b = args
    if not b.derivatives.varies:
        return rules.scaled(a.curvature, signs[1])
    turned = signs[1] == -1
    divisor = rules.negated(b.curvature) if turned else b.curvature
    if not a.derivatives.varies:
        out = rules.scaled(rules.reciprocal(divisor), signs[0])
    else:
        out = rules.quotient(a.curvature, signs[0], divisor)
    return rules.negated(out) if turned else out


def _raised(a: Fact, n: int) -> Curvature:
    """The curvature of a to the whole power n > 0."""
    sign = _sign(a.derivatives.value)
    if n % 2 == 0:
        base = rules.absolute(a.curvature, sign)
        return rules.composed(base, Curvature.CONVEX)
    return rules.composed(
        a.curvature, {1: Curvature.CONVEX, -1: Curvature.CONCAVE}.get(sign or 0, Curvature.NONE)
    )


def _power(expr: Call, args: list[Fact]) -> Curvature:
    a, b = args
    n = whole_exponent(expr)
    if n is not None:
        if n == 0:
            return CONSTANT
        if n > 0:
            return _raised(a, n)
        sign = _sign(a.derivatives.value)
        if sign is None:
            return Curvature.NONE
        under = _raised(a, -n)  # 0 is not inside: the sign is known
        if n % 2 == 0 or sign == 1:
            return rules.reciprocal(under)
        return rules.negated(rules.reciprocal(rules.negated(under)))
    if np.any(a.derivatives.value.lo < 0):
        return Curvature.NONE
    if not b.derivatives.varies:
        exponent = b.derivatives.value
        out = rules.scaled(rules.composed(a.curvature), _sign(exponent))
        if exponent.lo >= 1 and Curvature.CONVEX in a.curvature:
            out |= Curvature.CONVEX
        if exponent.lo >= 0 and exponent.hi <= 1 and Curvature.CONCAVE in a.curvature:
            out |= Curvature.CONCAVE
        return rules.closed(out)
    if not a.derivatives.varies:
        base = a.derivatives.value
        sign = 1 if base.lo >= 1 else -1 if base.hi <= 1 else None
        return rules.composed(rules.scaled(b.curvature, sign), Curvature.CONVEX)
    return Curvature.NONE
