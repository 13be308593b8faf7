"""Rows: the linear atoms of a conjunction, their nonnegative combinations, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal

from tamis.constraints.atoms import Linear, linear


def variables(rows: Iterable[Linear]) -> list[str]:
    """The variables of `rows`, in order."""
    return sorted({name for row in rows for name in row.names})


def coefficient(row: Linear, variable: str) -> int:
    """The coefficient of `variable` in a row; 0 if the row doesn't contain it."""
    return next((value for name, value in row.terms if name == variable), 0)


def combination(parts: Iterable[tuple[Linear, Fraction]]) -> Linear | bool:
    """The sum of rows times factors, a consequence of the rows; its truth value if no variable is left.

    It is strict if one of the rows is strict. Raises ValueError for a negative factor of an inequality.
    """
    terms: list[tuple[str, Fraction]] = []
    constant, op = Fraction(0), _EQUAL
    for row, factor in parts:
        if row.op != "=" and factor < 0:
            raise ValueError(f"negative factor {factor} of an inequality")
        if factor:
            terms += [(name, value * factor) for name, value in row.terms]
            constant += row.constant * factor
            op = row.op if op == "=" or row.op == "<" else op
    return linear(terms, op, constant)


def connected(rows: Iterable[Linear], names: Iterable[str]) -> tuple[Linear, ...]:
    """The rows that contain one of the variables `names`, and all that share variables with these rows."""
    left, reached = list(rows), set(names)
    found: dict[Linear, None] = {}
    while more := [row for row in left if not reached.isdisjoint(row.names)]:
        found |= dict.fromkeys(more)
        reached.update(name for row in more for name in row.names)
        left = [row for row in left if row not in found]
    return tuple(found)


def replaced(row: Linear, values: Mapping[str, Fraction]) -> Linear | bool:
    """The row with numbers for some of its variables."""
    known = sum((value * values[name] for name, value in row.terms if name in values), Fraction(0))
    left = [(name, value) for name, value in row.terms if name not in values]
    return linear(left, row.op, row.constant - known)


_EQUAL: Literal["<", "<=", "="] = "="
