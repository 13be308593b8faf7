"""Retention of tuples: which ones some definition still needs (`protocol.md`, rule 10).

A tuple is needed while some definition can still combine it with a tuple that is yet to come. That is so
if all of these hold:

- It passes the filter of one of the definition's inputs, and has the definition's version or a later one.
- The frontier of another input is not past the last event time that the bounds allow that input
  (`tamis.operators.time_join.time_bounds.reaches`).
- If the definition has windows, that frontier is not past the end of the tuple's last window either.

Late tuples that are yet to come don't count: they are joined with what is still stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.expressions.vectors import Mask
from tamis.messaging.records import END_OF_TIME
from tamis.operators.time_join.time_bounds import UNBOUNDED, last_end
from tamis_joiner.core.compiled_plan import RetentionGroup
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.tuples.filter_bitmaps import Bitmap, PassingTuples
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

NOTHING_RETIRES: Mapping[str, int] = MappingProxyType({})


def needed(
    filters: PassingTuples,
    groups: Sequence[RetentionGroup],
    frontiers: Frontiers,
    retiring: Mapping[str, int] = NOTHING_RETIRES,
) -> tuple[Mask, Mapping[str, int], Mapping[str, int]]:
    """Decide which tuples of a topic are needed.

    `retiring`: for each replaced definition, the version of the plan that replaced it. Returns three results:
    a mask of the needed tuples; for each definition ("alert@version") the number of tuples that it needs; and
    for each replaced definition the number of these that have a version below that plan's.
    """
    tuples = filters.tuples
    any_definition = filters.bitmap(np.zeros(len(tuples), np.bool_))
    oldest = int(tuples.versions.min()) if len(tuples) else 0
    # Definitions that join the topic with itself need the union of their inputs' tuples.
    inputs = Counter(name for group in groups for name in group.names)
    unions = {name: any_definition.copy() for name in inputs if inputs[name] > 1 or name in retiring}
    counts: dict[str, int] = {}
    for group in groups:
        reached = _in_reach(tuples, group, frontiers)
        since = np.maximum(group.versions, oldest)
        for version in np.unique(since).tolist():
            within = filters.bitmap(reached if version == oldest else reached & (tuples.versions >= version))
            at = np.flatnonzero(since == version)
            found = filters.count(group.rows[at], within, any_definition)
            counts |= zip([group.names[one] for one in at], found.tolist(), strict=True)
            for one in at:
                if group.names[one] in unions:
                    filters.count(group.rows[one : one + 1], within, unions[group.names[one]])
    counts |= {name: _count(union) for name, union in unions.items()}
    waiting = {
        name: _count(unions[name] & filters.bitmap(tuples.versions < retiring[name]))
        for name in retiring.keys() & unions.keys()
    }
    return filters.unpack(any_definition), counts, waiting


def _in_reach(tuples: StoredTuples, group: RetentionGroup, frontiers: Frontiers) -> Mask:
    """The tuples that can still be joined with a tuple that is yet to come, decided by keys and times
    alone.
    """
    found = np.zeros(len(tuples), np.bool_)
    for topic, most in group.reach:
        frontier = frontiers.of(topic)
        if most < UNBOUNDED:
            found |= _latest(group.window, tuples.times, most) >= frontier
        elif frontier < END_OF_TIME:
            found[:] = True
    return found & (tuples.keys >= 0)


def _latest(window: Window | None, times: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The latest event time of a partner for each of `times`: `most` later, or the end of the last window."""
    if window is None:
        return times + most
    return np.minimum(times + most, last_end(window, times) - 1)


def _count(words: Bitmap) -> int:
    """The number of bits that are set."""
    return int(np.bitwise_count(words).sum())
