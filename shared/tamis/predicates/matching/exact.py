"""Exact matching (kuntschke-2006, section 3.5, Algorithm 11: split depth first)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box, covered, inside


def exact(
    stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
) -> tuple[Box, ...] | None:
    """See `tamis.predicates.matching.METHODS`. A box that isn't covered is added whole: overlap costs little,
    more boxes cost much (section 3.5).
    """
    relaxed = list(stream)
    for box in query:
        if not implied(box, relaxed):
            relaxed = [other for other in relaxed if not inside(other, box)] + [box]
    return None if tuple(relaxed) == stream else tuple(relaxed)


def implied(box: Box, by: Sequence[Box]) -> bool:
    """Whether the union of `by` holds all of `box`; single boxes are looked at first (Algorithm 1)."""
    return any(inside(box, other) for other in by) or covered(box, by)
