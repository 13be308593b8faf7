"""Conjunctions over whole numbers: satisfiability by the Omega test, and projection where it is closed.

The Omega test (Pugh, CACM 8/1992) eliminates variables as Fourier and Motzkin do. A pair of rows
in which the variable has a coefficient of 1 or -1 loses nothing. Other pairs have a *dark shadow*, where a
whole number certainly lies between both rows; the points outside of it are in finitely many *splinters*, in
which an equation holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from fractions import Fraction

from tamis.constraints.atoms import Linear, coefficient, combination, linear, variables
from tamis.constraints.linear.conjunctions import Point, Refutation, irredundant, range_of, solve
from tamis.errors import RefusedError

# Names of variables that the Omega test introduces begin with it. No text of SQL contains it.
_INTRODUCED = "\1"


def tightened(row: Linear) -> Linear | bool:
    """The row over whole numbers: closed, with a whole constant; False for an equation without solutions.

    >>> tightened(Linear((("x", 1),), "<", Fraction(7, 2)))
    Linear(terms=(('x', 1),), op='<=', constant=Fraction(3, 1))
    """
    if row.op == "=":
        return row if row.constant.denominator == 1 else False
    limit = math.ceil(row.constant) - 1 if row.op == "<" else math.floor(row.constant)
    return Linear(row.terms, "<=", Fraction(limit))


def all_tightened(rows: Iterable[Linear | bool]) -> list[Linear] | None:
    """The rows over whole numbers without those that always hold; None if one can't hold."""
    found: dict[Linear, None] = {}
    for row in rows:
        tight = tightened(row) if isinstance(row, Linear) else row
        if tight is False:
            return None
        if isinstance(tight, Linear):
            found[tight] = None
    return list(found)


def satisfiable(rows: Iterable[Linear]) -> bool:
    """Tell if some point of whole numbers meets all rows."""
    tight = all_tightened(rows)
    if tight is None:
        return False
    found = solve(tight)
    if isinstance(found, Refutation):
        return False
    if _whole(found):
        return True
    equations = [row for row in tight if row.op == "="]
    if equations:
        solved = _without_equation(tight, min(equations, key=_least))
        return solved is not None and satisfiable(solved)
    return _omega(list(irredundant(tight)))


def project(rows: Iterable[Linear], gone: Collection[str]) -> tuple[Linear, ...]:
    """The projection of a satisfiable conjunction on the variables that aren't in `gone`.

    Raises RefusedError if a condition of divisibility would be needed to say it.
    """
    left = list(rows)
    while True:
        present = [name for name in variables(left) if name in gone]
        if not present:
            return irredundant(left)
        variable = next((name for name in present if _closed(left, name)), None)
        if variable is None:
            raise RefusedError(
                f"the projection of whole numbers without '{present[0]}' may need a condition of "
                "divisibility, such as 'x is even': linear constraints over whole numbers aren't closed "
                "under projection",
                hint="use numbers='real', or give the variable a coefficient of 1 or -1",
            )
        found = all_tightened(_eliminated(left, variable))
        assert found is not None  # the conjunction is satisfiable
        left = found


def greatest(rows: Iterable[Linear], variable: str, sign: int) -> int | None:
    """The greatest whole value of `sign * variable` in a satisfiable conjunction; None without a limit."""
    rows = tuple(rows)
    limits = range_of(rows, variable)
    limit = limits.upper if sign > 0 else None if limits.lower is None else -limits.lower
    if limit is None:
        return None  # a direction of rational numbers has a multiple of whole numbers

    def reaches(value: int) -> bool:
        return satisfiable((*rows, Linear(((variable, -sign),), "<=", Fraction(-value))))

    high, step = math.floor(limit), 1
    if reaches(high):
        return high
    while not reaches(high - step):
        step *= 2
    low = high - step  # reached, and `high` isn't
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def _whole(point: Point) -> bool:
    return all(value.denominator == 1 for value in point.values())


def _closed(rows: list[Linear], variable: str) -> bool:
    """Tell if the elimination of `variable` is exact: by an equation, or no pair of rows loses points."""
    own = [row for row in rows if coefficient(row, variable)]
    if any(row.op == "=" for row in own):
        return any(row.op == "=" and abs(coefficient(row, variable)) == 1 for row in own)
    above = max((coefficient(row, variable) for row in own if coefficient(row, variable) > 0), default=0)
    below = max((-coefficient(row, variable) for row in own if coefficient(row, variable) < 0), default=0)
    return above <= 1 or below <= 1


