"""Disjunctive normal form: a formula as the tuples of a theory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from tamis.constraints.atoms import Atom, Equality, Linear, equality, linear
from tamis.constraints.formula import All, Comparison, Formula, comparisons
from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.kinds import Kind, KindInference
from tamis.constraints.theory import Theory
from tamis.constraints.tuple_sets import conjoined, without_subsumed
from tamis.errors import RefusedError

T = TypeVar("T", bound=Hashable)


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
    """The same tuples after more kinds have become known: numbers are compared by linear atoms."""
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
