"""Alignment of the shards that read history, so that no stream runs far ahead of the others in event time.

Sources deliver years of readings as fast as the edge takes them, and not equally fast. The joiner keeps the
tuples of a stream until the others have come as far. The bound of a query's memory allows for a lead of
`max_stall`. A shard that is further ahead of another shard of the same alert therefore waits for it. A
micro-batch can pass this limit, and shards of other edges aren't known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tamis.query.backfill import Backfill


class Reader(NamedTuple):
    """A shard of a backfill stream that reads. `high`: the greatest event time that it has read, -1 before
    the first reading; `max_stall`: of its stream, microseconds. `going`: its source has more readings.
    """

    shard: str
    stream: str
    high: int
    max_stall: int
    going: bool


def too_far_ahead(readers: Iterable[Reader]) -> set[str]:
    """The shards that have to wait for others.

    >>> hour = 3_600_000_000
    >>> slow = Reader("a", "air-backfill-7", 0, hour, True)
    >>> fast = Reader("b", "surface-backfill-7", 2 * hour, hour, True)
    >>> too_far_ahead([slow, fast]), too_far_ahead([slow._replace(going=False), fast])
    ({'b'}, set())
    """
    groups: dict[int, list[Reader]] = {}
    for one in readers:
        found = Backfill.named(one.stream)
        if found is not None:
            groups.setdefault(found.version, []).append(one)
    waiting = set()
    for group in groups.values():
        least = min((one.high for one in group if one.going), default=None)
        if least is not None:
            lead = min(one.max_stall for one in group)
            waiting |= {one.shard for one in group if one.high - least > lead}
    return waiting
