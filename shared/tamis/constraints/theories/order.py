"""The theories dense (`x <op> y`, `x <op> c`) and temporal (also `x - y <op> c`), both with symbols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tamis.constraints.atoms import Atom, Equality, Linear, Value
from tamis.constraints.sql_text import atom_text
from tamis.constraints.theories import difference_bounds, symbols
from tamis.constraints.theories.difference_bounds import EVERYTHING, Bound, Zone
from tamis.constraints.theories.symbols import Symbols
from tamis.constraints.theory import Interval, Numbers
from tamis.errors import RefusedError


@dataclass(frozen=True, slots=True)
class OrderTuple:
    """A tuple of numbers and symbols: no variable is in both parts, so that each can be treated alone."""

    numbers: Zone = EVERYTHING
    symbols: Symbols = ()


@dataclass(frozen=True)
class _Order:
    """Common base of both theories."""

    numbers: Numbers
    name: ClassVar[str]
    symbols: ClassVar[bool] = True

    def conjunction(self, atoms: Iterable[Atom]) -> OrderTuple | None:
        bounds: list[Bound] = []
        equalities: list[Equality] = []
        for atom in atoms:
            if isinstance(atom, Linear):
                bounds += difference_bounds.bounds_of(atom, self.numbers is Numbers.INTEGER)
            else:
                equalities.append(atom)
        zone = difference_bounds.zone(bounds) if bounds else EVERYTHING
        found = symbols.conjunction(equalities) if equalities else ()
        return None if zone is None or found is None else OrderTuple(zone, found)

    def conjoin(self, one: OrderTuple, other: OrderTuple) -> OrderTuple | None:
        zone = difference_bounds.conjoin(one.numbers, other.numbers)
        if zone is None:
            return None
        found: Symbols | None = one.symbols or other.symbols
        if one.symbols and other.symbols:
            found = symbols.conjunction((*one.symbols, *other.symbols))
        return None if found is None else OrderTuple(zone, found)

    def project(self, constraints: OrderTuple, names: Collection[str]) -> OrderTuple:
        kept = frozenset(names)
        zone = difference_bounds.project(constraints.numbers, kept)
        return OrderTuple(zone, symbols.project(constraints.symbols, kept))

    def rename(self, constraints: OrderTuple, names: Mapping[str, str]) -> OrderTuple:
        zone = difference_bounds.rename(constraints.numbers, names)
        return OrderTuple(zone, symbols.rename(constraints.symbols, names))

    def implies(self, one: OrderTuple, other: OrderTuple) -> bool:
        if not difference_bounds.implies(one.numbers, other.numbers):
            return False
        # The canonical form of symbols is unique: a conjunct that changes nothing is implied.
        return not other.symbols or symbols.conjunction((*one.symbols, *other.symbols)) == one.symbols

    def atoms(self, constraints: OrderTuple) -> tuple[Atom, ...]:
        bounds = difference_bounds.minimal_bounds(constraints.numbers)
        return (*difference_bounds.atoms_of(bounds), *constraints.symbols)

    def contains(self, constraints: OrderTuple, point: Mapping[str, Value]) -> bool:
        return difference_bounds.contains(constraints.numbers, point) and all(
            atom.holds(point) for atom in constraints.symbols
        )

    def interval(self, constraints: OrderTuple, name: str) -> Interval:
        return difference_bounds.interval(constraints.numbers, name)


class Temporal(_Order):
    """Temporal constraints `x - y <op> c` and `x <op> c` (goldin-1997, section 4.4)."""

    name = "temporal"

    def check(self, atom: Atom) -> None:
        if isinstance(atom, Linear) and not _is_difference(atom):
            raise RefusedError(
                f"'{atom_text(atom)}' is not a temporal constraint",
                hint="write x - y <op> c or x <op> c, or use theory 'linear'",
            )


class DenseOrder(_Order):
    """Dense order constraints `x <op> y` and `x <op> c` (goldin-1997, chapter 4).

    Over the integers, where there isn't always a number between two others, projections of `x < y AND y < z`
    can't be said; they are refused.
    """

    name = "dense"

    def check(self, atom: Atom) -> None:
        if isinstance(atom, Linear) and not (
            _is_difference(atom) and (len(atom.terms) == 1 or not atom.constant)
        ):
            raise RefusedError(
                f"'{atom_text(atom)}' is not a constraint of dense order",
                hint="write x <op> y or x <op> c, or use theory 'temporal' or 'linear'",
            )

    def project(self, constraints: OrderTuple, names: Collection[str]) -> OrderTuple:
        found = super().project(constraints, names)
        if self.numbers is Numbers.INTEGER:
            self.atoms(found)
        return found

    def atoms(self, constraints: OrderTuple) -> tuple[Atom, ...]:
        found = super().atoms(constraints)
        if self.numbers is Numbers.REAL:
            return found
        return tuple(_strict(atom) if isinstance(atom, Linear) else atom for atom in found)


def _is_difference(atom: Linear) -> bool:
    coefficients = [coefficient for _, coefficient in atom.terms]
    return coefficients in ([1], [-1], [1, -1], [-1, 1])


def _strict(atom: Linear) -> Linear:
    """An atom over integers as one of dense order: `x - y <= -1` is `x < y`."""
    if len(atom.terms) == 1 or not atom.constant:
        return atom
    if atom.op == "<=" and atom.constant == -1:
        return Linear(atom.terms, "<", atom.constant + 1)
    raise RefusedError(
        f"the result has '{atom_text(atom)}': dense order isn't closed under projection over the integers",
        hint="use theory 'temporal'",
    )
