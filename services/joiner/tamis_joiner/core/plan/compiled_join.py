"""A definition of the plan with its topics and compiled filters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tamis.plan.model import Definition


@dataclass(frozen=True)
class CompiledJoin:
    """A definition. For each of its inputs, `inputs` has the topic and the row of the input's filter among
    the topic's compiled filters.
    """

    definition: Definition
    inputs: tuple[tuple[str, int], ...]

    @cached_property
    def name(self) -> str:
        """The definition's name in plans and frontier records."""
        return f"{self.definition.alert}@{self.definition.version}"

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics that it reads."""
        return frozenset(topic for topic, _ in self.inputs)
