"""Prover: the set of values of one variable where a condition is true, and where it is false.

A condition may also be NULL, so the sets where it is true and where it is false are derived separately. All
proofs need that the variable doesn't decide whether a part is NULL (see `interval_derivatives`): for given
values of the rest, the part is NULL for all values of the variable or for none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tamis.certificates.curvature import level_sets
from tamis.certificates.curvature import properties as rules
from tamis.certificates.curvature.composition import Fact, compose
from tamis.certificates.curvature.level_sets import ALWAYS, Region
from tamis.certificates.curvature.piecewise import Segment, segments
from tamis.certificates.curvature.properties import CONSTANT, VARIABLE, Curvature
from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import (
    REWRITE,
    Box,
    Derivatives,
    PossibleNulls,
    UndefinedError,
)
from tamis.certificates.interval_arithmetic.interval_derivatives import (
    combine_case,
    is_null_literal,
    mentions,
    null_together,
)
from tamis.certificates.interval_arithmetic.operator_derivatives import DIFFERENCE, combine
from tamis.certificates.interval_arithmetic.subdivision import (
    Effort,
    derivatives_over,
    enclose,
    never_negative,
    prove_curvature,
)
from tamis.certificates.scalars import added, scaled, substituted, terms
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, columns


@dataclass(frozen=True)
class Regions:
    """The sets on which a condition is true and on which it is false."""

    true: Region
    false: Region


BOTH_ALWAYS = Regions(ALWAYS, ALWAYS)


class Prover:
    """Derives curvatures and regions of expressions over `box`; with an effort also by derivatives and
    subdivision.

    Raises UndefinedError if a part that contains the variable may be NULL.
    """

    def __init__(self, box: Box, variable: Column, effort: Effort | None) -> None:
        self._box, self._variable, self._effort = box, variable, effort
        self._facts: dict[Expr, Fact] = {}

    def regions(self, expr: Expr) -> Regions:
        """The sets on which the condition `expr` is true and on which it is false."""
        if not mentions(expr, self._variable):
            return BOTH_ALWAYS
        assert isinstance(expr, Call)
        parts: list[Regions] = []
        match expr.op:
            case "and" | "or":
                parts = [self.regions(arg) for arg in expr.args]
                true, false = [p.true for p in parts], [p.false for p in parts]
                if expr.op == "and":
                    return Regions(level_sets.intersection(true), level_sets.union(false))
                return Regions(level_sets.union(true), level_sets.intersection(false))
            case "not":
                inner = self.regions(expr.args[0])
                return Regions(inner.false, inner.true)
            case "is_null":
                self._whole(expr.args[0])
                return BOTH_ALWAYS
            case "case":
                return self._case(expr)
            case "like":
                raise UndefinedError(expr, "is a function of which nothing is proved", REWRITE)
        if expr.op in COMPARISONS and all(arg.type is not Type.BOOLEAN for arg in expr.args):
            return self._comparison(expr)
        raise UndefinedError(expr, "compares conditions with each other", REWRITE)

    def _whole(self, expr: Expr) -> None:
        """Check that `expr` is never NULL because of the variable."""
        if expr.type is Type.BOOLEAN:
            self.regions(expr)
        else:
            self.fact(expr)

    def _case(self, expr: Call) -> Regions:
        if any(mentions(condition, self._variable) for condition in expr.args[:-1:2]):
            raise UndefinedError(expr, "chooses between conditions by the compared value", REWRITE)
        parts = [self.regions(value) for value in (*expr.args[1:-1:2], expr.args[-1])]
        true, false = ALWAYS, ALWAYS
        for part in parts:
            true, false = true & part.true, false & part.false
        return Regions(true, false)

    def _comparison(self, expr: Call) -> Regions:
        left, right = expr.args
        curvature = self._compared(Call(DIFFERENCE, (left, right), Type.DOUBLE))
        over, under, at = (
            level_sets.superlevel_set(curvature),
            level_sets.superlevel_set(rules.negated(curvature)),
            level_sets.level_set(curvature),
        )
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

    def _compared(self, difference: Call) -> Curvature:
        """The curvature of a comparison's difference, as far as its sign matters.

        The whole difference is tried before its parts, because its boxes prove more.
        """
        if self._effort is not None:
            curvature = prove_curvature(
                difference, self._restricted(difference), self._variable, self._effort, at_zero=True
            )
            if curvature & (Curvature.RISING | Curvature.FALLING):
                return curvature
            return rules.closed(curvature | self.fact(difference).curvature)
        return self.fact(difference).curvature

    def fact(self, expr: Expr) -> Fact:
        """The interval derivatives and the curvature of the number `expr`."""
        known = self._facts.get(expr)
        if known is None:
            known = self._facts[expr] = self._derive(expr)
        return known

    def _derive(self, expr: Expr) -> Fact:
        if expr == self._variable:
            return Fact(derivatives_over(expr, self._box, self._variable), VARIABLE)
        if not isinstance(expr, Call) or not mentions(expr, self._variable):
            return Fact(derivatives_over(expr, self._box, self._variable), CONSTANT)
        if expr.op == "case":
            return self._chosen(expr)
        if expr.type is Type.BOOLEAN:
            raise UndefinedError(expr, "is a condition in the place of a number", REWRITE)
        args = [self.fact(arg) for arg in expr.args]
        found = self._enclosed(expr, args)
        curvature = rules.closed(compose(expr, args) | _signs(found))
        if self._effort is not None and not curvature & (Curvature.RISING | Curvature.FALLING):
            curvature = rules.closed(curvature | self._prove(expr, self._effort))
        return Fact(found, curvature)

    def _chosen(self, expr: Call) -> Fact:
        """A CASE of numbers: selected by the rest, selected by the variable, or the greater or lesser of two
        values.

        A branch that is NULL makes the condition NULL. If the rest selects the branch, the condition is then
        NULL for all values of the variable, which is allowed.
        """
        conditions, values = expr.args[:-1:2], (*expr.args[1:-1:2], expr.args[-1])
        if not any(mentions(condition, self._variable) for condition in conditions):
            inner = [self.fact(v) for v in values if not is_null_literal(v)]
            found = combine_case(expr, tuple(f.derivatives for f in inner), self._variable)
            return Fact(found, rules.in_all([f.curvature for f in inner]))
        test = conditions[0]
        if len(conditions) == 1 and isinstance(test, Call) and test.op in ("<", "<=", ">", ">="):
            high = test.op[0] == ">"
            if test.args in (values, values[::-1]):
                inner = [self.fact(v) for v in values]
                found = combine_case(expr, tuple(f.derivatives for f in inner), self._variable)
                pick = rules.maximum if high == (test.args == values) else rules.minimum
                return Fact(found, pick([f.curvature for f in inner]))
        if not null_together(values, self._variable):
            raise UndefinedError(expr, "may be NULL in one branch and not in another", REWRITE)
        for value in values:
            derivatives_over(value, self._box, self._variable, strict=True)
        if (parts := segments(expr, self._variable)) is not None:
            return self._piecewise(parts)
        inner = [self.fact(v) for v in values]
        return Fact(combine_case(expr, tuple(f.derivatives for f in inner), self._variable), Curvature.NONE)

    def _piecewise(self, parts: list[Segment]) -> Fact:
        """The curvature over all segments, from the curvature over each and the steps between them."""
        span = self._box[self._variable]
        lo, hi = float(span.lo), float(span.hi)
        inside = [
            p for p in parts if (p.hi is None or float(p.hi) >= lo) and (p.lo is None or float(p.lo) <= hi)
        ]
        facts = []
        for segment in inside:
            least = lo if segment.lo is None else max(lo, math.nextafter(float(segment.lo), -math.inf))
            most = hi if segment.hi is None else min(hi, math.nextafter(float(segment.hi), math.inf))
            box = {**self._box, self._variable: iv.span(least, most)}
            facts.append(Prover(box, self._variable, self._effort).fact(segment.value))
        ups = [self._steps(a, b, 1) for a, b in pairwise(inside)]
        downs = [self._steps(a, b, -1) for a, b in pairwise(inside)]
        curvature = rules.piecewise([f.curvature for f in facts], ups, downs)
        value = iv.hull(*(f.derivatives.value for f in facts))
        return Fact(Derivatives(value, iv.WHOLE, iv.WHOLE, True), curvature)

    def _steps(self, left: Segment, right: Segment, sign: int) -> bool:
        """True if the number never falls (sign 1), or never rises (-1), at the cut between two segments."""
        assert left.hi is not None
        at = Literal(float(left.hi), Type.DOUBLE)
        if Fraction(float(left.hi)) != left.hi:
            return False  # no DOUBLE is exactly at the cut: nothing is known of the step
        merged: dict[Expr, Fraction] = {}
        for factor, segment in ((sign, right), (-sign, left)):
            for share, term in terms(substituted(segment.value, self._variable, at)):
                merged[term] = merged.get(term, Fraction(0)) + factor * share
        rest = [scaled(share, term) for term, share in merged.items() if share]
        difference = added(rest) if rest else Literal(0, Type.BIGINT)
        box = {c: self._box[c] for c in columns(difference) if c in self._box}
        return never_negative(difference, box, self._effort or Effort(0))

    def _prove(self, expr: Expr, effort: Effort) -> Curvature:
        """The curvature that derivatives prove, over a box of the columns in `expr` alone: the others must
        not be split.
        """
        return prove_curvature(expr, self._restricted(expr), self._variable, effort)

    def _enclosed(self, expr: Call, args: list[Fact]) -> Derivatives:
        nulls = PossibleNulls()
        found = combine(expr, tuple(f.derivatives for f in args), nulls)
        if nulls.error is None:
            return found
        if self._effort is None:
            raise nulls.error
        return enclose(expr, self._restricted(expr), self._variable, self._effort)

    def _restricted(self, expr: Expr) -> Box:
        """The box of the columns in `expr` alone: the others must not be split."""
        return {c: self._box[c] for c in columns(expr) if c in self._box}


def _signs(found: Derivatives) -> Curvature:
    """The curvature that follows from the enclosures of the derivatives over the whole box."""
    out = Curvature.NONE
    if found.first.lo >= 0:
        out |= Curvature.RISING
    if found.first.hi <= 0:
        out |= Curvature.FALLING
    if found.second.lo >= 0:
        out |= Curvature.CONVEX
    if found.second.hi <= 0:
        out |= Curvature.CONCAVE
    return out
