"""Equivalence classes of attributes that key equalities connect."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.expressions.nodes import Column

Equality = tuple[Column, Column]


def classes(equalities: Iterable[Equality]) -> list[list[Column]]:
    """The equivalence classes of attributes that equalities connect, in the order of the text."""
    found: list[list[Column]] = []
    for pair in equalities:
        connected = [group for group in found if pair[0] in group or pair[1] in group]
        merged = [c for group in connected for c in group]
        merged += [c for c in pair if c not in merged]
        at = found.index(connected[0]) if connected else len(found)
        found = [group for group in found if group not in connected]
        found.insert(at, merged)
    return found
