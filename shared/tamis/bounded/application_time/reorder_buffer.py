"""The reorder buffer: tuples that wait until the watermarks of all streams have passed them.

The evaluator needs tuples in order of event time. So a tuple of a stream S waits until the watermark of every
stream p has passed it. The watermark of p is at most `delay(p) + max_stall(p)` behind the present (see
`tamis.planning.join_bounds`), and the tuple is at most `max_ahead(S)` ahead of the present. The number of
waiting tuples follows from this span and from the declared rate. If S has no `max_ahead`, there is no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tamis.bounded.application_time.arrivals import Arrival
from tamis.bounded.application_time.translate import rate_of
from tamis.bounded.conjunctive.bound import Factor, Term
from tamis.durations import seconds
from tamis.query.model import StreamDef


def reorder_buffer_terms(streams: Iterable[StreamDef]) -> tuple[Term, ...]:
    """A summand of the bound for each stream with event time."""
    timed = [stream for stream in streams if stream.time is not None]
    wait = max((stream.delay + stream.max_stall for stream in timed), default=0)
    found = []
    for stream in timed:
        if stream.max_ahead is None:
            count, within = math.inf, f"{seconds(wait)} + max_ahead({stream.name})"
        else:
            span = wait + stream.max_ahead
            count, within = Arrival(1, rate=rate_of(stream)).most_tuples(span), seconds(span)
        found.append(
            Term(f"{stream.name} that wait for watermarks", (Factor(count, f"tuples within {within}"),))
        )
    return tuple(found)
