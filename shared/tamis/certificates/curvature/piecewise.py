"""Piecewise functions: a CASE whose conditions test the variable alone, as segments of the number line.

    CASE WHEN x > 10 THEN 2 * x ELSE x + 10 END     x + 10 up to 10, 2 * x from 10

Only conditions that compare numbers affine in the variable with constants are taken apart. Everything is
computed in fractions, so that rounding never decides which segment a point belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tamis.certificates.scalars import constant, terms
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal

MOST_CUTS = 16


@dataclass(frozen=True)
class Segment:
    """The CASE is `value` from `lo` to `hi` (None: without end). An end itself may belong to the neighbouring
    segment.
    """

    lo: Fraction | None
    hi: Fraction | None
    value: Expr


def segments(case: Call, variable: Column) -> list[Segment] | None:
    """The segments from left to right; None if a condition has another form."""
    conditions, values = case.args[:-1:2], (*case.args[1:-1:2], case.args[-1])
    found: set[Fraction] = set()
    for condition in conditions:
        for cut in _cuts(condition, variable):
            if cut is None:
                return None
            found.add(cut)
    cuts = sorted(found)
    if not cuts or len(cuts) > MOST_CUTS:
        return None
    out: list[Segment] = []
    for lo, at, hi in _cells(cuts):
        chosen = next((i for i, condition in enumerate(conditions) if _holds(condition, at)), len(conditions))
        if out and out[-1].value == values[chosen]:
            out[-1] = Segment(out[-1].lo, hi, values[chosen])
        else:
            out.append(Segment(lo, hi, values[chosen]))
    return out


def _cells(cuts: list[Fraction]) -> Iterator[tuple[Fraction | None, Fraction, Fraction | None]]:
    """(lower end, a point inside, upper end) of each cut and of each open interval between cuts."""
    yield None, cuts[0] - 1, cuts[0]
    for cut, following in pairwise(cuts):
        yield cut, cut, cut
        yield cut, (cut + following) / 2, following
    yield cuts[-1], cuts[-1], cuts[-1]
    yield cuts[-1], cuts[-1] + 1, None


def _cuts(condition: Expr, variable: Column) -> Iterator[Fraction | None]:
    """The points where a condition may change between true and false; None among them where they aren't
    known.
    """
    if not isinstance(condition, Call):
        yield None
    elif condition.op in ("and", "or", "not"):
        for arg in condition.args:
            yield from _cuts(arg, variable)
    elif condition.op in COMPARISONS and (line := _line(condition, variable)) is not None:
        slope, offset = line
        if slope:
            yield -offset / slope
    else:
        yield None


def _line(comparison: Call, variable: Column) -> tuple[Fraction, Fraction] | None:
    """Left minus right as slope and offset in the variable; None if it contains anything else."""
    left, right = comparison.args
    slope = offset = Fraction(0)
    for sign, side in ((1, left), (-1, right)):
        for factor, term in terms(side):
            if term == variable:
                slope += sign * factor
            elif (value := constant(term)) is not None:
                offset += sign * factor * value
            else:
                return None
    return slope, offset


def _holds(condition: Expr, at: Fraction) -> bool:
    """True if a condition of a known form is true for the variable's value `at`."""
    assert isinstance(condition, Call)
    match condition.op:
        case "and":
            return all(_holds(arg, at) for arg in condition.args)
        case "or":
            return any(_holds(arg, at) for arg in condition.args)
        case "not":
            return not _holds(condition.args[0], at)
    left, right = (_at(arg, at) for arg in condition.args)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[condition.op]


def _at(number: Expr, at: Fraction) -> Fraction:
    total = Fraction(0)
    for factor, term in terms(number):
        value = constant(term) if isinstance(term, Literal | Call) else at
        assert value is not None
        total += factor * value
    return total
