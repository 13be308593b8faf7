"""When the registry takes up what edges tell of their readings: as a query comes, and where it is news.

Estimates decide where a new query is served, and only there; who has a place keeps it. They are durable, so
that a restart decides like the process before it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tamis.planning.remembered import Remembered
from tamis.planning.traffic import Estimate
from tamis.predicates.selectivity import Observed
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State

# The greatest difference of two shares below one value that chance explains: twice what two samples of 512
# rows differ by once in twenty times.
CHANCE = 0.17

_NEWS = Remembered[bool](1_000)


def take_up(draft: State, seen: Seen) -> None:
    """Take up estimates of streams whose readings aren't as they were."""
    for stream in draft.catalog.streams.keys() & seen.sketches.keys():
        new, known = seen.estimate(stream), draft.estimates.get(stream)
        if new is not None and _NEWS.get((known, new), None, partial(news, known, new)):
            draft.estimates[stream] = new


def news(known: Estimate | None, new: Estimate) -> bool:
    """Whether some attribute is spread otherwise than was known."""
    if known is None or known.attributes.keys() != new.attributes.keys():
        return True
    return any(distance(known.attributes[name], found) > CHANCE for name, found in new.attributes.items())


def distance(one: Observed, other: Observed) -> float:
    """The greatest difference of shares below any value (Kolmogorov's), or of NULLs."""
    shares = []
    ends = np.unique(np.concatenate([np.asarray(o.values, np.float64) for o in (one, other)]))
    for observed in (one, other):
        count = max(len(observed.values), 1)
        below = np.searchsorted(np.asarray(observed.values, np.float64), ends, "right") / count
        shares.append(observed.null + (1 - observed.null) * below)
    nulls = abs(one.null - other.null)
    return max(nulls, float(np.abs(shares[0] - shares[1]).max(initial=0.0)))
