"""The theory linear: sums of variables with constant coefficients, over real or whole numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tamis.constraints.atoms import Atom, Linear, Value, number
from tamis.constraints.linear import integers, lazy_tuples
from tamis.constraints.linear.lazy_tuples import LazyTuple
from tamis.constraints.theory import Interval, Numbers, Theory, implied_by_negation
from tamis.errors import RefusedError


def linear_theory(numbers: Numbers) -> Theory[LazyTuple]:
    """The theory over the numbers given."""
    return LinearReals() if numbers is Numbers.REAL else LinearIntegers()


class _Linear:
    """Methods that real and whole numbers have in common."""

    name: ClassVar[str] = "linear"
    symbols: ClassVar[bool] = False

    def check(self, atom: Atom) -> None:
        if not isinstance(atom, Linear):
            raise RefusedError("theory 'linear' has no symbols", hint="use theory 'dense' or 'temporal'")

    def rename(self, constraints: LazyTuple, names: Mapping[str, str]) -> LazyTuple:
        return lazy_tuples.rename(constraints, names)

    def atoms(self, constraints: LazyTuple) -> tuple[Atom, ...]:
        return constraints.eliminated

    def contains(self, constraints: LazyTuple, point: Mapping[str, Value]) -> bool:
        return lazy_tuples.contains(constraints, {name: number(value) for name, value in point.items()})


@dataclass(frozen=True)
class LinearReals(_Linear):
    """Linear constraints over the reals: projections are delayed until output or difference."""

    numbers: ClassVar[Numbers] = Numbers.REAL

    def conjunction(self, atoms: Iterable[Atom]) -> LazyTuple | None:
        return lazy_tuples.conjunction(_rows(atoms))

    def conjoin(self, one: LazyTuple, other: LazyTuple) -> LazyTuple | None:
        return lazy_tuples.conjoin((one, other))

    def project(self, constraints: LazyTuple, names: Collection[str]) -> LazyTuple:
        return lazy_tuples.project(constraints, names)

    def implies(self, one: LazyTuple, other: LazyTuple) -> bool:
        return lazy_tuples.implies(one, other)

    def interval(self, constraints: LazyTuple, name: str) -> Interval:
        return lazy_tuples.interval(constraints, name)


@dataclass(frozen=True)
class LinearIntegers(_Linear):
    """Linear constraints over whole numbers: satisfiability is exact, and projections are eliminated at once.

    A projection that may need a condition of divisibility is refused.
    """

    numbers: ClassVar[Numbers] = Numbers.INTEGER

    def conjunction(self, atoms: Iterable[Atom]) -> LazyTuple | None:
        rows = integers.all_tightened(_rows(atoms))
        return None if rows is None else self._checked(lazy_tuples.conjunction(rows))

    def conjoin(self, one: LazyTuple, other: LazyTuple) -> LazyTuple | None:
        return self._checked(lazy_tuples.conjoin((one, other)))

    def project(self, constraints: LazyTuple, names: Collection[str]) -> LazyTuple:
        gone = {name for row in constraints.rows for name in row.names if name not in names}
        found = lazy_tuples.conjunction(integers.project(constraints.rows, gone))
        assert found is not None  # the projection has the shadow of each point
        return found

    def implies(self, one: LazyTuple, other: LazyTuple) -> bool:
        return implied_by_negation(self, one, other)

    def interval(self, constraints: LazyTuple, name: str) -> Interval:
        high = integers.greatest(constraints.rows, name, 1)
        low = integers.greatest(constraints.rows, name, -1)
        return Interval(
            None if low is None else Fraction(-low),
            low is not None,
            None if high is None else Fraction(high),
            high is not None,
        )

    def _checked(self, found: LazyTuple | None) -> LazyTuple | None:
        return found if found is not None and integers.satisfiable(found.rows) else None


def _rows(atoms: Iterable[Atom]) -> list[Linear]:
    return [atom for atom in atoms if isinstance(atom, Linear)]
