"""Random linear relations, each as text for `Relation.parse` and as systems for the oracle."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from tests.oracle.constraints.textbook_elimination import (
    Constraint,
    constraints,
    satisfiable,
    substitute,
    without,
)

Atom = tuple[dict[str, int], str, Fraction]
_OPS = ("<", "<=", "<=", "=", ">=", ">")


def random_atom(random_: random.Random, names: Sequence[str]) -> Atom:
    """A constraint with coefficients of at most 2 and a limit of whole or half numbers."""
    coefficients = {name: random_.choice((-2, -1, -1, 0, 1, 1, 2)) for name in names}
    return coefficients, random_.choice(_OPS), Fraction(random_.randint(-8, 10), random_.choice((1, 2)))


def text(disjuncts: Sequence[Sequence[Atom]]) -> str:
    """The SQL condition of a disjunction of conjunctions."""
    parts = [" AND ".join(_atom_text(*atom) for atom in atoms) or "TRUE" for atoms in disjuncts]
    return " OR ".join(f"({part})" for part in parts) or "FALSE"


def _atom_text(coefficients: Mapping[str, int], op: str, limit: Fraction) -> str:
    left = " + ".join(f"{value} * {name}" for name, value in coefficients.items())
    return f"{left} {op} {limit.numerator} / {limit.denominator}"


_numbers = count()


@dataclass(frozen=True)
class Points:
    """A set of points as a union of systems; variables that aren't in `names` exist for some value."""

    names: tuple[str, ...]
    systems: tuple[tuple[Constraint, ...], ...]

    @classmethod
    def of(cls, names: Sequence[str], disjuncts: Sequence[Sequence[Atom]]) -> Points:
        """The points of a disjunction of conjunctions."""
        return cls(tuple(names), tuple(tuple(constraints(atoms)) for atoms in disjuncts))

    def contains(self, point: Mapping[str, Fraction]) -> bool:
        """Tell if a point is in the set."""
        return any(satisfiable(substitute(list(system), point)) for system in self.systems)

    def project(self, names: Sequence[str]) -> Points:
        """The projection."""
        hidden = {name: f"hidden{next(_numbers)}" for name in self.names if name not in names}
        return Points(tuple(names), self._renamed(hidden))

    def rename(self, names: Mapping[str, str]) -> Points:
        """The same points with other names."""
        return Points(tuple(names.get(name, name) for name in self.names), self._renamed(names))

    def join(self, other: Points) -> Points:
        """The natural join."""
        both = tuple((*one, *two) for one in self.systems for two in other.systems)
        return Points((*self.names, *(name for name in other.names if name not in self.names)), both)

    def union(self, other: Points) -> Points:
        """The union."""
        return Points(self.names, self.systems + other.systems)

    def difference(self, other: Points) -> Points:
        """The difference."""
        systems = self.systems
        for system in other._visible():
            complement = [
                ({name: -value for name, value in left.items()}, -limit, not strict)
                for left, limit, strict in system
            ]
            systems = tuple((*one, negation) for one in systems for negation in complement)
            systems = tuple(one for one in systems if satisfiable(list(one)))
        return Points(self.names, systems)

    def _visible(self) -> list[list[Constraint]]:
        out = []
        for system in self.systems:
            left = list(system)
            for name in sorted({name for terms, _, _ in system for name in terms} - set(self.names)):
                left = without(left, name)
            out.append(left)
        return out

    def _renamed(self, names: Mapping[str, str]) -> tuple[tuple[Constraint, ...], ...]:
        return tuple(
            tuple(
                ({names.get(name, name): value for name, value in left.items()}, limit, strict)
                for left, limit, strict in system
            )
            for system in self.systems
        )


def random_points(
    random_: random.Random, names: Sequence[str], number: int, denominators: Sequence[int] = (1, 2)
) -> list[dict[str, Fraction]]:
    """Points of whole and half numbers near the origin."""
    return [
        {name: Fraction(random_.randint(-7, 7), random_.choice(denominators)) for name in names}
        for _ in range(number)
    ]


def random_disjuncts(
    random_: random.Random, names: Sequence[str], most: int = 2, atoms: int = 4
) -> list[list[Atom]]:
    """Up to `most` conjunctions of up to `atoms` constraints."""
    return [
        [random_atom(random_, names) for _ in range(random_.randint(1, atoms))]
        for _ in range(random_.randint(1, most))
    ]
