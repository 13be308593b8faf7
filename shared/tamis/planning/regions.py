"""Where a condition is true, and where it is false, as a set of values of one variable.

Conditions are three-valued, so that true and false are followed apart; whether a part is NULL never depends
on the variable (see `jets`), so that for any values of the rest it is NULL for all values of the variable
or for none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Type, columns
from tamis.planning import shapes
from tamis.planning.intervals import Interval
from tamis.planning.jets import (
    DIFFERENCE,
    Box,
    Doubt,
    Jet,
    UndefinedError,
    combine,
    combine_case,
    is_null_literal,
    whole_exponent,
)
from tamis.planning.shapes import ALWAYS, CONSTANT, VARIABLE, Region, Shape
from tamis.planning.subdivide import Effort, enclose, slopes, whole


@dataclass(frozen=True)
class Fact:
    """What is known of a number over the whole box."""

    jet: Jet
    shape: Shape


@dataclass(frozen=True)
class Regions:
    """Where a condition is true and where it is false."""

    true: Region
    false: Region


BOTH_ALWAYS = Regions(ALWAYS, ALWAYS)


class Prover:
    """Derives shapes and regions of expressions over `box`; with an effort also by derivatives and
    subdivision.

    Raises UndefinedError where a part in which the variable stands may be NULL.
    """

    def __init__(self, box: Box, variable: Column, effort: Effort | None) -> None:
        self._box, self._variable, self._effort = box, variable, effort
        self._facts: dict[Expr, Fact] = {}

    def regions(self, expr: Expr) -> Regions:
        """Where the condition `expr` is true and where it is false."""
        if not self._varies(expr):
            return BOTH_ALWAYS
        assert isinstance(expr, Call)
        parts: list[Regions] = []
        match expr.op:
            case "and" | "or":
                parts = [self.regions(arg) for arg in expr.args]
                true, false = [p.true for p in parts], [p.false for p in parts]
                if expr.op == "and":
                    return Regions(shapes.intersection(true), shapes.union(false))
                return Regions(shapes.union(true), shapes.intersection(false))
            case "not":
                inner = self.regions(expr.args[0])
                return Regions(inner.false, inner.true)
            case "is_null":
                self._whole(expr.args[0])
                return BOTH_ALWAYS
            case "case":
                return self._case(expr)
        if expr.op in COMPARISONS and all(arg.type is not Type.BOOLEAN for arg in expr.args):
            return self._comparison(expr)
        raise UndefinedError(expr, "is a comparison of conditions")

    def _whole(self, expr: Expr) -> None:
        """That `expr` is never NULL because of the variable."""
        if expr.type is Type.BOOLEAN:
            self.regions(expr)
        else:
            self.fact(expr)

    def _case(self, expr: Call) -> Regions:
        if any(self._varies(condition) for condition in expr.args[:-1:2]):
            raise UndefinedError(expr, "decides by the value which of its results holds")
        parts = [self.regions(value) for value in (*expr.args[1:-1:2], expr.args[-1])]
        true, false = ALWAYS, ALWAYS
        for part in parts:
            true, false = true & part.true, false & part.false
        return Regions(true, false)

    def _comparison(self, expr: Call) -> Regions:
        left, right = expr.args
        shape = self._compared(Call(DIFFERENCE, (left, right), Type.DOUBLE))
        over, under, at = shapes.above(shape), shapes.above(shapes.flipped(shape)), shapes.level(shape)
        apart = {Region.INTERVAL: Region.OUTSIDE}.get(at, at)
        match expr.op:
            case ">" | ">=":
                return Regions(over, under)
            case "<" | "<=":
                return Regions(under, over)
            case "=":
                return Regions(at, apart)
            case _:
                return Regions(apart, at)

    def _compared(self, difference: Call) -> Shape:
        """The shape of a comparison's difference. The whole is tried before its parts: boxes spent there
        say more.
        """
        if self._effort is not None:
            shape = self._slopes(difference, self._effort)
            if shape & (Shape.RISING | Shape.FALLING):
                return shape
        return self.fact(difference).shape

    def fact(self, expr: Expr) -> Fact:
        """The jet and the shape of the number `expr`."""
        known = self._facts.get(expr)
        if known is None:
            known = self._facts[expr] = self._derive(expr)
        return known

    def _derive(self, expr: Expr) -> Fact:
        if expr == self._variable:
            return Fact(whole(expr, self._box, self._variable), VARIABLE)
        if not isinstance(expr, Call) or not self._varies(expr):
            return Fact(whole(expr, self._box, self._variable), CONSTANT)
        if expr.op == "case":
            values = [v for v in (*expr.args[1:-1:2], expr.args[-1]) if not is_null_literal(v)]
            inner = [self.fact(v) for v in values]
            found = combine_case(expr, tuple(f.jet for f in inner), self._variable)
            free = not any(self._varies(condition) for condition in expr.args[:-1:2])
            return Fact(found, shapes.common([f.shape for f in inner]) if free else Shape.NONE)
        if expr.type is Type.BOOLEAN:
            raise UndefinedError(expr, "is a condition where a number is expected")
        args = [self.fact(arg) for arg in expr.args]
        found = self._enclosed(expr, args)
        shape = shapes.closed(compose(expr, args) | _signs(found))
        if self._effort is not None and not shape & (Shape.RISING | Shape.FALLING):
            shape = shapes.closed(shape | self._slopes(expr, self._effort))
        return Fact(found, shape)

    def _slopes(self, expr: Expr, effort: Effort) -> Shape:
        """By derivatives over a box of the columns in `expr` alone: the others must not be split."""
        return slopes(expr, self._restricted(expr), self._variable, effort)

    def _enclosed(self, expr: Call, args: list[Fact]) -> Jet:
        doubt = Doubt()
        found = combine(expr, tuple(f.jet for f in args), doubt)
        if doubt.error is None:
            return found
        if self._effort is None:
            raise doubt.error
        return enclose(expr, self._restricted(expr), self._variable, self._effort)

    def _restricted(self, expr: Expr) -> Box:
        """The box of the columns in `expr` alone: the others must not be split."""
        return {c: self._box[c] for c in columns(expr) if c in self._box}

    def _varies(self, expr: Expr) -> bool:
        if isinstance(expr, Call):
            return any(self._varies(arg) for arg in expr.args)
        return expr == self._variable


def _signs(jet_: Jet) -> Shape:
    """What the derivatives' enclosures over the whole box say."""
    out = Shape.NONE
    if jet_.first.lo >= 0:
        out |= Shape.RISING
    if jet_.first.hi <= 0:
        out |= Shape.FALLING
    if jet_.second.lo >= 0:
        out |= Shape.CONVEX
    if jet_.second.hi <= 0:
        out |= Shape.CONCAVE
    return out


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
        case _:
            return Shape.NONE


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
