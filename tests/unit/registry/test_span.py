"""The longest time between two tuples of one combination of a definition."""

from __future__ import annotations

import pytest

from tamis.plan.model import Definition, Input, TimeBound
from tamis_registry.core.plan.retirement import span


def definition(*bounds: TimeBound, aliases: str = "abc") -> Definition:
    inputs = tuple(Input(alias, alias, f"tamis.stream.{alias}.1", "ts", (), None, 0) for alias in aliases)
    return Definition("q", 1, inputs, (), bounds, None, ())


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([("a", "b", -5, 3), ("b", "c", 0, 7)], 10),  # c.ts - a.ts is at least -3 - 7, and at most 5
        ([("a", "b", -5, 3), ("b", "c", 0, 7), ("a", "c", -2, 2)], 7),
        ([("a", "b", -5, 3)], None),
        ([("a", "b", -5, 3), ("b", "c", 0, None)], None),
        ([("a", "b", 5, 6), ("b", "c", 5, 6), ("a", "c", 0, 1)], 0),  # nothing ever joins
    ],
)
def test_the_longest_path_between_two_inputs(
    bounds: list[tuple[str, str, int | None, int | None]], expected: int | None
) -> None:
    assert span(definition(*(TimeBound(*bound) for bound in bounds))) == expected


def test_a_single_input_has_no_span() -> None:
    assert span(definition(aliases="a")) == 0
