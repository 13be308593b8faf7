"""Steps from tuple to tuple along which two linear conditions hold for opposite sides of each partner.

Take directions d of one stream and e of the other one with `a1.d = n1`, `a2.d = -n2`, `b1.e = -n1`,
`b2.e = n2`, for the coefficients a and b of the two conditions and some n1, n2 > 0. Of tuples along d and e
the k-th one and the i-th one fulfil the first condition only if k >= i, and the second one only if k <= i.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tamis.bounded.representatives.linear import positive
from tamis.certificates.scalars import Term, constant, terms
from tamis.expressions.nodes import Column, Expr, Type, aliases


@dataclass(frozen=True)
class Linear:
    """`sum(factors) + offset > 0`."""

    factors: Mapping[Column, int]
    offset: int

    def of(self, alias: str) -> dict[Column, int]:
        """The factors of one source's columns."""
        return {column: factor for column, factor in self.factors.items() if column.alias == alias}

    def besides(self, alias: str) -> dict[Column, int]:
        """The factors of all other columns."""
        return {column: factor for column, factor in self.factors.items() if column.alias != alias}

    def reached(self, number: Column, *, greatest: bool) -> Linear:
        """The condition `number <= sum`, or `sum <= number`."""
        sign = 1 if greatest else -1
        factors = {column: sign * factor for column, factor in self.factors.items()}
        return Linear({**factors, number: -sign}, sign * self.offset + 1)


@dataclass(frozen=True)
class Steps:
    """The first values of all columns of the conditions, and the step from tuple to tuple."""

    base: Mapping[Column, int]
    step: Mapping[Column, int]


def between(part: Expr, first: str, second: str) -> Linear | None:
    """A condition over two sources as a sum that is greater than 0; None for other conditions."""
    terms = positive(part) if aliases(part) == {first, second} else None
    found = None if terms is None else _sum(terms)
    return found if found is not None and {one.alias for one in found.factors} == {first, second} else None


def total(expr: Expr) -> Linear | None:
    """A sum of whole numbers; None for other expressions."""
    return _sum(terms(expr)) if expr.type in (Type.INT, Type.BIGINT) else None


def _sum(found: Sequence[Term]) -> Linear | None:
    factors: dict[Column, int] = {}
    offset = 0
    for factor, term in found:
        value = constant(term)
        if value is not None and (factor * value).denominator == 1:
            offset += int(factor * value)
        elif isinstance(term, Column) and factor.denominator == 1:
            factors[term] = factors.get(term, 0) + int(factor)
        else:
            return None
    return Linear({column: factor for column, factor in factors.items() if factor}, offset)


def steps(left: Linear, right: Linear, first: str) -> Steps | None:
    """The steps by two conditions of tuples of the source `first` and of all others; None if one value of
    either decides both.
    """
    own, its = (left.of(first), right.of(first)), (left.besides(first), right.besides(first))
    ratios = {ratio for pair in (own, its) if (ratio := _ratio(*pair)) is not None}
    if len(ratios) > 1 or any(ratio > 0 for ratio in ratios):
        return None
    share = -next(iter(ratios), Fraction(-1))
    away = _solved(*own, Fraction(1), -share), _solved(*its, Fraction(-1), share)
    step = {column: value for one in away for column, value in one.items()}
    base = _base(left, right, own, its)
    if base is None:
        return None
    whole = math.lcm(*(value.denominator for value in (*step.values(), share)))
    starts = [_at(one, base) for one in (left, right)]
    far = max(math.ceil(start / size) for start, size in zip(starts, (Fraction(1), share), strict=True))
    scaled = {column: int(value * whole * max(1, far)) for column, value in step.items() if value}
    return Steps(base, scaled)


def _ratio(a: Mapping[Column, int], b: Mapping[Column, int]) -> Fraction | None:
    """The number by which the factors `a` give `b`; None if there is none."""
    if a.keys() != b.keys():
        return None
    found = {Fraction(b[column], a[column]) for column in a}
    return found.pop() if len(found) == 1 else None


def _solved(
    a: Mapping[Column, int], b: Mapping[Column, int], x: Fraction, y: Fraction
) -> dict[Column, Fraction]:
    """Values of at most two columns with the sum `x` under the factors `a`, and `y` under `b`."""
    every = sorted({*a, *b}, key=repr)
    for one in every:
        if a.get(one) and b.get(one, 0) * x == a[one] * y:
            return {one: x / a[one]}
        for other in every:
            size = a.get(one, 0) * b.get(other, 0) - a.get(other, 0) * b.get(one, 0)
            if size:
                return {
                    one: (x * b.get(other, 0) - y * a.get(other, 0)) / size,
                    other: (y * a.get(one, 0) - x * b.get(one, 0)) / size,
                }
    raise AssertionError("factors that aren't multiples of each other have a solution")


def _base(
    left: Linear,
    right: Linear,
    own: tuple[Mapping[Column, int], Mapping[Column, int]],
    its: tuple[Mapping[Column, int], Mapping[Column, int]],
) -> dict[Column, int] | None:
    """Values of the columns for which both conditions hold; None if none are found."""
    zero = dict.fromkeys((*left.factors, *right.factors), 0)
    for pair in (own, its):
        if _ratio(*pair) is None:
            ones = [_solved(*pair, Fraction(1), Fraction(0)), _solved(*pair, Fraction(0), Fraction(1))]
            whole = math.lcm(*(value.denominator for one in ones for value in one.values()))
            times = [-((one.offset - 1) // whole) for one in (left, right)]
            for one, count in zip(ones, times, strict=True):
                for column, value in one.items():
                    zero[column] += int(value * whole) * count
            return zero
    # Both conditions limit one sum, from below and from above: take the least whole numbers above.
    column = next(iter(own[0]))
    size = abs(left.factors[column])
    zero[column] = (-(left.offset // size) + (1 if left.offset % size == 0 else 0)) * (
        left.factors[column] // size
    )
    if _at(left, zero) < 1:
        zero[column] += left.factors[column] // size
    return zero if _at(left, zero) > 0 and _at(right, zero) > 0 else None


def _at(one: Linear, values: Mapping[Column, int]) -> int:
    return sum(factor * values[column] for column, factor in one.factors.items()) + one.offset
