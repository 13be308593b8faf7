"""Lazy tuples: conjunctions whose projected variables are not yet eliminated (goldin-1997, section 3.4).

The paper says that a join keeps the intersection of the essential variables. It keeps their union: a natural
join has the variables of both relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from tamis.constraints.atoms import Linear
from tamis.constraints.linear.conjunctions import Point, Refutation, irredundant, range_of, solve
from tamis.constraints.linear.fourier_motzkin import eliminate
from tamis.constraints.linear.rows import connected, replaced, variables
from tamis.constraints.theory import Interval

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
        found = eliminate(self.rows, self.extraneous)
        assert found is not None  # the witness meets all rows
        return found


def conjoin(tuples: Iterable[LazyTuple]) -> LazyTuple | None:
    """The points of all tuples; None if there are none. The extraneous variables of each stay its own."""
    rows: dict[Linear, None] = {}
    candidate: Point = {}
    count = 0
    for one in tuples:
        own = {name: f"{_EXTRANEOUS}{count + i}" for i, name in enumerate(one.extraneous)}
        count += len(own)
        rows |= dict.fromkeys(row.renamed(own) for row in one.rows)
        candidate |= {own.get(name, name): value for name, value in one.witness.items()}
    return _checked(rows, candidate)


def conjunction(rows: Iterable[Linear]) -> LazyTuple | None:
    """The tuple of rows over essential variables; None if they are contradictory."""
    return _checked(dict.fromkeys(rows), {})


def project(one: LazyTuple, names: Collection[str]) -> LazyTuple:
    """The projection on `names`: the other variables become extraneous.

    Rows that have no variable in common with the rest, even through other rows, are dropped: the witness
    meets them.
    """
    gone = [name for name in variables(one.rows) if name not in names and name not in one.extraneous]
    first = 1 + max((int(name[len(_EXTRANEOUS) :]) for name in one.extraneous), default=-1)
    new = {name: f"{_EXTRANEOUS}{first + i}" for i, name in enumerate(gone)}
    rows = connected((row.renamed(new) for row in one.rows), names)
    witness = {new.get(name, name): value for name, value in one.witness.items()}
    return LazyTuple(_ordered(rows), {name: witness[name] for name in variables(rows)})


def rename(one: LazyTuple, names: Mapping[str, str]) -> LazyTuple:
    """The same points with other names of essential variables."""
    witness = {names.get(name, name): value for name, value in one.witness.items()}
    return LazyTuple(_ordered(row.renamed(names) for row in one.rows), witness)


def contains(one: LazyTuple, point: Mapping[str, Fraction]) -> bool:
    """Tell if a point, with a value for each essential variable of the rows, is in the tuple."""
    left: list[Linear] = []
    for row in one.rows:
        found = replaced(row, point)
        if found is False:
            return False
        if isinstance(found, Linear):
            left.append(found)
    return not isinstance(solve(left), Refutation)


def implies(one: LazyTuple, other: LazyTuple) -> bool:
    """Tell if every point of `one` is a point of `other`.

    The extraneous variables of `other` are eliminated only if it contains the witness of `one`.
    """
    if set(other.rows) <= set(one.rows) and not other.extraneous:
        return True
    unlimited = dict.fromkeys(variables(other.rows), Fraction(0))
    if not contains(other, _essential({**unlimited, **one.witness})):
        return False
    return all(
        isinstance(solve((*one.rows, negation)), Refutation)
        for row in other.eliminated
        for negation in row.negated()
    )


def interval(one: LazyTuple, name: str) -> Interval:
    """The values of one essential variable."""
    return range_of(one.rows, name)


def _essential(point: Mapping[str, Fraction]) -> Point:
    return {name: value for name, value in point.items() if not name.startswith(_EXTRANEOUS)}


def _checked(rows: Iterable[Linear], candidate: Point) -> LazyTuple | None:
    """The tuple of rows, if they are satisfiable. `candidate` may be a witness."""
    ordered = _ordered(rows)
    names = variables(ordered)
    witness = {name: candidate.get(name, Fraction(0)) for name in names}
    if not all(row.holds(witness) for row in ordered):
        found = solve(ordered)
        if isinstance(found, Refutation):
            return None
        witness = found
    return LazyTuple(ordered, witness)


def _ordered(rows: Iterable[Linear]) -> tuple[Linear, ...]:
    return tuple(sorted(rows, key=lambda row: (row.terms, row.op, row.constant)))