def _eliminated(rows: list[Linear], variable: str, dark: bool = False) -> list[Linear | bool]:
    """The rows without a variable: by an equation with a coefficient of 1 or -1, else by pairs of rows.

    `dark` gives the dark shadow.
    """
    own = [row for row in rows if coefficient(row, variable)]
    out: list[Linear | bool] = [row for row in rows if not coefficient(row, variable)]
    equation = next((row for row in own if row.op == "=" and abs(coefficient(row, variable)) == 1), None)
    if equation is not None:
        for row in own:
            if row is not equation:
                factor = Fraction(-coefficient(row, variable), coefficient(equation, variable))
                out.append(combination(((row, Fraction(1)), (equation, factor))))
        return out
    for upper in own:
        for lower in own:
            a, b = coefficient(upper, variable), -coefficient(lower, variable)
            if a > 0 and b > 0:
                out.append(_pair(upper, lower, a, b, (a - 1) * (b - 1) if dark else 0))
    return out


def _pair(upper: Linear, lower: Linear, a: int, b: int, gap: int) -> Linear | bool:
    """`b * upper + a * lower`, with a constant that is less by `gap`."""
    terms = [(name, value * b) for name, value in upper.terms]
    terms += [(name, value * a) for name, value in lower.terms]
    return linear(terms, "<=", b * upper.constant + a * lower.constant - gap)


def _omega(rows: list[Linear]) -> bool:
    """Satisfiability of tight inequalities."""
    names = variables(rows)
    if not names:
        return True
    variable = min(names, key=lambda name: (not _closed(rows, name), _pairs(rows, name), name))
    dark = all_tightened(_eliminated(rows, variable, dark=True))
    if dark is not None and satisfiable(dark):
        return True
    if _closed(rows, variable):
        return False
    real = all_tightened(_eliminated(rows, variable))
    if real is None or not satisfiable(real):
        return False
    greatest_above = max(coefficient(row, variable) for row in rows)
    for lower in rows:
        b = -coefficient(lower, variable)
        if b <= 0:
            continue
        last = (greatest_above * b - greatest_above - b) // greatest_above
        for i in range(last + 1):
            splinter = linear(lower.terms, "=", lower.constant - i)
            if isinstance(splinter, Linear) and satisfiable((*rows, splinter)):
                return True
    return False


def _pairs(rows: list[Linear], variable: str) -> int:
    signs = [coefficient(row, variable) for row in rows]
    return sum(value > 0 for value in signs) * sum(value < 0 for value in signs)


def _without_equation(rows: list[Linear], equation: Linear) -> list[Linear] | None:
    """Rows without `equation` and with the same satisfiability, or with an equation of smaller coefficients.

    Without a coefficient of 1 or -1, a new variable stands for the quotient of the other terms (Pugh, 2.3.1).
    """
    variable, value = min(equation.terms, key=lambda term: abs(term[1]))
    if abs(value) == 1:
        return all_tightened(_eliminated(rows, variable))
    modulus = abs(value) + 1
    count = sum(name.startswith(_INTRODUCED) for name in variables(rows))
    while f"{_INTRODUCED}{count}" in variables(rows):
        count += 1
    terms = [(name, _remainder(other, modulus)) for name, other in equation.terms]
    definition = linear(
        [*terms, (f"{_INTRODUCED}{count}", -modulus)], "=", _remainder(int(equation.constant), modulus)
    )
    # The remainder of `value` is 1 or -1, and no other equation has such a coefficient.
    assert isinstance(definition, Linear)
    assert abs(coefficient(definition, variable)) == 1
    return all_tightened(_eliminated([*rows, definition], variable))


def _least(equation: Linear) -> int:
    return min(abs(value) for _, value in equation.terms)


def _remainder(value: int, modulus: int) -> int:
    """The remainder of a division that is nearest to 0; -modulus / 2 rather than modulus / 2."""
    return value - modulus * ((2 * value + modulus) // (2 * modulus))
