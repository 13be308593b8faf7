"""The theories dense (`x <op> y`, `x <op> c`) and temporal (also `x - y <op> c`), both with symbols.

A canonical conjunction is a sorted tuple of atoms: each variable that equals a constant is equated with the
constant, each other variable of a class of equal ones with the first of its class, and inequalities are
between first ones or with constants. Because the domain is infinite, such a conjunction is satisfiable, it
implies no other (in)equality than these, and its projection is its restriction: finitely many `<>` always
leave a value for the variable that is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tamis.constraints.atoms import Atom, Equality, Linear, Value, atom_text
from tamis.constraints.theories import difference_bounds
from tamis.constraints.theories.difference_bounds import EVERYTHING, Bound, Zone
from tamis.constraints.theory import Interval, Numbers
from tamis.errors import RefusedError

Symbols: TypeAlias = tuple[Equality, ...]
_Term: TypeAlias = tuple[bool, str]  # True and a constant, or False and the name of a variable


def conjunction_of_symbols(atoms: Iterable[Equality]) -> Symbols | None:
    """The canonical form of a conjunction; None if it is unsatisfiable.

    >>> from tamis.constraints.atoms import equality
    >>> found = conjunction_of_symbols([equality("c", "b", True), equality("b", "a", True)])
    >>> [(atom.left, atom.right) for atom in found]
    [('a', 'b'), ('a', 'c')]
    """
    parents: dict[_Term, _Term] = {}

    def root(term: _Term) -> _Term:
        while (parent := parents.get(term)) is not None:
            term = parent
        return term

    different: list[tuple[_Term, _Term]] = []
    variables: set[str] = set()
    for atom in atoms:
        variables.update(atom.names)
        one, other = root((False, atom.left)), root((atom.constant, atom.right))
        if not atom.equal:
            different.append((one, other))
        elif one != other:
            if one[0] and other[0]:
                return None
            # The root of a class is its constant, or else its first variable.
            if other[0] or (not one[0] and other < one):
                one, other = other, one
            parents[other] = one
    out: set[Equality] = set()
    for name in variables:
        constant, text = root((False, name))
        if constant:
            out.add(Equality(name, text, True, True))
        elif text != name:
            out.add(Equality(text, name, False, True))
    for pair in different:
        one, other = sorted(map(root, pair))  # variables come before constants
        if one == other:
            return None
        if not one[0]:
            out.add(Equality(one[1], other[1], other[0], False))
    return tuple(sorted(out, key=_order))


def _projected_symbols(found: Symbols, names: Collection[str]) -> Symbols:
    """The projection on some variables."""
    first: dict[str, str] = {}  # the remaining variable that stands for a class whose first one is dropped
    for atom in found:
        if atom.equal and not atom.constant and atom.left not in names and atom.right in names:
            first.setdefault(atom.left, atom.right)
    out = [atom.renamed(first) for atom in found if not (atom.equal and first.get(atom.left) == atom.right)]
    restricted = conjunction_of_symbols(atom for atom in out if set(atom.names) <= set(names))
    assert restricted is not None  # a part of a satisfiable conjunction is satisfiable
    return restricted


def _renamed_symbols(found: Symbols, names: Mapping[str, str]) -> Symbols:
    """The conjunction with other names for variables, in normal form."""
    renamed = conjunction_of_symbols(atom.renamed(names) for atom in found)
    assert renamed is not None  # the new names are distinct
    return renamed


def _order(atom: Equality) -> tuple[bool, str, bool, str]:
    return (not atom.equal, atom.left, atom.constant, atom.right)


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
        found = conjunction_of_symbols(equalities) if equalities else ()
        return None if zone is None or found is None else OrderTuple(zone, found)

    def conjoin(self, one: OrderTuple, other: OrderTuple) -> OrderTuple | None:
        zone = difference_bounds.conjoin(one.numbers, other.numbers)
        if zone is None:
            return None
        found: Symbols | None = one.symbols or other.symbols
        if one.symbols and other.symbols:
            found = conjunction_of_symbols((*one.symbols, *other.symbols))
        return None if found is None else OrderTuple(zone, found)

    def project(self, constraints: OrderTuple, names: Collection[str]) -> OrderTuple:
        kept = frozenset(names)
        zone = difference_bounds.project(constraints.numbers, kept)
        return OrderTuple(zone, _projected_symbols(constraints.symbols, kept))

    def rename(self, constraints: OrderTuple, names: Mapping[str, str]) -> OrderTuple:
        zone = difference_bounds.rename(constraints.numbers, names)
        return OrderTuple(zone, _renamed_symbols(constraints.symbols, names))

    def implies(self, one: OrderTuple, other: OrderTuple) -> bool:
        if not difference_bounds.implies(one.numbers, other.numbers):
            return False
        # The canonical form of symbols is unique: a conjunct that changes nothing is implied.
        return not other.symbols or conjunction_of_symbols((*one.symbols, *other.symbols)) == one.symbols

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
