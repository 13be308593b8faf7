"""Fourier-Motzkin elimination in exact arithmetic, without any pruning: the oracle of projections.

A constraint is a dict of coefficients, a constant and a flag: `sum(coefficient * variable) <= constant`, or
`<` if strict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Constraint = tuple[dict[str, Fraction], Fraction, bool]


def eliminated(constraints: Iterable[Constraint], name: str) -> list[Constraint]:
    """The constraints on the other variables that hold for some real value of one variable."""
    above: list[Constraint] = []
    below: list[Constraint] = []
    out: list[Constraint] = []
    for terms, constant, strict in constraints:
        coefficient = terms.get(name, Fraction(0))
        if not coefficient:
            out.append(({other: value for other, value in terms.items() if other != name}, constant, strict))
            continue
        rest = {other: value / abs(coefficient) for other, value in terms.items() if other != name}
        (above if coefficient > 0 else below).append((rest, constant / abs(coefficient), strict))
    for first, constant, strict in above:
        for second, other, also_strict in below:
            terms = {n: first.get(n, Fraction(0)) + second.get(n, Fraction(0)) for n in {*first, *second}}
            out.append((terms, constant + other, strict or also_strict))
    return list({_key(each): each for each in out}.values())


def projected(constraints: Iterable[Constraint], names: Iterable[str]) -> list[Constraint]:
    """The constraints on some variables that hold for some real values of the others."""
    found = list(constraints)
    for name in sorted({name for terms, _, _ in found for name in terms} - set(names)):
        found = eliminated(found, name)
    return found


def satisfiable(constraints: Iterable[Constraint]) -> bool:
    """Tell if constraints have a real solution."""
    return all(_true(constant, strict) for _, constant, strict in projected(constraints, ()))


def implies(ones: list[Constraint], others: Iterable[Constraint]) -> bool:
    """Tell if each solution of `ones` is one of `others`."""
    return not any(
        satisfiable([*ones, ({name: -value for name, value in terms.items()}, -constant, not strict)])
        for terms, constant, strict in others
    )


def holds(constraints: Iterable[Constraint], point: Mapping[str, Fraction]) -> bool:
    """Tell if a point satisfies constraints."""
    return all(
        _true(constant - sum((value * point[name] for name, value in terms.items()), Fraction(0)), strict)
        for terms, constant, strict in constraints
    )


def _true(distance: Fraction, strict: bool) -> bool:
    return distance > 0 or (distance == 0 and not strict)


def _key(constraint: Constraint) -> tuple[object, ...]:
    terms, constant, strict = constraint
    found = sorted((name, value) for name, value in terms.items() if value)
    scale = abs(found[0][1]) if found else Fraction(1)
    return tuple((name, value / scale) for name, value in found), constant / scale, strict
