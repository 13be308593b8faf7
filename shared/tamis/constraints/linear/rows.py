"""Rows: the linear atoms of a conjunction, their nonnegative combinations, and the parts that they form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal

from tamis.constraints.atoms import Linear, linear


def variables(rows: Iterable[Linear]) -> list[str]:
    """The variables of `rows`, in order."""
    return sorted({name for row in rows for name, _ in row.terms})


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


def components(rows: Iterable[Linear]) -> list[tuple[Linear, ...]]:
    """The rows in parts that share no variables, each in the order of `rows`.

    >>> low, high, other = (linear([(name, sign)], "<=", 1) for name, sign in (("x", -1), ("x", 1), ("y", 1)))
    >>> [len(part) for part in components([low, other, high])]
    [2, 1]
    """
    numbered = list(rows)
    part_of: dict[str, int] = {}
    parts: dict[int, tuple[list[int], list[str]]] = {}
    for at, row in enumerate(numbered):
        part: int | None = None
        for name, _ in row.terms:
            known = part_of.get(name)
            if part is None:
                part = at if known is None else known
                places, names = parts.setdefault(part, ([], []))
                places.append(at)
            if known is None:
                names.append(name)
                part_of[name] = part
            elif known != part:
                more_places, more_names = parts.pop(known)
                places += more_places
                names += more_names
                part_of |= dict.fromkeys(more_names, part)
    return [tuple(numbered[at] for at in sorted(places)) for places, _ in parts.values()]


def tightest(rows: Iterable[Linear]) -> tuple[Linear, ...]:
    """The rows without the inequalities that a parallel one among them implies."""
    found: dict[object, Linear] = {}
    for row in rows:
        if row.op == "=":
            found[row] = row
            continue
        other = found.get(row.terms)
        if other is None or (row.constant, row.op == "<=") < (other.constant, other.op == "<="):
            found[row.terms] = row
    return tuple(found.values())


def replaced(row: Linear, values: Mapping[str, Fraction]) -> Linear | bool:
    """The row with numbers for some of its variables."""
    known = sum((value * values[name] for name, value in row.terms if name in values), Fraction(0))
    left = [(name, value) for name, value in row.terms if name not in values]
    return linear(left, row.op, row.constant - known)


_EQUAL: Literal["<", "<=", "="] = "="
