"""Operations on sets of tuples: conjunction, difference, and removal of tuples that others contain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.theory import Theory
from tamis.errors import RefusedError

T = TypeVar("T", bound=Hashable)

# Tuples of one relation: more take minutes in each operation, and nobody reads them.
MOST_TUPLES = 10_000
# Pairs of tuples that one operation conjoins: about half a minute.
MOST_PAIRS = 1_000_000
# Pairs of tuples that are compared to find tuples that others contain. The search is optional: seconds.
MOST_COMPARED = 200_000
_SMALLER = "split the relation, or simplify its constraints"


def conjoined(theory: Theory[T], ones: IndexedTuples[T], others: Sequence[T]) -> list[T]:
    """The points of both sets. Raises `RefusedError` for too many tuples."""
    found: dict[T, None] = {}
    for other, candidates in _meeting(ones, others):
        for one in candidates:
            both = theory.conjoin(one, other)
            if both is not None:
                found[both] = None
        check_count(len(found))
    return without_subsumed(theory, found, ones.names)


def difference(theory: Theory[T], ones: Sequence[T], others: IndexedTuples[T]) -> list[T]:
    """The points of the first set that aren't in the second one. The parts of each tuple are disjoint.

    Raises `RefusedError` for too many tuples.
    """
    out: dict[T, None] = {}
    subtract = _Subtraction(theory)
    for one, candidates in _meeting(others, ones):
        out |= dict.fromkeys(subtract(one, candidates))
        check_count(len(out))
    return without_subsumed(theory, out, others.names)


def covered(theory: Theory[T], ones: Sequence[T], others: IndexedTuples[T]) -> bool:
    """Tell if all points of the first set are in the second one.

    Raises `RefusedError` for too many tuples.
    """
    subtract = _Subtraction(theory)
    return not any(subtract(one, candidates) for one, candidates in others.meeting(ones))


def disjoint(theory: Theory[T], tuples: IndexedTuples[T]) -> list[T]:
    """Tuples with the same union of which no two have a point in common.

    Raises `RefusedError` for too many tuples.
    """
    out: list[T] = []
    places: dict[T, int] = {}
    for place, found in enumerate(tuples.tuples):
        places.setdefault(found, place)
    subtract = _Subtraction(theory)
    for place, (found, candidates) in enumerate(tuples.meeting(tuples.tuples)):
        out += subtract(found, [each for each in candidates if places[each] < place])
        check_count(len(out))
    return out


def without_subsumed(theory: Theory[T], tuples: Iterable[T], names: Iterable[str]) -> list[T]:
    """The tuples that no other one contains, in order. `names` has the variables that may be indexed.

    If too many tuples meet, only equal ones are dropped. Raises `RefusedError` for too many tuples.
    """
    places: dict[T, int] = {}
    for found in tuples:
        places.setdefault(found, len(places))
    check_count(len(places))
    distinct = list(places)
    kept: list[T] = []
    compared = 0
    for found, candidates in IndexedTuples(theory, distinct, names).meeting(distinct):
        compared += len(candidates)
        if compared > MOST_COMPARED:
            return distinct
        if not any(
            # Of tuples with the same points, which a theory may write in several ways, the first one stays.
            theory.implies(found, other)
            and (places[other] < places[found] or not theory.implies(other, found))
            for other in candidates
            if other is not found
        ):
            kept.append(found)
    return kept


def check_count(count: int) -> None:
    """Raises `RefusedError` for too many tuples."""
    if count > MOST_TUPLES:
        raise RefusedError(f"the result has more than {MOST_TUPLES} tuples", hint=_SMALLER)


def _check_pairs(count: int) -> None:
    if count > MOST_PAIRS:
        raise RefusedError(f"the operation combines more than {MOST_PAIRS} pairs of tuples", hint=_SMALLER)


def _meeting(indexed: IndexedTuples[T], others: Iterable[T]) -> list[tuple[T, Sequence[T]]]:
    """All pairs of tuples that may meet, by the other one. Too many are refused before any work is done."""
    pairs = 0
    out: list[tuple[T, Sequence[T]]] = []
    for other, candidates in indexed.meeting(list(others)):
        pairs += len(candidates)
        _check_pairs(pairs)
        out.append((other, candidates))
    return out


class _Subtraction(Generic[T]):
    """Subtraction of tuples from a tuple, in disjoint parts (goldin-1997, Definition 14).

    Each atom of the subtrahend splits the minuend in the part where the atom fails, which belongs to the
    difference, and the part where the atom holds, which the next atom splits.
    """

    def __init__(self, theory: Theory[T]) -> None:
        self._theory = theory
        self._splits: dict[T, list[tuple[T, list[T]]]] = {}
        self._pairs = 0

    def __call__(self, one: T, others: Iterable[T]) -> list[T]:
        parts = [one]
        for other in others:
            self._pairs += len(parts)
            _check_pairs(self._pairs)
            parts = [part for before in parts for part in self._without(before, other)]
            check_count(len(parts))
            if not parts:
                break
        return parts

    def _without(self, one: T, other: T) -> list[T]:
        conjoin = self._theory.conjoin
        if conjoin(one, other) is None:
            return [one]
        parts: list[T] = []
        rest = one
        for inside, outsides in self._atoms(other):
            parts += [part for outside in outsides if (part := conjoin(rest, outside)) is not None]
            both = conjoin(rest, inside)
            assert both is not None  # the two tuples have a point in common
            rest = both
        return parts

    def _atoms(self, other: T) -> list[tuple[T, list[T]]]:
        """Each atom of a tuple, and its negations, as tuples."""
        if other not in self._splits:
            self._splits[other] = [
                (
                    inside,
                    [
                        found
                        for each in atom.negated()
                        if (found := self._theory.conjunction([each])) is not None
                    ],
                )
                for atom in self._theory.atoms(other)
                if (inside := self._theory.conjunction([atom])) is not None
            ]
        return self._splits[other]
