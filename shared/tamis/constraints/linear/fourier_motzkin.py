"""Elimination of variables: substitution of equations, then Fourier and Motzkin's method with pruning.

A row that the elimination derives remembers the rows from which it was added up. After k variables a row from
more than k + 1 of them is a consequence of the others (Imbert, Fourier's elimination: which to choose?, PPCP
1993; first found by Chernikov and by Kohler). This stays true for strict rows: the strict row in the sum of a
derived row is in one of the rows that imply it. The rule counts all derived rows, so rows that are found
redundant by linear programming are removed only where the counting starts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tamis.constraints.atoms import Linear, coefficient, combination
from tamis.constraints.linear.conjunctions import irredundant

_Derived = tuple[Linear, frozenset[int]]
# Removing redundant rows by linear programming costs less than the rows that these would be combined to.
_MANY = 24


def eliminate(rows: Iterable[Linear], gone: Iterable[str]) -> tuple[Linear, ...] | None:
    """The projection of a conjunction: its rows without the variables `gone`, none of them redundant.

    None if the conjunction turns out to be contradictory.
    """
    wanted = set(gone)
    found = _substitute(list(rows), wanted)
    if found is None:
        return None
    derived = _numbered(found)
    eliminated = 0
    while True:
        present = {name for row, _ in derived for name in row.names} & wanted
        if not present:
            return irredundant(row for row, _ in derived)
        if eliminated and len(derived) > _MANY:
            derived, eliminated = _numbered(irredundant(row for row, _ in derived)), 0
        variable = min(present, key=lambda name: (_growth(derived, name), str(name)))
        combined = _without(derived, variable, eliminated + 1)
        if combined is None:
            return None
        derived, eliminated = combined, eliminated + 1


def _numbered(rows: Iterable[Linear]) -> list[_Derived]:
    return [(row, frozenset((i,))) for i, row in enumerate(rows)]


def _substitute(rows: list[Linear], wanted: set[str]) -> list[Linear] | None:
    """The rows after each equation with a variable of `wanted` was solved for it."""
    while True:
        pairs = ((row, name) for row in rows if row.op == "=" for name in row.names if name in wanted)
        equation, variable = next(pairs, (None, None))
        if equation is None or variable is None:
            return rows
        left: dict[Linear, None] = {}
        for row in rows:
            if row is equation:
                continue
            factor = Fraction(-coefficient(row, variable), coefficient(equation, variable))
            found = combination(((row, Fraction(1)), (equation, factor)))
            if found is False:
                return None
            if isinstance(found, Linear):
                left[found] = None
        rows = list(left)


def _growth(derived: list[_Derived], variable: str) -> int:
    """The number of rows that the elimination of `variable` adds."""
    signs = [coefficient(row, variable) for row, _ in derived]
    above, below = sum(value > 0 for value in signs), sum(value < 0 for value in signs)
    return above * below - above - below


def _without(derived: list[_Derived], variable: str, eliminated: int) -> list[_Derived] | None:
    """The rows without a variable that no equation contains; None if they are contradictory.

    `eliminated` is the number of variables eliminated so far, with this one.
    """
    kept: list[_Derived] = []
    above: list[_Derived] = []
    below: list[_Derived] = []
    for one in derived:
        value = coefficient(one[0], variable)
        (above if value > 0 else below if value < 0 else kept).append(one)
    for upper, ancestors in above:
        for lower, others in below:
            union = ancestors | others
            if len(union) > eliminated + 1:
                continue
            factors = (
                Fraction(1, coefficient(upper, variable)),
                Fraction(-1, coefficient(lower, variable)),
            )
            found = combination(((upper, factors[0]), (lower, factors[1])))
            if found is False:
                return None
            if isinstance(found, Linear):
                kept.append((found, union))
    return kept
