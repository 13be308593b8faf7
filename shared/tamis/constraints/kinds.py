"""Kinds of variables, number or symbol, inferred from how the variables are used.

`<` and `<=`, arithmetic and a number make a variable a number; a string makes it a symbol; variables that are
compared by `=` or `<>` have the same kind. A variable may remain without a kind, as in `x = y`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from tamis.constraints.atoms import Atom, Equality
from tamis.constraints.formula import Comparison
from tamis.errors import Position, RefusedError


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
