"""Exact matching (kuntschke-2006, section 3.5, Algorithm 4) by any strategy of splitting."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tamis.expressions.nodes import Type
from tamis.predicates.boxes import Box, inside
from tamis.predicates.cover import Strategy, covered


def exact(strategy: Strategy, check: bool) -> Callable[..., tuple[Box, ...] | None]:
    """The method of `tamis.predicates.matching.METHODS` by a strategy, with or without the quick check first.

    A box of the query that isn't covered is added whole: overlap costs little, more boxes cost much
    (section 3.5). Boxes of the stream that it holds go.
    """

    def method(
        stream: tuple[Box, ...], query: tuple[Box, ...], types: Mapping[str, Type]
    ) -> tuple[Box, ...] | None:
        relaxed = list(stream)
        for box in query:
            if not covered(box, relaxed, strategy, check):
                relaxed = [other for other in relaxed if not inside(other, box)] + [box]
        return None if tuple(relaxed) == stream else tuple(relaxed)

    return method
