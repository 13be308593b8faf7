"""Operations on sets of tuples: conjunction, difference, and removal of tuples that others contain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.theory import Theory
from tamis.errors import RefusedError

T = TypeVar("T", bound=Hashable)

# Tuples of one relation: more take minutes in each operation, and nobody reads them.
MOST_TUPLES = 10_000
# Pairs of tuples that one operation conjoins: about a minute.
MOST_PAIRS = 2_000_000
# Pairs of tuples that are compared to find tuples that others contain. The search is optional: seconds.
MOST_COMPARED = 200_000


def conjoined(theory: Theory[T], ones: IndexedTuples[T], others: Sequence[T]) -> list[T]:
    """The points of both sets. Raises `RefusedError` for too many tuples."""
    found: dict[T, None] = {}
    pairs = 0
    for other, candidates in ones.meeting(others):
        pairs += len(candidates)
        if pairs > MOST_PAIRS:
            raise _too_many(f"more than {MOST_PAIRS} pairs of tuples")
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
    for one, candidates in others.meeting(ones):
        parts = [one]
        for other in candidates:
            parts = [part for before in parts for part in _tuple_difference(theory, before, other)]
            check_count(len(out) + len(parts))
            if not parts:
                break
        out |= dict.fromkeys(parts)
    return without_subsumed(theory, out, others.names)


def disjoint(theory: Theory[T], tuples: Sequence[T]) -> list[T]:
    """Tuples with the same union of which no two have a point in common.

    Raises `RefusedError` for too many tuples.
    """
    out: list[T] = []
    for found in tuples:
        out += difference(theory, [found], IndexedTuples(theory, out, ()))
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
        raise _too_many(f"more than {MOST_TUPLES} tuples")


def _tuple_difference(theory: Theory[T], one: T, other: T) -> list[T]:
    """The points of one tuple that aren't in another, as disjoint tuples (goldin-1997, Definition 14).

    Each atom of `other` splits `one` in the part where the atom fails, which belongs to the difference, and
    the part where the atom holds, which the next atom splits.
    """
    if theory.conjoin(one, other) is None:
        return [one]
    parts: list[T] = []
    rest = one
    for atom in theory.atoms(other):
        for negation in atom.negated():
            outside = theory.conjunction([negation])
            part = None if outside is None else theory.conjoin(rest, outside)
            if part is not None:
                parts.append(part)
        inside = theory.conjunction([atom])
        both = None if inside is None else theory.conjoin(rest, inside)
        assert both is not None  # the two tuples have a point in common
        rest = both
    return parts


def _too_many(what: str) -> RefusedError:
    return RefusedError(f"the result has {what}", hint="split the relation, or simplify its constraints")
