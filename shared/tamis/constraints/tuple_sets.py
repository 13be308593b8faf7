"""Operations on sets of tuples: conjunction, difference, and removal of tuples that others contain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from tamis.constraints.theory import Theory
from tamis.errors import RefusedError

T = TypeVar("T", bound=Hashable)

# Tuples of one relation: more take minutes in each operation, and nobody reads them.
MOST_TUPLES = 10_000
# Pairs of tuples that one operation conjoins: about a minute.
MOST_PAIRS = 2_000_000
# Sets up to this size are searched for tuples that others contain. The search is quadratic and optional.
MOST_SEARCHED = 300


def conjoined(theory: Theory[T], ones: Sequence[T], others: Sequence[T]) -> list[T]:
    """The points of both sets. Raises `RefusedError` for too many tuples."""
    if len(ones) * len(others) > MOST_PAIRS:
        raise _too_many(f"{len(ones)} × {len(others)} pairs of tuples, more than {MOST_PAIRS}")
    found: dict[T, None] = {}
    for one in ones:
        for other in others:
            both = theory.conjoin(one, other)
            if both is not None:
                found[both] = None
        check_count(len(found))
    return without_subsumed(theory, found)


def difference(theory: Theory[T], ones: Iterable[T], others: Sequence[T]) -> list[T]:
    """The points of the first set that aren't in the second one. The parts of each tuple are disjoint.

    Raises `RefusedError` for too many tuples.
    """
    out: dict[T, None] = {}
    for one in ones:
        parts = [one]
        for other in others:
            parts = [part for before in parts for part in _tuple_difference(theory, before, other)]
            check_count(len(out) + len(parts))
            if not parts:
                break
        out |= dict.fromkeys(parts)
    return list(out)


def disjoint(theory: Theory[T], tuples: Sequence[T]) -> list[T]:
    """Tuples with the same union of which no two have a point in common.

    Raises `RefusedError` for too many tuples.
    """
    out: list[T] = []
    for found in tuples:
        out += difference(theory, [found], out)
        check_count(len(out))
    return out


def without_subsumed(theory: Theory[T], tuples: Iterable[T]) -> list[T]:
    """The tuples that no other one contains, in order; of a large set only those that no other one equals.

    Raises `RefusedError` for too many tuples.
    """
    kept = list(dict.fromkeys(tuples))
    check_count(len(kept))
    if len(kept) > MOST_SEARCHED:
        return kept
    candidates, kept = kept, []
    for found in candidates:
        if not any(theory.implies(found, other) for other in kept):
            kept = [other for other in kept if not theory.implies(other, found)]
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
