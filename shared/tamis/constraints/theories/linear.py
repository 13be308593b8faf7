"""The theory linear: sums of variables with constant coefficients, over real or whole numbers.

Its tuples are *lazy*: conjunctions whose projected variables are not yet eliminated (goldin-1997, section
3.4). The paper says that a join keeps the intersection of the essential variables. It keeps their union: a
natural join has the variables of both relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from tamis.constraints.atoms import Atom, Linear, Value, connected, number, replaced, variables
from tamis.constraints.linear import integers
from tamis.constraints.linear.conjunctions import Point, Refutation, irredundant, range_of, solve
from tamis.constraints.linear.fourier_motzkin import eliminate
from tamis.constraints.theory import Interval, Numbers, Theory, implied_by_negation
from tamis.errors import RefusedError

# Names of extraneous variables begin with it. No text of SQL contains it.
_EXTRANEOUS = "\0"


@dataclass(frozen=True)
class LazyTuple:
    """A satisfiable conjunction of rows over essential variables and extraneous ones.

    Its points are those of the essential variables for which some values of the extraneous variables meet all
    rows. `witness` is such a point with its values of the extraneous variables.
    """

    rows: tuple[Linear, ...]
    witness: Mapping[str, Fraction] = field(compare=False, repr=False)

    @cached_property
    def extraneous(self) -> tuple[str, ...]:
        """The variables that a projection has removed and that are still in the rows."""
        return tuple(name for name in variables(self.rows) if name.startswith(_EXTRANEOUS))

    @cached_property
    def eliminated(self) -> tuple[Linear, ...]:
        """Rows over the essential variables alone with the same points, none of them redundant."""
        if not self.extraneous:
            return irredundant(self.rows)
        rows = eliminate(self.rows, self.extraneous)
        assert rows is not None  # the witness meets all rows
        return rows


def linear_theory(numbers: Numbers) -> Theory[LazyTuple]:
    """The theory over the numbers given."""
    return LinearReals() if numbers is Numbers.REAL else LinearIntegers()


@dataclass(frozen=True)
class LinearReals:
    """Linear constraints over the reals: projections are delayed until output or difference."""

    name: ClassVar[str] = "linear"
    symbols: ClassVar[bool] = False
    numbers: ClassVar[Numbers] = Numbers.REAL

    def check(self, atom: Atom) -> None:
        if not isinstance(atom, Linear):
            raise RefusedError("theory 'linear' has no symbols", hint="use theory 'dense' or 'temporal'")

    def conjunction(self, atoms: Iterable[Atom]) -> LazyTuple | None:
        return _satisfiable(dict.fromkeys(_rows(atoms)), {})

    def conjoin(self, one: LazyTuple, other: LazyTuple) -> LazyTuple | None:
        """The points of both tuples. The extraneous variables of each stay its own."""
        rows: dict[Linear, None] = {}
        candidate: Point = {}
        count = 0
        for part in (one, other):
            own = {name: f"{_EXTRANEOUS}{count + i}" for i, name in enumerate(part.extraneous)}
            count += len(own)
            rows |= dict.fromkeys(row.renamed(own) for row in part.rows)
            candidate |= {own.get(name, name): value for name, value in part.witness.items()}
        return _satisfiable(rows, candidate)

    def project(self, constraints: LazyTuple, names: Collection[str]) -> LazyTuple:
        """The projection on `names`: the other variables become extraneous.

        Rows that have no variable in common with the rest, even through other rows, are dropped: the witness
        meets them.
        """
        known = constraints.extraneous
        gone = [name for name in variables(constraints.rows) if name not in names and name not in known]
        first = 1 + max((int(name[len(_EXTRANEOUS) :]) for name in known), default=-1)
        new = {name: f"{_EXTRANEOUS}{first + i}" for i, name in enumerate(gone)}
        rows = connected((row.renamed(new) for row in constraints.rows), names)
        witness = {new.get(name, name): value for name, value in constraints.witness.items()}
        return LazyTuple(_ordered(rows), {name: witness[name] for name in variables(rows)})

    def rename(self, constraints: LazyTuple, names: Mapping[str, str]) -> LazyTuple:
        witness = {names.get(name, name): value for name, value in constraints.witness.items()}
        return LazyTuple(_ordered(row.renamed(names) for row in constraints.rows), witness)

    def implies(self, one: LazyTuple, other: LazyTuple) -> bool:
        """The extraneous variables of `other` are eliminated only if it contains the witness of `one`."""
        if set(other.rows) <= set(one.rows) and not other.extraneous:
            return True
        unlimited = dict.fromkeys(variables(other.rows), Fraction(0))
        point = {
            name: value
            for name, value in {**unlimited, **one.witness}.items()
            if not name.startswith(_EXTRANEOUS)
        }
        return self.contains(other, point) and all(
            isinstance(solve((*one.rows, negation)), Refutation)
            for row in other.eliminated
            for negation in row.negated()
        )

    def atoms(self, constraints: LazyTuple) -> tuple[Atom, ...]:
        return constraints.eliminated

    def contains(self, constraints: LazyTuple, point: Mapping[str, Value]) -> bool:
        values = {name: number(value) for name, value in point.items()}
        left: list[Linear] = []
        for row in constraints.rows:
            rest = replaced(row, values)
            if rest is False:
                return False
            if isinstance(rest, Linear):
                left.append(rest)
        return not isinstance(solve(left), Refutation)

    def interval(self, constraints: LazyTuple, name: str) -> Interval:
        return range_of(constraints.rows, name)


@dataclass(frozen=True)
class LinearIntegers(LinearReals):
    """Linear constraints over whole numbers: satisfiability is exact, and projections are eliminated at once.

    A projection that may need a condition of divisibility is refused.
    """

    numbers: ClassVar[Numbers] = Numbers.INTEGER

    def conjunction(self, atoms: Iterable[Atom]) -> LazyTuple | None:
        rows = integers.all_tightened(_rows(atoms))
        return None if rows is None else _with_integers(super().conjunction(rows))

    def conjoin(self, one: LazyTuple, other: LazyTuple) -> LazyTuple | None:
        return _with_integers(super().conjoin(one, other))

    def project(self, constraints: LazyTuple, names: Collection[str]) -> LazyTuple:
        gone = {name for row in constraints.rows for name in row.names if name not in names}
        projection = super().conjunction(integers.project(constraints.rows, gone))
        assert projection is not None  # the projection has the shadow of each point
        return projection

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


def _rows(atoms: Iterable[Atom]) -> list[Linear]:
    return [atom for atom in atoms if isinstance(atom, Linear)]


def _with_integers(constraints: LazyTuple | None) -> LazyTuple | None:
    """The tuple, if a point of whole numbers is in it."""
    return constraints if constraints is not None and integers.satisfiable(constraints.rows) else None


def _satisfiable(rows: Iterable[Linear], candidate: Point) -> LazyTuple | None:
    """The tuple of rows, if they are satisfiable. `candidate` may be a witness."""
    ordered = _ordered(rows)
    witness = {name: candidate.get(name, Fraction(0)) for name in variables(ordered)}
    if not all(row.holds(witness) for row in ordered):
        point = solve(ordered)
        if isinstance(point, Refutation):
            return None
        witness = point
    return LazyTuple(ordered, witness)


def _ordered(rows: Iterable[Linear]) -> tuple[Linear, ...]:
    return tuple(sorted(rows, key=lambda row: (row.terms, row.op, row.constant)))
