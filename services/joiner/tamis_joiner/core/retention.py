"""Which tuples a plan still needs: `protocol.md`, rule 10.

A tuple is needed while some definition can still combine it with a tuple that is yet to come: it passes the
filter of one of the definition's inputs and has its version, and the frontier of another input is not past
the last time that the bounds allow that input (`tamis.evaluation.time_bounds.reaches`), nor past the end of
the tuple's last window where the definition has windows. Late tuples don't count: they are joined with what
there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.temporal_join import passing
from tamis.evaluation.time_bounds import UNBOUNDED, reaches
from tamis.evaluation.window_rows import last_end
from tamis.expressions.vectors import Mask
from tamis.messaging.records import END_OF_TIME
from tamis.planning.plan import Definition, Input, Plan
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.live import Live

SECOND = 1_000_000

# A slice should hold a small part of what is live, so that a batch rewrites little; not so small that there
# are hundreds of them to name.
SLICES = 8


@dataclass(frozen=True)
class Use:
    """One input of one definition. `reach` is (partner's topic, microseconds), as in `reaches`."""

    definition: Definition
    source: Input
    reach: tuple[tuple[str, int], ...]


def uses(plan: Plan) -> dict[str, list[Use]]:
    """By topic, the inputs for which its tuples may have to be kept."""
    found: dict[str, list[Use]] = {}
    for definition in plan.definitions:
        for source, reach in zip(definition.inputs, reaches(definition), strict=True):
            if reach:
                named = tuple((definition.inputs[j].topic, most) for j, most in reach)
                found.setdefault(source.topic, []).append(Use(definition, source, named))
    return found


def slice_width(uses_of_topic: list[Use]) -> int:
    """The width of a topic's time slices in microseconds, from how long its tuples live."""
    longest = max(
        (abs(most) for use in uses_of_topic for _, most in use.reach if most < UNBOUNDED), default=0
    )
    return max(SECOND, 2 * longest // SLICES)


def _latest(definition: Definition, times: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The last event time at which tuples of `times` can still meet one, which may be `most` behind them."""
    if definition.window is None:
        return times + most
    return np.minimum(times + most, last_end(definition.window, times) - 1)


def needed(live: Live, uses_of_topic: list[Use], frontiers: Frontiers) -> tuple[Mask, dict[str, Mask]]:
    """Which tuples some definition needs, and which each does, by "alert@version"."""
    by_definition: dict[str, Mask] = {}
    for use in uses_of_topic:
        within = np.zeros(len(live), np.bool_)
        for topic, most in use.reach:
            frontier = frontiers.of(topic)
            if most < UNBOUNDED:
                within |= _latest(use.definition, live.times, most) >= frontier
            elif frontier < END_OF_TIME:
                within[:] = True
        if within.any():
            within &= passing(use.definition, use.source, live)
        name = f"{use.definition.alert}@{use.definition.version}"
        by_definition[name] = by_definition[name] | within if name in by_definition else within
    every = np.zeros(len(live), np.bool_)
    for mask in by_definition.values():
        every |= mask
    return every, by_definition
