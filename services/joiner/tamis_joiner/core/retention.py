"""Which tuples a plan still needs: `protocol.md`, rule 10.

A tuple is needed while some definition can still combine it with a tuple that is yet to come: it passes the
filter of one of the definition's inputs and has its version, and the frontier of another input is not past
the last time that the bounds allow that input (`tamis.evaluation.time_bounds.reaches`), nor past the end of
the tuple's last window where the definition has windows. Late tuples don't count: they are joined with what
there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.time_bounds import UNBOUNDED, reaches
from tamis.evaluation.window_rows import last_end
from tamis.expressions.vectors import Mask
from tamis.messaging.records import END_OF_TIME
from tamis.query.model import Window
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.join import Join
from tamis_joiner.core.live import Live
from tamis_joiner.core.passed import Passed, Words, packed, unpacked

SECOND = 1_000_000

# A slice should hold a small part of what is live, so that a batch rewrites little; not so small that there
# are hundreds of them to name.
SLICES = 8


# (partner's topic, microseconds), as in `time_bounds.reaches`, and the windows of a definition.
Reaching = tuple[tuple[tuple[str, int], ...], Window | None]


@dataclass(frozen=True)
class Uses:
    """Inputs of definitions, over one topic, that need a tuple equally long. `names`: "alert@version";
    `versions`: of the definitions; `rows`: of the inputs' filters in the topic's dispatch; all of one length.
    """

    reach: tuple[tuple[str, int], ...]
    window: Window | None
    names: tuple[str, ...]
    versions: NDArray[np.int64]
    rows: NDArray[np.int64]


def uses(joins: Iterable[Join]) -> dict[str, list[Uses]]:
    """By topic, the inputs for which its tuples may have to be kept."""
    found: dict[str, dict[Reaching, list[tuple[str, int, int]]]] = {}
    for join in joins:
        definition = join.definition
        name = f"{definition.alert}@{definition.version}"
        for (topic, row), reach in zip(join.inputs, reaches(definition), strict=True):
            if reach:
                named = tuple((join.inputs[j][0], most) for j, most in reach)
                group = found.setdefault(topic, {}).setdefault((named, definition.window), [])
                group.append((name, definition.version, row))
    return {
        topic: [
            Uses(
                reach,
                window,
                tuple(name for name, _, _ in group),
                np.array([version for _, version, _ in group], np.int64),
                np.array([place for _, _, place in group], np.int64),
            )
            for (reach, window), group in groups.items()
        ]
        for topic, groups in found.items()
    }


def slice_width(uses_of_topic: Sequence[Uses]) -> int:
    """The width of a topic's time slices in microseconds, from how long its tuples live."""
    longest = max(
        (abs(most) for use in uses_of_topic for _, most in use.reach if most < UNBOUNDED), default=0
    )
    return max(SECOND, 2 * longest // SLICES)


def needed(
    passed: Passed, uses_of_topic: Sequence[Uses], frontiers: Frontiers
) -> tuple[Mask, Mapping[str, int]]:
    """Which tuples some definition needs, and how many each does, by "alert@version"."""
    live = passed.live
    every = packed(np.zeros(len(live), np.bool_))
    oldest = int(live.versions.min()) if len(live) else 0
    counts: dict[str, int] = {}
    tuples_of: dict[str, Words] = {}
    for group in uses_of_topic:
        bits = passed.words(group.rows)  # a copy, of thousands of alerts and a million tuples hundreds of MB
        bits &= packed(_within(live, group, frontiers))
        for version in np.unique(group.versions[group.versions > oldest]).tolist():
            bits[group.versions == version] &= packed(live.versions >= version)
        every |= np.bitwise_or.reduce(bits, axis=0)
        several = _count(bits)
        for at, name in enumerate(group.names):
            if name in tuples_of:  # a stream that is joined with itself
                bits[at] |= tuples_of[name]
                several[at] = _count(bits[at])
            tuples_of[name], counts[name] = bits[at], several[at]
    return unpacked(every, len(live)), counts


def _within(live: Live, group: Uses, frontiers: Frontiers) -> Mask:
    """Which tuples can still meet one that is yet to come, as far as keys and times go."""
    within = np.zeros(len(live), np.bool_)
    for topic, most in group.reach:
        frontier = frontiers.of(topic)
        if most < UNBOUNDED:
            within |= _latest(group.window, live.times, most) >= frontier
        elif frontier < END_OF_TIME:
            within[:] = True
    return within & (live.keys >= 0)


def _latest(window: Window | None, times: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The last event time at which tuples of `times` can still meet one, which may be `most` behind them."""
    if window is None:
        return times + most
    return np.minimum(times + most, last_end(window, times) - 1)


def _count(words: Words) -> Any:
    """How many bits are set, along the last axis."""
    return np.bitwise_count(words).sum(axis=-1).tolist()
