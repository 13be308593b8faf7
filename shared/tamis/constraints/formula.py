"""Formulas: comparisons joined by AND and OR, before the kinds of their variables are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from tamis.errors import Position


@dataclass(frozen=True)
class Sum:
    """`sum(coefficient * variable) + constant`; no coefficient is zero."""

    terms: Mapping[str, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @property
    def variable(self) -> str | None:
        """The variable's name if the sum is nothing but one variable."""
        if len(self.terms) != 1 or self.constant:
            return None
        ((name, coefficient),) = self.terms.items()
        return name if coefficient == 1 else None

    def plus(self, other: Sum, factor: Fraction | int = 1) -> Sum:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for name, coefficient in other.terms.items():
            terms[name] = terms.get(name, Fraction(0)) + factor * coefficient
        return Sum({name: c for name, c in terms.items() if c}, self.constant + factor * other.constant)

    def times(self, factor: Fraction | int) -> Sum:
        """`factor * self`."""
        return Sum().plus(self, factor)


Operand: TypeAlias = Sum | str
"""One side of a comparison; a str is a symbol."""


@dataclass(frozen=True)
class Comparison:
    """`left op right`, where `op` is one of `<`, `<=`, `=`, `<>`."""

    left: Operand
    op: str
    right: Operand
    names: frozenset[str] = frozenset()
    """All variables of the text, also those that cancel out."""
    position: Position | None = None


@dataclass(frozen=True)
class All:
    """Every part holds; without parts it is true."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Some:
    """At least one part holds; without parts it is false."""

    parts: tuple[Formula, ...] = ()


Formula: TypeAlias = Comparison | All | Some


def comparisons(formula: Formula) -> Iterator[Comparison]:
    """All comparisons of a formula, in order of the text."""
    stack = [formula]
    while stack:
        top = stack.pop()
        if isinstance(top, Comparison):
            yield top
        else:
            stack += reversed(top.parts)


def conjuncts(formula: Formula) -> Iterator[Formula]:
    """The parts of a formula, all of which hold, in order of the text."""
    if isinstance(formula, All):
        for part in formula.parts:
            yield from conjuncts(part)
    else:
        yield formula


def names_of(formula: Formula) -> frozenset[str]:
    """The variables of a formula, also those that cancel out."""
    return frozenset(name for comparison in comparisons(formula) for name in comparison.names)


def renamed(formula: Formula, names: Mapping[str, str]) -> Formula:
    """The formula with other names for variables; names that `names` lacks stay."""
    if not isinstance(formula, Comparison):
        return replace(formula, parts=tuple(renamed(part, names) for part in formula.parts))
    left, right = (
        side
        if isinstance(side, str)
        else Sum({names.get(name, name): factor for name, factor in side.terms.items()}, side.constant)
        for side in (formula.left, formula.right)
    )
    known = frozenset(names.get(name, name) for name in formula.names)
    return replace(formula, left=left, right=right, names=known)


def constant_variable(formula: Formula) -> str | None:
    """The variable that a formula sets equal to a constant, if that is what it says."""
    if not isinstance(formula, Comparison) or formula.op != "=":
        return None
    for one, other in ((formula.left, formula.right), (formula.right, formula.left)):
        if not isinstance(one, str) and one.variable and (isinstance(other, str) or not other.terms):
            return one.variable
    return None
