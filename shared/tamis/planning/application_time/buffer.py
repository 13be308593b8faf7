"""How many tuples wait for the watermarks of all streams: they are taken in order of time.

A tuple of S waits while the watermark of some stream p has not passed it. That is at most `delay(p) +
max_stall(p)` behind the present (see `tamis.planning.bounds`), and S at most `max_ahead(S)` before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.bounded.application_time.arrivals import Arrival
from tamis.bounded.bound import Factor, Term
from tamis.planning.application_time.timed import rate_of
from tamis.planning.spans import seconds
from tamis.query.model import StreamDef


def buffered(streams: Iterable[StreamDef]) -> tuple[Term, ...]:
    """A term for each stream with event time."""
    timed = [stream for stream in streams if stream.time is not None]
    wait = max((stream.delay + stream.max_stall for stream in timed), default=0)
    found = []
    for stream in timed:
        span = wait + (stream.max_ahead or 0)
        count = Arrival(1, None, rate_of(stream)).most(span)
        found.append(
            Term(
                f"{stream.name} that wait for watermarks", (Factor(count, f"tuples within {seconds(span)}"),)
            )
        )
    return tuple(found)
