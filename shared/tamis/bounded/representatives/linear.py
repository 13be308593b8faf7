"""Conditions over whole numbers as sums that are greater than 0, and what follows for one source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.certificates.interval_arithmetic.subdivision import derivatives_over
from tamis.certificates.scalars import Term, added, constant, scaled, substituted, terms
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type, aliases, columns
from tamis.expressions.signatures import call

_WHOLE = (Type.INT, Type.BIGINT)
_VARIABLE = Column("", "linear", Type.BIGINT)


def positive(part: Expr) -> list[Term] | None:
    """Terms whose sum is greater than 0 exactly where a comparison of whole numbers is true; None for any
    other condition.
    """
    if not isinstance(part, Call) or part.op not in ("<", "<=", ">", ">="):
        return None
    if any(arg.type not in _WHOLE for arg in part.args):
        return None
    greater, less = part.args if part.op in (">", ">=") else part.args[::-1]
    found = [*terms(greater), *((-factor, term) for factor, term in terms(less))]
    if part.op in (">=", "<="):
        found.append((Fraction(1), Literal(1, Type.BIGINT)))
    return found if all(factor.denominator == 1 for factor, _ in found) else None


def clipped(part: Expr, value: Expr, box: Mapping[Column, Interval]) -> tuple[int, int] | None:
    """The values from `least` to `most` of one term of a condition that make a difference: a lesser one never
    meets it, and a greater one meets it like `most`. None if the other terms have no limits, or if the value
    stands in them.
    """
    found = positive(part)
    mine = [] if found is None else [factor for factor, term in found if term == value]
    if found is None or len(mine) != 1 or mine[0] != 1:
        return None
    rest = [(factor, term) for factor, term in found if term != value]
    if any(column in columns(value) for _, term in rest for column in columns(term)):
        return None
    low, high = _range(rest, box)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return 1 - int(high), 1 - int(low)


def weakest_threshold(
    parts: Sequence[Expr], alias: str, value: Expr, box: Mapping[Column, Interval]
) -> Expr | None:
    """The value of the source `alias` of which the greatest makes all conditions true for the most values of
    `value`, an expression of another source: each says `c * value > -r` with a sum r of the source. None if
    the conditions aren't of this form.
    """
    bounds: list[tuple[int, list[Term]]] = []
    for part in parts:
        found = positive(substituted(part, value, _VARIABLE))
        if found is None:
            return None
        factor = sum((f for f, term in found if term == _VARIABLE), Fraction(0))
        rest = [(f, term) for f, term in found if term != _VARIABLE]
        if not factor or any(_VARIABLE in columns(term) or not aliases(term) <= {alias} for _, term in rest):
            return None
        bounds.append((int(factor), rest))
    if len({factor > 0 for factor, _ in bounds}) != 1:
        return None
    together = math.lcm(*(factor for factor, _ in bounds))
    weighted = [[(f * (together // abs(factor)), term) for f, term in rest] for factor, rest in bounds]
    if not all(max(map(abs, _range(rest, box))) < LARGEST_EXACT_INTEGER for rest in weighted):
        return None
    sums = [_sum(rest) for rest in weighted]
    return sums[0] if len(sums) == 1 else call("least", *sums)


def _sum(parts: Sequence[Term]) -> Expr:
    offset = sum((f * c for f, term in parts if (c := constant(term)) is not None), Fraction(0))
    moving = [scaled(factor, term) for factor, term in parts if constant(term) is None]
    return added([*moving, Literal(int(offset), Type.BIGINT)] if offset or not moving else moving)


def _range(parts: Sequence[Term], box: Mapping[Column, Interval]) -> tuple[float, float]:
    """The least and the greatest value of a sum; infinite where nothing is known."""
    low = high = 0.0
    for factor, term in parts:
        value = constant(term)
        try:
            span = None if value is not None else derivatives_over(term, box, NO_VARIABLE).value
        except UndefinedError:
            return -math.inf, math.inf
        ends = [float(factor * value)] if value is not None else []
        ends += [] if span is None else [float(factor) * float(span.lo), float(factor) * float(span.hi)]
        low, high = low + min(ends), high + max(ends)
    return low, high
