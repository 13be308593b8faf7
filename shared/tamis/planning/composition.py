"""The rules of composition: the shape of an operator from the shapes and the ranges of its arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.expressions import opaque
from tamis.expressions.nodes import Call
from tamis.planning import shapes
from tamis.planning.intervals import Interval
from tamis.planning.jets import Jet, whole_exponent
from tamis.planning.shapes import CONSTANT, Shape


@dataclass(frozen=True)
class Fact:
    """What is known of a number over the whole box."""

    jet: Jet
    shape: Shape


def _sign(span: Interval) -> int | None:
    return 1 if np.all(span.lo >= 0) else -1 if np.all(span.hi <= 0) else None


def compose(expr: Call, args: list[Fact]) -> Shape:
    """The shape of an operator with the variable in it, from the shapes and the ranges of its arguments."""
    a = args[0]
    b = args[1] if len(args) > 1 else a
    signs = [_sign(f.jet.value) for f in args]
    match expr.op:
        case "+":
            return shapes.summed([a.shape, b.shape])
        case "-" | "difference":
            return shapes.summed([a.shape, shapes.flipped(b.shape)])
        case "neg":
            return shapes.flipped(a.shape)
        case "abs":
            return shapes.absolute(a.shape, signs[0])
        case "*":
            return _product(expr, args, signs)
        case "/":
            return _quotient(args, signs)
        case "sqrt" | "ln" | "log10":
            return shapes.risen(a.shape, Shape.CONCAVE)
        case "exp":
            return shapes.risen(a.shape, Shape.CONVEX)
        case "power":
            return _power(expr, args)
        case "greatest":
            return shapes.greatest([f.shape for f in args])
        case "least":
            return shapes.least([f.shape for f in args])
        case "python":
            return _declared(expr, args)
        case _:
            return Shape.NONE


def _declared(expr: Call, args: list[Fact]) -> Shape:
    """The shape of a function of Python, from what is declared of the arguments with the variable in them."""
    moving = [(s, f) for s, f in zip(opaque.shapes_of(expr), args[2:], strict=True) if f.jet.varies]
    if len(moving) > 1:
        directed = [shapes.scaled(f.shape, _DIRECTIONS[s]) for s, f in moving if s in _DIRECTIONS]
        rays = shapes.common(directed) & (Shape.RISING | Shape.FALLING)
        return shapes.closed(rays) if len(directed) == len(moving) else Shape.NONE
    ((shape, fact),) = moving
    if shape in _DIRECTIONS:
        return shapes.risen(shapes.scaled(fact.shape, _DIRECTIONS[shape]))
    if fact.shape & shapes.MONOTONE != shapes.MONOTONE:
        return Shape.NONE
    return {opaque.MONOTONE: shapes.MONOTONE, opaque.QUASICONVEX: Shape.QUASICONVEX}.get(shape, Shape.NONE)


_DIRECTIONS = {opaque.RISING: 1, opaque.FALLING: -1}


def _product(expr: Call, args: list[Fact], signs: list[int | None]) -> Shape:
    a, b = args
    if not b.jet.varies:
        return shapes.scaled(a.shape, signs[1])
    if not a.jet.varies:
        return shapes.scaled(b.shape, signs[0])
    if expr.args[0] == expr.args[1]:
        return _raised(a, 2)
    return shapes.product(a.shape, signs[0], b.shape, signs[1])


def _quotient(args: list[Fact], signs: list[int | None]) -> Shape:
    a, b = args
    if not b.jet.varies:
        return shapes.scaled(a.shape, signs[1])
    turned = signs[1] == -1
    divisor = shapes.flipped(b.shape) if turned else b.shape
    if not a.jet.varies:
        out = shapes.scaled(shapes.inverted(divisor), signs[0])
    else:
        out = shapes.quotient(a.shape, signs[0], divisor)
    return shapes.flipped(out) if turned else out


def _raised(a: Fact, n: int) -> Shape:
    """The shape of a to the whole power n > 0."""
    sign = _sign(a.jet.value)
    if n % 2 == 0:
        base = shapes.absolute(a.shape, sign)
        return shapes.risen(base, Shape.CONVEX)
    return shapes.risen(a.shape, {1: Shape.CONVEX, -1: Shape.CONCAVE}.get(sign or 0, Shape.NONE))


def _power(expr: Call, args: list[Fact]) -> Shape:
    a, b = args
    n = whole_exponent(expr)
    if n is not None:
        if n == 0:
            return CONSTANT
        if n > 0:
            return _raised(a, n)
        sign = _sign(a.jet.value)
        if sign is None:
            return Shape.NONE
        under = _raised(a, -n)  # its sign is known: no 0 inside
        if n % 2 == 0 or sign == 1:
            return shapes.inverted(under)
        return shapes.flipped(shapes.inverted(shapes.flipped(under)))
    if np.any(a.jet.value.lo < 0):
        return Shape.NONE
    if not b.jet.varies:
        exponent = b.jet.value
        out = shapes.scaled(shapes.risen(a.shape), _sign(exponent))
        if exponent.lo >= 1 and Shape.CONVEX in a.shape:
            out |= Shape.CONVEX
        if exponent.lo >= 0 and exponent.hi <= 1 and Shape.CONCAVE in a.shape:
            out |= Shape.CONCAVE
        return shapes.closed(out)
    if not a.jet.varies:
        base = a.jet.value
        sign = 1 if base.lo >= 1 else -1 if base.hi <= 1 else None
        return shapes.risen(shapes.scaled(b.shape, sign), Shape.CONVEX)
    return Shape.NONE
