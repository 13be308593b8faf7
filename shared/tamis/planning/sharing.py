"""Which topic a new reader of a stream is served by (kuntschke-2006, section 1; decision 20).

The cost of a topic is what is written to it, what each of its consumers reads of it, which is all of it,
and something for there being a topic at all. Consumers are the joiner, which reads a topic once however many
alerts it evaluates over it, and each subscriber outside the fleet. A new reader goes where this costs least
more: to a topic that lets through what it needs already, to one that is widened, or to one of its own.

What a reader was given it keeps: nobody is moved to another topic while it is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tamis.planning.common import Bools, common
from tamis.planning.traffic import Floats, Footprint, volume

# What a topic costs by itself, as a share of its stream: partitions of the brokers, and progress of each
# shard in each of them. With 8 partitions and a commit a second that is 5 % of a shard of 160 tuples/s.
TOPIC = 0.05

How = Literal["as it is", "widened", "own", "kept"]


@dataclass(frozen=True, eq=False)
class Served:
    """A topic in service: what its readers' filters let pass, and who reads it. `joiner`: alerts among them;
    `subscribers`: how many there are outside the fleet.
    """

    number: int
    passes: Footprint
    joiner: bool
    subscribers: int

    @property
    def consumers(self) -> int:
        """How many read all of it."""
        return self.subscribers + self.joiner


@dataclass(frozen=True)
class Choice:
    """Where a new reader goes, or one that has its place is kept. `before` and `after`: the topic's estimated
    share of the stream, without and with the reader; `basis`: what the estimates rest on.
    """

    number: int
    how: How
    before: float
    after: float
    basis: str

    def reason(self) -> str:
        """For people."""
        match self.how:
            case "as it is":
                return f"served as it is by a topic with an estimated {_percent(self.after)} of the stream"
            case "widened":
                return (
                    f"widens a topic from an estimated {_percent(self.before)} to {_percent(self.after)} of "
                    "the stream, which costs less than a topic of its own"
                )
            case "own":
                return f"a topic of its own with an estimated {_percent(self.after)} of the stream"
            case "kept":
                return f"keeps its place on a topic with an estimated {_percent(self.after)} of the stream"


class Topics:
    """The topics of one stream and partition key, in columns, so that thousands are compared at once."""

    def __init__(self, served: Sequence[Served], dimensions: int) -> None:
        self.served = served
        none = np.empty((0, dimensions))
        self._lower = np.concatenate([none, *(one.passes.lower for one in served)])
        self._upper = np.concatenate([none, *(one.passes.upper for one in served)])
        counts = [len(one.passes.lower) for one in served]
        self._begins = np.cumsum([0, *counts], dtype=np.int64)
        self._share = np.array([one.passes.share for one in served], np.float64)
        self._joiner = np.array([one.joiner for one in served], np.bool_)
        self._subscribers = np.array([one.subscribers for one in served], np.float64)

    def choose(self, need: Footprint, subscriber: bool) -> tuple[Served | None, float]:
        """The topic that the reader is served by, and what it lets pass then; None for one of its own. The
        first one where several cost the same.
        """
        before = self._subscribers + self._joiner
        after = self._subscribers + (1 if subscriber else 0) + (self._joiner | (not subscriber))
        best, cheapest, share = None, 2 * need.share + TOPIC, need.share
        # Where the exact measure would take long there is more than it first: so a cost has a lower bound,
        # and the measure is only taken of those topics that may still be the cheapest.
        met, exact = self._met(need)
        added = np.maximum(need.share - met, 0.0)
        bounds = (self._share + added) * (1 + after) - self._share * (1 + before)
        for at in np.argsort(bounds, kind="stable").tolist():
            if bounds[at] > cheapest:
                break
            union = self._share[at] + (added[at] if exact[at] else self._added(need, at))
            cost = union * (1 + after[at]) - self._share[at] * (1 + before[at])
            if cost < cheapest or (cost == cheapest and (best is None or at < best)):
                best, cheapest, share = at, cost, union
        return (None if best is None else self.served[best]), float(share)

    def _met(self, need: Footprint) -> tuple[Floats, Bools]:
        """For each topic, what it has in common with the need, or more, and whether it is exactly that."""
        total, exact = np.zeros(len(self.served)), np.ones(len(self.served), np.bool_)
        for lower, upper in zip(need.lower, need.upper, strict=True):
            met, known = np.empty(len(self.served)), np.empty(len(self.served), np.bool_)
            box = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
            common(self._lower, self._upper, self._begins, *box, met, known)
            total += met
            exact &= known
        # The boxes of a need may overlap.
        return total, exact if len(need.lower) == 1 else np.zeros_like(exact)

    def _added(self, need: Footprint, at: int) -> float:
        """What the need has outside of a topic."""
        first, behind = self._begins[at], self._begins[at + 1]
        mine_lower, mine_upper = self._lower[first:behind], self._upper[first:behind]
        lower = [np.maximum(mine_lower, box) for box in need.lower]
        upper = [np.minimum(mine_upper, box) for box in need.upper]
        if not lower:
            return 0.0
        return max(need.share - volume(np.concatenate(lower), np.concatenate(upper)), 0.0)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
