"""Where a condition is true, and where it is false, as a set of values of one variable.

Conditions are three-valued, so that true and false are followed apart; whether a part is NULL never depends
on the variable (see `jets`), so that for any values of the rest it is NULL for all values of the variable
or for none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, columns
from tamis.planning import intervals as iv
from tamis.planning import shapes
from tamis.planning.composition import Fact, compose
from tamis.planning.jets import (
    DIFFERENCE,
    Box,
    Doubt,
    Jet,
    UndefinedError,
    alike,
    combine,
    combine_case,
    is_null_literal,
)
from tamis.planning.pieces import Piece, pieces
from tamis.planning.scalar import added, scaled, substituted, terms
from tamis.planning.shapes import ALWAYS, CONSTANT, VARIABLE, Region, Shape
from tamis.planning.subdivide import Effort, enclose, never_negative, slopes, whole


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
        """The shape of a comparison's difference, as far as its sign goes. The whole is tried before its
        parts: boxes spent there say more.
        """
        if self._effort is not None:
            shape = slopes(
                difference, self._restricted(difference), self._variable, self._effort, at_zero=True
            )
            if shape & (Shape.RISING | Shape.FALLING):
                return shape
            return shapes.closed(shape | self.fact(difference).shape)
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
            return self._chosen(expr)
        if expr.type is Type.BOOLEAN:
            raise UndefinedError(expr, "is a condition where a number is expected")
        args = [self.fact(arg) for arg in expr.args]
        found = self._enclosed(expr, args)
        shape = shapes.closed(compose(expr, args) | _signs(found))
        if self._effort is not None and not shape & (Shape.RISING | Shape.FALLING):
            shape = shapes.closed(shape | self._slopes(expr, self._effort))
        return Fact(found, shape)

    def _chosen(self, expr: Call) -> Fact:
        """One of several values: as the rest decides, as the variable does, or the greater or lesser of two.

        A value that is NULL makes the condition NULL: where the rest decides, for all values of the variable.
        """
        conditions, values = expr.args[:-1:2], (*expr.args[1:-1:2], expr.args[-1])
        if not any(self._varies(condition) for condition in conditions):
            inner = [self.fact(v) for v in values if not is_null_literal(v)]
            found = combine_case(expr, tuple(f.jet for f in inner), self._variable)
            return Fact(found, shapes.common([f.shape for f in inner]))
        test = conditions[0]
        if len(conditions) == 1 and isinstance(test, Call) and test.op in ("<", "<=", ">", ">="):
            high = test.op[0] == ">"
            if test.args in (values, values[::-1]):
                inner = [self.fact(v) for v in values]
                found = combine_case(expr, tuple(f.jet for f in inner), self._variable)
                pick = shapes.greatest if high == (test.args == values) else shapes.least
                return Fact(found, pick([f.shape for f in inner]))
        if not alike(values, self._variable):
            raise UndefinedError(expr, "may be NULL for some of its values alone")
        for value in values:
            whole(value, self._box, self._variable, strict=True)
        if (parts := pieces(expr, self._variable)) is not None:
            return self._in_pieces(parts)
        inner = [self.fact(v) for v in values]
        return Fact(combine_case(expr, tuple(f.jet for f in inner), self._variable), Shape.NONE)

    def _in_pieces(self, parts: list[Piece]) -> Fact:
        """The shape over all pieces from those over each, and from the steps between them."""
        span = self._box[self._variable]
        lo, hi = float(span.lo), float(span.hi)
        inside = [
            p for p in parts if (p.hi is None or float(p.hi) >= lo) and (p.lo is None or float(p.lo) <= hi)
        ]
        facts = []
        for piece in inside:
            least = lo if piece.lo is None else max(lo, math.nextafter(float(piece.lo), -math.inf))
            most = hi if piece.hi is None else min(hi, math.nextafter(float(piece.hi), math.inf))
            box = {**self._box, self._variable: iv.span(least, most)}
            facts.append(Prover(box, self._variable, self._effort).fact(piece.value))
        ups = [self._steps(a, b, 1) for a, b in pairwise(inside)]
        downs = [self._steps(a, b, -1) for a, b in pairwise(inside)]
        shape = shapes.in_pieces([f.shape for f in facts], ups, downs)
        value = iv.hull(*(f.jet.value for f in facts))
        return Fact(Jet(value, iv.WHOLE, iv.WHOLE, True), shape)

    def _steps(self, left: Piece, right: Piece, sign: int) -> bool:
        """Does the number never fall (1), or never rise (-1), at the cut between two pieces?"""
        assert left.hi is not None
        at = Literal(float(left.hi), Type.DOUBLE)
        if Fraction(float(left.hi)) != left.hi:
            return False  # a cut that no number hits exactly: nothing is said of it
        merged: dict[Expr, Fraction] = {}
        for factor, piece in ((sign, right), (-sign, left)):
            for share, term in terms(substituted(piece.value, self._variable, at)):
                merged[term] = merged.get(term, Fraction(0)) + factor * share
        rest = [scaled(share, term) for term, share in merged.items() if share]
        difference = added(rest) if rest else Literal(0, Type.BIGINT)
        box = {c: self._box[c] for c in columns(difference) if c in self._box}
        return never_negative(difference, box, self._effort or Effort(0))

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
