"""Oracle of linear constraints: Fourier and Motzkin's method as in textbooks, without pruning.

A constraint is a pair (coefficients, (limit, strict)): the sum of coefficients times variables is at most the
limit, and less if strict. Shares no code with `tamis.constraints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Constraint = tuple[dict[str, Fraction], Fraction, bool]


def constraints(
    atoms: Iterable[tuple[Mapping[str, int | Fraction], str, int | Fraction]],
) -> list[Constraint]:
    """Constraints of (coefficients, op, limit), where op is one of < <= = >= >."""
    out: list[Constraint] = []
    for coefficients, op, limit in atoms:
        strict = op in ("<", ">")
        for sign in {"<": (1,), "<=": (1,), ">": (-1,), ">=": (-1,), "=": (1, -1)}[op]:
            left = {name: Fraction(value) * sign for name, value in coefficients.items() if value}
            out.append((left, Fraction(limit) * sign, strict))
    return out


def substitute(system: list[Constraint], point: Mapping[str, int | Fraction]) -> list[Constraint]:
    """The constraints on the other variables at a point."""
    out = []
    for left, limit, strict in system:
        known = sum((value * point[name] for name, value in left.items() if name in point), Fraction(0))
        out.append(({n: v for n, v in left.items() if n not in point}, limit - known, strict))
    return out


def without(system: list[Constraint], variable: str) -> list[Constraint]:
    """The constraints that follow for the other variables."""
    kept = {
        (*sorted(left.items()), limit, strict): (left, limit, strict)
        for left, limit, strict in system
        if not left.get(variable)
    }
    above = [one for one in system if one[0].get(variable, 0) > 0]
    below = [one for one in system if one[0].get(variable, 0) < 0]
    for upper, most, strict_above in above:
        for lower, least, strict_below in below:
            a, b = -lower[variable], upper[variable]
            left = {
                name: value
                for name in upper.keys() | lower.keys()
                if name != variable and (value := a * upper.get(name, 0) + b * lower.get(name, 0))
            }
            # One scale for all multiples of a constraint, so that equal ones are kept once.
            scale = abs(next((left[name] for name in sorted(left)), Fraction(1)))
            left = {name: value / scale for name, value in left.items()}
            limit, strict = (a * most + b * least) / scale, strict_above or strict_below
            kept[(*sorted(left.items()), limit, strict)] = (left, limit, strict)
    return list(kept.values())


def satisfiable(system: list[Constraint]) -> bool:
    """Tell if some point of real numbers meets all constraints."""
    for variable in sorted({name for left, _, _ in system for name in left}):
        system = without(system, variable)
    return all(limit > 0 if strict else limit >= 0 for _, limit, strict in system)


def range_of(
    system: list[Constraint], variable: str
) -> tuple[tuple[Fraction | None, bool], tuple[Fraction | None, bool]]:
    """The least and the greatest value of a variable of a satisfiable system; None is infinite.

    Each comes with whether it is a value itself.
    """
    for other in sorted({name for left, _, _ in system for name in left} - {variable}):
        system = without(system, other)
    low: tuple[Fraction | None, bool] = (None, False)
    high: tuple[Fraction | None, bool] = (None, False)
    for left, limit, strict in system:
        if variable not in left:
            continue
        end = limit / left[variable]
        if left[variable] > 0 and (high[0] is None or (end, not strict) < (high[0], high[1])):
            high = (end, not strict)
        if left[variable] < 0 and (low[0] is None or (-end, not strict) < (-low[0], low[1])):
            low = (end, not strict)
    return low, high
