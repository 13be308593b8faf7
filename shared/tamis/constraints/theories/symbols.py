"""Symbols: conjunctions of `=` and `<>` between variables and constants of an infinite domain.

A canonical conjunction is a sorted tuple of atoms: each variable that equals a constant is equated with the
constant, each other variable of a class of equal ones with the first of its class, and inequalities are
between first ones or with constants. Because the domain is infinite, such a conjunction is satisfiable, it
implies no other (in)equality than these, and its projection is its restriction: finitely many `<>` always
leave a value for the variable that is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from tamis.constraints.atoms import Equality

Symbols: TypeAlias = tuple[Equality, ...]
_Term: TypeAlias = tuple[bool, str]  # True and a constant, or False and the name of a variable


def conjunction(atoms: Iterable[Equality]) -> Symbols | None:
    """The canonical form of a conjunction; None if it is unsatisfiable.

    >>> from tamis.constraints.atoms import equality
    >>> found = conjunction([equality("c", "b", True), equality("b", "a", True)])
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


def project(found: Symbols, names: Collection[str]) -> Symbols:
    """The projection on some variables."""
    first: dict[str, str] = {}  # the remaining variable that stands for a class whose first one is dropped
    for atom in found:
        if atom.equal and not atom.constant and atom.left not in names and atom.right in names:
            first.setdefault(atom.left, atom.right)
    out = [atom.renamed(first) for atom in found if not (atom.equal and first.get(atom.left) == atom.right)]
    restricted = conjunction(atom for atom in out if set(atom.names) <= set(names))
    assert restricted is not None  # a part of a satisfiable conjunction is satisfiable
    return restricted


def rename(found: Symbols, names: Mapping[str, str]) -> Symbols:
    """The same conjunction with other names for variables."""
    renamed = conjunction(atom.renamed(names) for atom in found)
    assert renamed is not None  # the new names are distinct
    return renamed


def _order(atom: Equality) -> tuple[bool, str, bool, str]:
    return (not atom.equal, atom.left, atom.constant, atom.right)
