"""Retention of tuples: which ones some definition still needs (`protocol.md`, rule 10).

A tuple is needed while some definition can still combine it with a tuple that is yet to come. That is so
if all of these hold:

- It passes the filter of one of the definition's inputs, and has the definition's version or a later one.
- The frontier of another input is not past the last event time that the bounds allow that input
  (`tamis.evaluation.time_bounds.reaches`).
- If the definition has windows, that frontier is not past the end of the tuple's last window either.

Late tuples that are yet to come don't count: they are joined with what is still stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.time_bounds import UNBOUNDED
from tamis.evaluation.window_rows import last_end
from tamis.expressions.vectors import Mask
from tamis.messaging.records import END_OF_TIME
from tamis.query.model import Window
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.plan.retention_groups import RetentionGroup
from tamis_joiner.core.tuples.filter_bitmaps import (
    Bitmap,
    FilterBitmaps,
    pack_bits,
    unpack_bits,
)
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

NOTHING_RETIRES: Mapping[str, int] = MappingProxyType({})


def needed(
    filters: FilterBitmaps,
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
    any_definition = pack_bits(np.zeros(len(tuples), np.bool_))
    oldest = int(tuples.versions.min()) if len(tuples) else 0
    counts: dict[str, int] = {}
    by_definition: dict[str, Bitmap] = {}
    for group in groups:
        # A copy: for thousands of alerts and a million tuples it has hundreds of MB.
        bits = filters.bitmaps(group.rows)
        bits &= pack_bits(_in_reach(tuples, group, frontiers))
        for version in np.unique(group.versions[group.versions > oldest]).tolist():
            bits[group.versions == version] &= pack_bits(tuples.versions >= version)
        any_definition |= np.bitwise_or.reduce(bits, axis=0)
        group_counts = _count(bits)
        for at, name in enumerate(group.names):
            if name in by_definition:  # the definition joins the topic with itself
                bits[at] |= by_definition[name]
                group_counts[at] = _count(bits[at])
            by_definition[name], counts[name] = bits[at], group_counts[at]
    waiting = {
        name: _count(by_definition[name] & pack_bits(tuples.versions < retiring[name]))
        for name in retiring.keys() & by_definition.keys()
    }
    return unpack_bits(any_definition, len(tuples)), counts, waiting


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


def _count(words: Bitmap) -> Any:
    """The number of bits that are set, along the last axis."""
    return np.bitwise_count(words).sum(axis=-1).tolist()
