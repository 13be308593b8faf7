"""Rates and growth of the counts of shards by decision, from their acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tamis.messaging.records import Ack

# A rate is an average over one to two such spans, in microseconds of the edge's clock.
SPAN = 10_000_000
# What is told as recent happened within one to two of these.
RECENT_SPAN = 300_000_000
# Over less than this, single batches would decide on a rate.
LEAST_SPAN = 1_000_000
_SECOND = 1_000_000


@dataclass(frozen=True)
class _Counted:
    time: int
    tuples: Mapping[str, int]


@dataclass(frozen=True)
class Growth:
    """Tuples by decision that were added within some time, in microseconds."""

    span: int
    tuples: Mapping[str, int]


class Rates:
    """Counts of shards at three moments: two that are at least a span apart, and the last one."""

    def __init__(self, span: int = SPAN) -> None:
        self._span = span
        self._known: dict[str, tuple[_Counted, _Counted, _Counted]] = {}

    def hear(self, ack: Ack) -> None:
        """Take a shard's acknowledgement. One without counts, as of an older edge, forgets the shard."""
        if ack.tuples is None:
            self._known.pop(ack.shard, None)
            return
        new = _Counted(ack.time, ack.tuples)
        first, second, last = self._known.get(ack.shard, (new, new, new))
        if new.time < last.time or any(new.tuples.get(name, 0) < n for name, n in last.tuples.items()):
            # The edge has restarted, or the shard has moved.
            first = second = new
        elif new.time - second.time >= self._span:
            first, second = second, new
        self._known[ack.shard] = first, second, new

    def growth(self, shard: str) -> Growth | None:
        """The tuples that were added within the last one to two spans; None if they are not known."""
        if shard not in self._known:
            return None
        first, _, last = self._known[shard]
        added = {name: n - first.tuples.get(name, 0) for name, n in last.tuples.items()}
        return Growth(last.time - first.time, added)

    def of(self, shard: str) -> dict[str, float] | None:
        """Tuples a second by decision; None if they are not known yet."""
        found = self.growth(shard)
        if found is None or found.span < LEAST_SPAN:
            return None
        return {name: n * _SECOND / found.span for name, n in found.tuples.items()}


def total(each: Iterable[Mapping[str, float] | None]) -> dict[str, float] | None:
    """The sum by decision over those that are known; None if none is known.

    >>> total([{"late": 1.0}, None, {"late": 2.0, "dead": 0.5}])
    {'late': 3.0, 'dead': 0.5}
    """
    found: dict[str, float] = {}
    known = [one for one in each if one is not None]
    for one in known:
        for name, amount in one.items():
            found[name] = found.get(name, 0) + amount
    return found if known else None


def retained_share(tuples: Mapping[str, float] | None) -> float | None:
    """The share of usable tuples that edges published, late ones among them; None without tuples.

    >>> retained_share({"published": 1, "omitted": 2, "filtered": 4, "late": 1, "dead": 9})
    0.25
    """
    if tuples is None:
        return None
    published = tuples.get("published", 0) + tuples.get("late", 0)
    every = published + tuples.get("omitted", 0) + tuples.get("filtered", 0)
    return published / every if every else None
