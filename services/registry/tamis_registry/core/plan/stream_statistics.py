"""Adoption of stream statistics.

New statistics are adopted only when a query is added, and only if they differ from the present ones.

Statistics are used only to choose the topic of a new query; a query keeps its topic. They are durable, so
that a restarted registry makes the same choices as before.
"""

from __future__ import annotations

import numpy as np

from tamis.predicates.selectivity import Observed
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import State

# Two samples of 512 rows of one distribution differ by more than half of this only once in twenty times.
CHANCE = 0.17


def take_up(draft: State, seen: FleetReports) -> None:
    """Adopt the statistics of streams whose readings have changed."""
    for stream in draft.catalog.streams.keys() & seen.sketches.keys():
        new, known = seen.statistics(stream), draft.statistics.get(stream)
        if new is not None and _differ(stream, known, new, seen):
            draft.statistics[stream] = new


def _differ(stream: str, known: StreamStatistics | None, new: StreamStatistics, seen: FleetReports) -> bool:
    """`news`, cached for the same statistics, because it is called for every new query."""
    last = seen.compared.get(stream)
    if last is None or last[0] is not known or last[1] is not new:
        last = seen.compared[stream] = known, new, news(known, new)
    return last[2]


def news(known: StreamStatistics | None, new: StreamStatistics) -> bool:
    """True if the distribution of some attribute differs by more than can be chance."""
    if known is None or known.attributes.keys() != new.attributes.keys():
        return True
    return any(distance(known.attributes[name], found) > CHANCE for name, found in new.attributes.items())


def distance(one: Observed, other: Observed) -> float:
    """The Kolmogorov distance of two distributions, or the difference of their NULL shares if that is
    greater.
    """
    shares = []
    ends = np.unique(np.concatenate([np.asarray(o.values, np.float64) for o in (one, other)]))
    for observed in (one, other):
        count = max(len(observed.values), 1)
        below = np.searchsorted(np.asarray(observed.values, np.float64), ends, "right") / count
        shares.append(observed.null + (1 - observed.null) * below)
    nulls = abs(one.null - other.null)
    return max(nulls, float(np.abs(shares[0] - shares[1]).max(initial=0.0)))
