"""Groups of join inputs that need the tuples of a topic for the same time.

Tuples are checked once for each group instead of once for each input, because many alerts have the same
bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.time_bounds import UNBOUNDED, reaches
from tamis.query.model import Window
from tamis_joiner.core.plan.compiled_join import CompiledJoin

SECOND = 1_000_000

# A batch rewrites the slices that it adds tuples to, so a slice should hold a small part of a topic's tuples.
# More slices than these would make the index in `meta` long.
SLICES = 8

# (partner's topic, microseconds) as in `time_bounds.reaches`, and the windows of a definition.
_Reach = tuple[tuple[tuple[str, int], ...], Window | None]


@dataclass(frozen=True)
class RetentionGroup:
    """Inputs of definitions over one topic that need a tuple for the same time.

    `reach` has (partner's topic, microseconds): a tuple is needed until the partner's frontier is that far
    past it. `names` ("alert@version"), `versions` and `rows` are parallel: the definitions, and the rows of
    the inputs' filters in the topic's dispatch.
    """

    reach: tuple[tuple[str, int], ...]
    window: Window | None
    names: tuple[str, ...]
    versions: NDArray[np.int64]
    rows: NDArray[np.int64]


def retention_groups(joins: Iterable[CompiledJoin]) -> dict[str, list[RetentionGroup]]:
    """By topic, the groups of the inputs that may need its tuples later."""
    found: dict[str, dict[_Reach, list[tuple[str, int, int]]]] = {}
    for join in joins:
        definition = join.definition
        for (topic, row), reach in zip(join.inputs, reaches(definition), strict=True):
            if reach:
                by_topic = tuple((join.inputs[partner][0], most) for partner, most in reach)
                group = found.setdefault(topic, {}).setdefault((by_topic, definition.window), [])
                group.append((join.name, definition.version, row))
    return {
        topic: [
            RetentionGroup(
                reach,
                window,
                tuple(name for name, _, _ in group),
                np.array([version for _, version, _ in group], np.int64),
                np.array([row for _, _, row in group], np.int64),
            )
            for (reach, window), group in groups.items()
        ]
        for topic, groups in found.items()
    }


def slice_width(groups: Sequence[RetentionGroup]) -> int:
    """The width of a topic's time slices in microseconds, from how long its tuples are needed."""
    longest = max((abs(most) for group in groups for _, most in group.reach if most < UNBOUNDED), default=0)
    return max(SECOND, 2 * longest // SLICES)
