"""Atoms: linear comparisons of variables with exact coefficients, and equalities of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Literal, TypeAlias

Value: TypeAlias = Fraction | str
"""The value of a variable: a number or a symbol."""


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * variable) op constant`.

    In normal form, which `linear` makes: terms by name, coefficients coprime integers and none zero, at least
    one term, and for `=` the first coefficient positive. Equal sets of points then have equal atoms.
    """

    terms: tuple[tuple[str, int], ...]
    op: Literal["<", "<=", "="]
    constant: Fraction

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return tuple(name for name, _ in self.terms)

    def holds(self, point: Mapping[str, Value]) -> bool:
        """Tell if a point with a number for each variable satisfies the atom."""
        total = sum((coefficient * number(point[name]) for name, coefficient in self.terms), Fraction(0))
        return compare(total, self.op, self.constant)

    def negated(self) -> tuple[Linear, ...]:
        """Disjoint atoms that together hold where this one doesn't."""
        flipped = tuple((name, -coefficient) for name, coefficient in self.terms)
        above = Linear(flipped, "<" if self.op != "<" else "<=", -self.constant)
        return (Linear(self.terms, "<", self.constant), above) if self.op == "=" else (above,)

    def renamed(self, names: Mapping[str, str]) -> Linear:
        """The same atom with other names; names that `names` lacks stay."""
        atom = linear(((names.get(name, name), value) for name, value in self.terms), self.op, self.constant)
        assert isinstance(atom, Linear)  # the new names are distinct, so no term vanishes
        return atom


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right` or, without `equal`, `left <> right`: of two variables, or a variable and a symbol.

    The values may be of any kind, since `=` and `<>` don't need an order. In normal form, which `equality`
    makes: of two variables `left` is the one whose name comes first.
    """

    left: str
    right: str
    constant: bool
    """True if `right` is a symbol, False if it is the name of a variable."""
    equal: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return (self.left,) if self.constant else (self.left, self.right)

    def holds(self, point: Mapping[str, Value]) -> bool:
        """Tell if a point with a value for each variable satisfies the atom."""
        return (point[self.left] == (self.right if self.constant else point[self.right])) is self.equal

    def negated(self) -> tuple[Equality, ...]:
        """The one atom that holds where this one doesn't."""
        return (Equality(self.left, self.right, self.constant, not self.equal),)

    def renamed(self, names: Mapping[str, str]) -> Equality:
        """The same atom with other names; names that `names` lacks stay."""
        left = names.get(self.left, self.left)
        if self.constant:
            return Equality(left, self.right, True, self.equal)
        right = names.get(self.right, self.right)
        return Equality(min(left, right), max(left, right), False, self.equal)


Atom: TypeAlias = Linear | Equality


def linear(
    terms: Iterable[tuple[str, Fraction | int]], op: Literal["<", "<=", "="], constant: Fraction | int
) -> Linear | bool:
    """The atom `sum(coefficient * variable) op constant` in normal form; True or False if no variable is
    left.

    >>> linear([("y", Fraction(-1, 2)), ("x", 1), ("z", 0)], "<", 3)
    Linear(terms=(('x', 2), ('y', -1)), op='<', constant=Fraction(6, 1))
    >>> linear([("x", 2), ("x", -2)], "<=", -1)
    False
    """
    sums: dict[str, Fraction] = {}
    for name, coefficient in terms:
        sums[name] = sums.get(name, Fraction(0)) + coefficient
    left = sorted((name, value) for name, value in sums.items() if value)
    if not left:
        return compare(Fraction(0), op, Fraction(constant))
    if len(left) == 1:
        ((name, value),) = left
        sign = 1 if value > 0 or op == "=" else -1
        return Linear(
            ((name, sign),), op, Fraction(constant) if value == sign else constant * (sign / Fraction(value))
        )
    scale = Fraction(
        lcm(*(value.denominator for _, value in left)), gcd(*(value.numerator for _, value in left))
    )
    if op == "=" and left[0][1] < 0:
        scale = -scale
    return Linear(tuple((name, int(value * scale)) for name, value in left), op, constant * scale)


def equality(left: str, right: str, equal: bool) -> Equality | bool:
    """The atom `left = right` or `left <> right` of two variables; True or False if they are the same."""
    return equal if left == right else Equality(min(left, right), max(left, right), False, equal)


def compare(one: Fraction, op: str, other: Fraction) -> bool:
    """Tell if `one op other`."""
    return one < other if op == "<" else one <= other if op == "<=" else one == other


def number(value: Value) -> Fraction:
    """The value of a variable that is a number. Raises `TypeError` for a symbol."""
    if isinstance(value, str):
        raise TypeError(f"{value!r} is a symbol, not a number")
    return value
