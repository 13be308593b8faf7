"""Choice of the topic that serves a new reader at the least cost (kuntschke-2006, section 1; decision 18).

The cost of a topic is the share of the stream that is written to it, the same share once for each of its
consumers, and a constant for having the topic. Consumers are the joiner, which reads a topic once for all
of its alerts, and each subscriber outside the fleet. A new reader goes where the total cost grows least: to
a topic that already has its tuples, to a topic that is widened, to a topic of its own, or to the topic of
a derived stream that has its tuples.

A reader keeps the topic that it was given as long as it is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tamis.sharing.box_overlap import Bools, overlap_volumes
from tamis.sharing.selectivity import BoxUnion, Floats, volume

# The constant cost of a topic, as a share of its stream: the brokers keep its partitions, and each shard
# writes its progress to each of them. With 8 partitions and a commit a second, that is 5 % of a shard of
# 160 tuples/s.
TOPIC = 0.05

_NEEDS_ALL = (
    "; edges then publish to it every reading that passes its filter, though other readers may need fewer"
)

How = Literal["as it is", "widened", "own", "kept", "derived"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A topic in service that a new reader could be given.

    `passed`: the tuples that pass its readers' filters; `joiner`: whether alerts read it; `subscribers`:
    the number of readers outside the fleet.
    """

    number: int
    passed: BoxUnion
    joiner: bool
    subscribers: int

    @property
    def consumers(self) -> int:
        """The number of consumers that read the whole topic."""
        return self.subscribers + self.joiner


@dataclass(frozen=True)
class Choice:
    """The topic of one read request, and the reason.

    `topic`: the number of a shared topic, or the name of the derived stream whose topic it is. `before` and
    `after`: the topic's estimated share of the stream without and with the reader; `basis`: the source of
    these estimates.
    """

    topic: int | str
    how: How
    before: float
    after: float
    basis: str

    def reason(self, *, needs_all: bool) -> str:
        """The reason, for people. `needs_all`: nothing is omitted for the reader."""
        match self.how:
            case "derived":
                return f"reads from {self._derived()}"
            case "kept" if isinstance(self.topic, str):
                return f"continues to read from {self._derived()}"
            case "as it is":
                return f"served as it is by a topic with an estimated {_percent(self.after)} of the stream"
            case "widened":
                before, after = _percent(self.before), _percent(self.after)
                # Shares are of what passes filters, before omission.
                what = (
                    f"shares a topic whose readers' filters pass an estimated {after} of the stream already"
                    if before == after
                    else f"widens a topic from an estimated {before} to {after} of the stream, which costs "
                    "less than a topic of its own"
                )
                return what + (_NEEDS_ALL if needs_all else "")
            case "own":
                return f"a topic of its own with an estimated {_percent(self.after)} of the stream"
            case "kept":
                return f"keeps its place on a topic with an estimated {_percent(self.after)} of the stream"

    def _derived(self) -> str:
        return (
            f"stream {self.topic}, which has all readings that it needs (an estimated"
            f" {_percent(self.after)} of the stream)"
        )


class CandidateTopics:
    """The topics of one stream and partition key, in columns: thousands are compared at once."""

    def __init__(self, candidates: Sequence[Candidate], dimensions: int) -> None:
        self.candidates = candidates
        if len(candidates) == 1:
            # Not copied: the one topic of a stream has the boxes of all queries.
            self._lower, self._upper = candidates[0].passed.lower, candidates[0].passed.upper
        else:
            none = np.empty((0, dimensions))
            self._lower = np.concatenate([none, *(one.passed.lower for one in candidates)])
            self._upper = np.concatenate([none, *(one.passed.upper for one in candidates)])
        counts = [len(one.passed.lower) for one in candidates]
        self._begins = np.cumsum([0, *counts], dtype=np.int64)
        self._share = np.array([one.passed.share for one in candidates], np.float64)
        self._joiner = np.array([one.joiner for one in candidates], np.bool_)
        self._subscribers = np.array([one.subscribers for one in candidates], np.float64)

    def choose(self, need: BoxUnion, subscriber: bool) -> tuple[Candidate | None, float, float]:
        """The cheapest topic for a reader (None: its own), the share of that topic with the reader, and the
        growth of the total cost.

        Of several topics with the same cost, the first one is taken.
        """
        before = self._subscribers + self._joiner
        after = self._subscribers + (1 if subscriber else 0) + (self._joiner | (not subscriber))
        best, cheapest, share = None, 2 * need.share + TOPIC, need.share
        # An upper bound of the overlap gives a lower bound of the cost. The exact overlap takes long, so it
        # is computed only for topics whose lower bound is not above the least cost found so far.
        overlap, exact = self._overlap(need)
        added = np.maximum(need.share - overlap, 0.0)
        bounds = (self._share + added) * (1 + after) - self._share * (1 + before)
        for at in np.argsort(bounds, kind="stable").tolist():
            if bounds[at] > cheapest:
                break
            union = self._share[at] + (added[at] if exact[at] else self._added(need, at))
            cost = union * (1 + after[at]) - self._share[at] * (1 + before[at])
            if cost < cheapest or (cost == cheapest and (best is None or at < best)):
                best, cheapest, share = at, cost, union
        return (None if best is None else self.candidates[best]), float(share), float(cheapest)

    def _overlap(self, need: BoxUnion) -> tuple[Floats, Bools]:
        """For each topic an upper bound of its overlap with the need, and whether the bound is exact."""
        count = len(self.candidates)
        total, exact = np.zeros(count), np.ones(count, np.bool_)
        for lower, upper in zip(need.lower, need.upper, strict=True):
            volumes, known = np.empty(count), np.empty(count, np.bool_)
            box = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
            overlap_volumes(self._lower, self._upper, self._begins, *box, volumes, known)
            total += volumes
            exact &= known
        # The boxes of a need may overlap each other.
        return total, exact if len(need.lower) == 1 else np.zeros_like(exact)

    def _added(self, need: BoxUnion, at: int) -> float:
        """The share of the need that is not yet in a topic."""
        passed = self.candidates[at].passed
        if passed.hits is not None:
            return passed.growth(need)
        first, behind = self._begins[at], self._begins[at + 1]
        topic_lower, topic_upper = self._lower[first:behind], self._upper[first:behind]
        lower = [np.maximum(topic_lower, box) for box in need.lower]
        upper = [np.minimum(topic_upper, box) for box in need.upper]
        if not lower:
            return 0.0
        return max(need.share - volume(np.concatenate(lower), np.concatenate(upper)), 0.0)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
