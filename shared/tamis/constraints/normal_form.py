"""Disjunctive normal form: a formula as the tuples of a theory.

`<` and `<=`, arithmetic and a number make a variable a number; a string makes it a symbol; variables that are
compared by `=` or `<>` have the same kind. A variable may remain without a kind, as in `x = y`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

from tamis.constraints.atoms import Atom, Equality, Linear, equality, linear
from tamis.constraints.formula import All, Comparison, Formula, comparisons
from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.theory import Theory
from tamis.constraints.tuple_sets import conjoined, without_subsumed
from tamis.errors import Position, RefusedError

T = TypeVar("T", bound=Hashable)


class Kind(Enum):
    """Kind of a variable."""

    NUMBER = "a number"
    SYMBOL = "a symbol"


class KindInference:
    """Unification of the kinds of variables."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        """`kinds` has the kinds that are known before."""
        self._parents: dict[str, str] = {}
        self._kinds = dict(kinds)

    def kinds(self, names: Iterable[str]) -> dict[str, Kind]:
        """The kinds of those variables of which it is known."""
        return {name: kind for name in names if (kind := self._kinds.get(self._root(name))) is not None}

    def merge(self, kinds: Mapping[str, Kind]) -> None:
        """Take in kinds from elsewhere. Raises `RefusedError` for a variable of two kinds."""
        for name, kind in kinds.items():
            self._be(name, kind, None)

    def see_atoms(self, atoms: Iterable[Atom]) -> None:
        """Take in the use of variables in atoms. Raises `RefusedError` for a variable of two kinds."""
        for atom in atoms:
            if not isinstance(atom, Equality):
                for name in atom.names:
                    self._be(name, Kind.NUMBER, None)
            elif atom.constant:
                self._be(atom.left, Kind.SYMBOL, None)
            else:
                self._link(atom.left, atom.right, None)

    def see(self, comparison: Comparison) -> None:
        """Take in the use of variables in a comparison. Raises `RefusedError` for a variable of two kinds."""
        sides, ordered = (comparison.left, comparison.right), comparison.op in ("<", "<=")
        if any(isinstance(side, str) for side in sides):
            if ordered:
                raise _refused("symbols have no order: they are compared by = and <>", comparison.position)
            for side in sides:
                if isinstance(side, str):
                    continue
                if side.variable is None:
                    raise _refused("a symbol is compared with a number", comparison.position)
                self._be(side.variable, Kind.SYMBOL, comparison.position)
            return
        bare = [side.variable for side in sides if not isinstance(side, str) and side.variable]
        if len(bare) == 2 and not ordered and comparison.names == set(bare):
            self._link(bare[0], bare[1], comparison.position)
            return
        for name in sorted(comparison.names):
            self._be(name, Kind.NUMBER, comparison.position)

    def _root(self, name: str) -> str:
        while (parent := self._parents.get(name)) is not None:
            name = parent
        return name

    def _be(self, name: str, kind: Kind, position: Position | None) -> None:
        if self._kinds.setdefault(self._root(name), kind) is not kind:
            raise _refused(f"'{name}' is used as a number and as a symbol", position)

    def _link(self, one: str, other: str, position: Position | None) -> None:
        first, second = self._root(one), self._root(other)
        if first == second:
            return
        kinds = self._kinds.get(first), self._kinds.get(second)
        if None not in kinds and kinds[0] is not kinds[1]:
            raise _refused(
                f"'{one}' and '{other}' are compared, but one is a number and one a symbol", position
            )
        self._parents[first] = second
        if kinds[0] is not None:
            self._kinds[second] = kinds[0]


def _refused(what: str, position: Position | None) -> RefusedError:
    hint = "use each variable with numbers only, or with symbols only"
    return RefusedError(what, where=str(position) if position else None, hint=hint)


def see_all(formula: Formula, theory: Theory[Any], inference: KindInference) -> None:
    """Take the use of variables in a formula into `inference`.

    Raises `RefusedError` for a variable of two kinds, and for symbols if the theory has none.
    """
    for comparison in comparisons(formula):
        if not theory.symbols and (isinstance(comparison.left, str) or isinstance(comparison.right, str)):
            raise RefusedError(
                f"theory '{theory.name}' has no symbols",
                where=str(comparison.position),
                hint="compare with numbers, or use theory 'dense' or 'temporal'",
            )
        inference.see(comparison)


def disjunction(theory: Theory[T], formula: Formula, kinds: Mapping[str, Kind]) -> list[T]:
    """The tuples whose union is the set of points of a formula; none is contained in another one.

    `kinds` has the kinds of variables as far as they are known. Raises `RefusedError` for atoms that the
    theory lacks and for too many tuples.
    """
    if isinstance(formula, Comparison):
        return _conjunction(theory, [_choices(theory, formula, kinds)], [], numbers(kinds))
    if isinstance(formula, All):
        choices = [_choices(theory, part, kinds) for part in formula.parts if isinstance(part, Comparison)]
        rest = [
            disjunction(theory, part, kinds) for part in formula.parts if not isinstance(part, Comparison)
        ]
        return _conjunction(theory, choices, rest, numbers(kinds))
    found = [each for part in formula.parts for each in disjunction(theory, part, kinds)]
    return without_subsumed(theory, found, numbers(kinds))


def numbers(kinds: Mapping[str, Kind]) -> list[str]:
    """The variables that are known to be numbers."""
    return [name for name, kind in kinds.items() if kind is Kind.NUMBER]


def rebuilt(theory: Theory[T], tuples: Iterable[T], kinds: Mapping[str, Kind]) -> list[T]:
    """Rebuild tuples after more kinds have become known: numbers are compared by linear atoms."""
    out: list[T] = []
    for found in tuples:
        choices: list[Sequence[Atom] | bool] = []
        for atom in theory.atoms(found):
            if isinstance(atom, Equality) and kinds.get(atom.left) is Kind.NUMBER:
                choices.append(
                    _equal({atom.left: Fraction(1), atom.right: Fraction(-1)}, Fraction(0), atom.equal)
                )
            else:
                choices.append([atom])
        out += _conjunction(theory, choices, [], numbers(kinds))
    return without_subsumed(theory, out, numbers(kinds))


def _conjunction(
    theory: Theory[T],
    choices: Iterable[Sequence[Atom] | bool],
    rest: Iterable[list[T]],
    names: Sequence[str],
) -> list[T]:
    """The tuples in which one atom of each choice, and one tuple of each list of `rest`, hold.

    `names` has the variables that are numbers.
    """
    together: list[Atom] = []  # the atoms without a choice become one tuple at once
    unions = list(rest)
    for choice in choices:
        if choice is False:
            return []
        if choice is True:
            continue
        if len(choice) == 1:
            together += choice
        else:
            unions.append([found for atom in choice if (found := theory.conjunction([atom])) is not None])
    first = theory.conjunction(together)
    out = [] if first is None else [first]
    for tuples in sorted(unions, key=len):
        out = conjoined(theory, IndexedTuples(theory, out, names), tuples)
    return out


def _choices(theory: Theory[Any], comparison: Comparison, kinds: Mapping[str, Kind]) -> Sequence[Atom] | bool:
    """Disjoint atoms of which one holds where the comparison does; True or False without variables."""
    found = _atoms(comparison, kinds)
    if not isinstance(found, bool):
        for atom in found:
            try:
                theory.check(atom)
            except RefusedError as error:
                raise RefusedError(error.what, where=str(comparison.position), hint=error.hint) from None
    return found


def _atoms(comparison: Comparison, kinds: Mapping[str, Kind]) -> Sequence[Atom] | bool:
    left, op, right = comparison.left, comparison.op, comparison.right
    equal = op == "="
    if isinstance(left, str) or isinstance(right, str):
        if isinstance(left, str) and isinstance(right, str):
            return (left == right) is equal
        symbol, other = (left, right) if isinstance(left, str) else (right, left)
        assert isinstance(symbol, str)
        assert not isinstance(other, str)
        assert other.variable  # `see_all` refuses other sums
        return [Equality(other.variable, symbol, True, equal)]
    one, two = left.variable, right.variable
    if op in ("=", "<>") and one and two and kinds.get(one) is not Kind.NUMBER:
        found = equality(one, two, equal)
        return found if isinstance(found, bool) else [found]
    difference = left.plus(right, Fraction(-1))
    if op in ("<", "<="):
        atom = linear(difference.terms.items(), "<" if op == "<" else "<=", -difference.constant)
        return atom if isinstance(atom, bool) else [atom]
    return _equal(difference.terms, -difference.constant, equal)


def _equal(terms: Mapping[str, Fraction], constant: Fraction, equal: bool) -> Sequence[Linear] | bool:
    """`sum = constant`, or without `equal` the two atoms of `sum <> constant`."""
    atom = linear(terms.items(), "=", constant)
    if isinstance(atom, bool):
        return atom is equal
    return [atom] if equal else atom.negated()
