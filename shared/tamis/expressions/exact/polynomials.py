"""Polynomials of columns, correctly rounded, with a test which of the rounded values are exact.

A sum of products of columns is split into monomials. A monomial is an unevaluated sum of DOUBLEs, from
error-free products (Dekker). `math.fsum` rounds the sum of all of them once, and then the remainder. A
single rounding is monotone: if one rounded value is less than another, so is its exact value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Column, Expr, Literal, Type
from tamis.expressions.vectors import Columns, Mask

MOST_MONOMIALS = 16
MOST_FACTORS = 4  # of a monomial: its product takes 2^(factors - 1) DOUBLEs or more
# Beyond these sizes a product or its error may not be a DOUBLE; such rows are `outside`.
_LARGEST, _SMALLEST = 1e290, 1e-230
_SPLIT = 134_217_729.0  # 2^27 + 1

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Polynomial:
    """Monomials: a coefficient, as a sum of DOUBLEs, and the columns that it multiplies. The polynomial is a
    positive multiple of its expression.
    """

    monomials: tuple[tuple[tuple[float, ...], tuple[Column, ...]], ...]


@dataclass(frozen=True)
class Rounded:
    """`values`, correctly rounded, and the remainder `rest`, rounded too. `exact`: nothing remains after
    these two. `outside`: the value is NULL, or too large or too small.
    """

    values: Doubles
    rest: Doubles
    exact: Mask
    outside: Mask


def polynomial(expr: Expr) -> Polynomial | None:
    """`expr` as a sum of products of columns; None if it isn't one, or has too many."""
    found = _monomials(expr)
    if found is None:
        return None
    merged: dict[tuple[Column, ...], Fraction] = {}
    for factor, columns in found:
        merged[columns] = merged.get(columns, Fraction(0)) + factor
    # Multiplied by the odd part of the denominators, all coefficients are sums of few DOUBLEs.
    scale = math.lcm(*(_odd(factor.denominator) for factor in merged.values()))
    monomials = []
    for columns, factor in merged.items():
        parts = _doubles(factor * scale)
        if parts is None:
            return None
        monomials.append((parts, columns))
    return Polynomial(tuple(monomials))


def _monomials(expr: Expr) -> list[tuple[Fraction, tuple[Column, ...]]] | None:
    if isinstance(expr, Column):
        return [(Fraction(1), (expr,))] if expr.type.numeric else None
    if isinstance(expr, Literal):
        number = isinstance(expr.value, (int, float)) and not isinstance(expr.value, bool)
        return [(Fraction(expr.value), ())] if number else None  # type: ignore[arg-type]
    # Integer arithmetic that overflows is NULL, and in another order it might not overflow.
    if expr.op not in ("+", "-", "neg", "*", "/") or expr.type is not Type.DOUBLE:
        return None
    parts = [_monomials(arg) for arg in expr.args]
    left, right = parts[0], parts[-1]
    if left is None or right is None:
        return None
    match expr.op:
        case "neg":
            out = [(-f, c) for f, c in left]
        case "+" | "-":
            sign = 1 if expr.op == "+" else -1
            out = [*left, *((sign * f, c) for f, c in right)]
        case "*":
            out = [(f * g, tuple(sorted((*c, *d), key=repr))) for f, c in left for g, d in right]
        case _:
            divisor = sum((f for f, c in right), Fraction(0)) if not any(c for _, c in right) else Fraction(0)
            out = [(f / divisor, c) for f, c in left] if divisor else []
    short = len(out) <= MOST_MONOMIALS and all(len(c) <= MOST_FACTORS for _, c in out)
    return out if out and short else None


def _odd(value: int) -> int:
    return value // (value & -value)


def _doubles(value: Fraction) -> tuple[float, ...] | None:
    """A fraction as a sum of at most three DOUBLEs."""
    parts: list[float] = []
    try:
        while value and len(parts) < 3:
            parts.append(float(value))
            value -= Fraction(parts[-1])
    except OverflowError:
        return None
    sizes_fit = all(_SMALLEST < abs(part) < _LARGEST for part in parts)
    return None if value or not sizes_fit else tuple(parts)


def rounded(form: Polynomial, given: Columns, rows: int) -> Rounded:
    """The value of `form` in each row, over numeric columns."""
    outside = np.zeros(rows, np.bool_)
    terms: list[Doubles] = []
    with np.errstate(all="ignore"):
        for coefficients, columns in form.monomials:
            parts = [np.full(rows, coefficient) for coefficient in coefficients]
            for column in columns:
                vector = given[column.alias, column.name]
                if vector.null is not None:
                    outside |= vector.null
                if vector.data.dtype.kind == "i":
                    outside |= (vector.data > LARGEST_EXACT_INTEGER) | (vector.data < -LARGEST_EXACT_INTEGER)
                factor = vector.data.astype(np.float64)
                parts = [one for part in parts for one in _product(part, factor, outside)]
            terms += parts
    if not terms:
        return Rounded(np.zeros(rows), np.zeros(rows), np.ones(rows, np.bool_), outside)
    outside |= ~np.isfinite(np.sum(np.abs(terms), axis=0))
    values, rest, exact = np.zeros(rows), np.zeros(rows), np.zeros(rows, np.bool_)
    inside = np.flatnonzero(~outside)
    for row, parts_of_row in zip(inside.tolist(), np.array(terms)[:, inside].T.tolist(), strict=True):
        values[row] = value = math.fsum(parts_of_row)
        rest[row] = left = math.fsum((*parts_of_row, -value))
        exact[row] = left == 0.0 or math.fsum((*parts_of_row, -value, -left)) == 0.0
    return Rounded(values + 0.0, rest + 0.0, exact, outside)


def _product(a: Doubles, b: Doubles, outside: Mask) -> tuple[Doubles, ...]:
    """a * b as a sum of two DOUBLEs; rows in which the sum isn't exact are marked in `outside`."""
    if (np.abs(a) == 1.0).all():
        return (a * b,)
    high = a * b
    size, zero = np.abs(high), (a == 0.0) | (b == 0.0)
    outside |= ~zero & ~((size > _SMALLEST) & (size < _LARGEST))
    outside |= (np.abs(a) > _LARGEST) | (np.abs(b) > _LARGEST)
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    low = a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return high, np.where(zero, 0.0, low)


def _split(a: Doubles) -> tuple[Doubles, Doubles]:
    big = _SPLIT * a
    high = big - (big - a)
    return high, a - high
