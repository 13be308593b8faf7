"""A definition as the joiner evaluates it: with the places where its filters' answers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tamis.planning.plan import Definition


@dataclass(frozen=True)
class Join:
    """A definition, and for each of its inputs the topic and its filter's row in the topic's dispatch."""

    definition: Definition
    inputs: tuple[tuple[str, int], ...]

    @cached_property
    def topics(self) -> frozenset[str]:
        """All that it reads."""
        return frozenset(topic for topic, _ in self.inputs)
