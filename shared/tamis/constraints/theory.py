"""The interface of a theory: what the algebra of relations needs to know about one class of constraints.

A *tuple* is a satisfiable conjunction of atoms over named variables that range over an infinite domain
(goldin-1997, Definition 1). Each theory represents tuples in its own way: `T` is immutable and hashable.
A variable that a tuple doesn't mention isn't constrained by it, so that a tuple doesn't know the variables of
its relation.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from tamis.constraints.atoms import Atom, Value

T = TypeVar("T", bound=Hashable)


class Numbers(StrEnum):
    """The numbers that all variables of a relation range over, except those of symbols."""

    REAL = "real"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Interval:
    """The values of one variable in a tuple. A bound that is None is infinite."""

    lower: Fraction | None = None
    lower_closed: bool = False
    upper: Fraction | None = None
    upper_closed: bool = False


def hull(intervals: Iterable[Interval]) -> Interval | None:
    """The smallest interval that contains all of them; None without intervals."""
    out: Interval | None = None
    for each in intervals:
        if out is None:
            out = each
            continue
        lower, upper = (out.lower, out.lower_closed), (out.upper, out.upper_closed)
        if each.lower is None or (out.lower is not None and each.lower <= out.lower):
            closed = each.lower_closed or (out.lower_closed and each.lower == out.lower)
            lower = (each.lower, closed)
        if each.upper is None or (out.upper is not None and each.upper >= out.upper):
            closed = each.upper_closed or (out.upper_closed and each.upper == out.upper)
            upper = (each.upper, closed)
        out = Interval(*lower, *upper)
    return out


class Theory(Protocol[T]):
    """One class of constraints over one kind of numbers."""

    @property
    def name(self) -> str:
        """The theory's name in `Relation.parse` and in messages."""

    @property
    def numbers(self) -> Numbers:
        """The numbers of all variables."""

    @property
    def symbols(self) -> bool:
        """True if variables can be symbols. Otherwise no atom is an `Equality`."""

    def check(self, atom: Atom) -> None:
        """Raises `RefusedError` with the reason if the theory doesn't have an atom of this form."""

    def conjunction(self, atoms: Iterable[Atom]) -> T | None:
        """The tuple of atoms that `check` accepts, in canonical form; None if they are unsatisfiable."""

    def conjoin(self, one: T, other: T) -> T | None:
        """The points of both tuples (goldin-1997, Definition 13: the common tuple); None if there are
        none.
        """

    def project(self, constraints: T, names: Collection[str]) -> T:
        """The projection on the variables in `names`. Raises `RefusedError` if the theory can't say it."""

    def rename(self, constraints: T, names: Mapping[str, str]) -> T:
        """The tuple with other names for variables; names that `names` lacks stay."""

    def implies(self, one: T, other: T) -> bool:
        """Tell if every point of `one` is a point of `other`."""

    def atoms(self, constraints: T) -> tuple[Atom, ...]:
        """Atoms whose conjunction is the tuple, without redundant ones where that is cheap to see.

        Raises `RefusedError` if the theory can't say it.
        """

    def contains(self, constraints: T, point: Mapping[str, Value]) -> bool:
        """Tell if a point, with a value for each variable of the tuple, is in it."""

    def interval(self, constraints: T, name: str) -> Interval:
        """The interval of one variable's values; infinite for a symbol."""


def implied_by_negation(theory: Theory[Any], one: Any, other: Any) -> bool:
    """Tell if every point of `one` is a point of `other`: no atom of `other` fails anywhere in `one`.

    It is a way for theories to implement `implies`.
    """
    return all(
        theory.conjoin(one, outside) is None
        for atom in theory.atoms(other)
        for negation in atom.negated()
        if (outside := theory.conjunction([negation])) is not None
    )
