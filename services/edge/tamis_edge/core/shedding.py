"""The second phase of omission under overload: retained tuples are dropped at random (cai-2021, section 7.1).

It is off unless the edge's configuration asks for it. The choice is random, so that the rest is a sample of
the whole outage and not only of its beginning. Every dropped tuple is reported: for each topic and output
partition a record with the span of event time is sent, at the position where the tuples would have been.
"""

from __future__ import annotations

import numpy as np

from tamis.omission.columns import Int64s

# Shares of the room on disk: nothing is shed below the first, everything from the second on. The room above
# the second is for dead letters and for the records of spans.
FIRST, ALL = 0.5, 0.9
# Spans are widened to whole seconds, so that a steady overload is one record a second, not one a batch.
STEP = 1_000_000


def share_to_shed(filled: float) -> float:
    """The fraction of the retained tuples to drop, for the fraction of the room that is filled.

    >>> share_to_shed(0.5), round(share_to_shed(0.7), 3), share_to_shed(1.2)
    (0.0, 0.5, 1.0)
    """
    return min(max((filled - FIRST) / (ALL - FIRST), 0.0), 1.0)


class Shedder:
    """Picks the tuples to drop. Its `share` is set by the caller, who knows how full the edge is."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self.share = 0.0

    def kept(self, count: int) -> np.ndarray | None:
        """A mask of the tuples that stay, among `count` tuples; None if all stay."""
        if self.share <= 0 or count == 0:
            return None
        mask: np.ndarray = self._random.random(count) >= self.share
        return mask


class ShedSpans:
    """The spans of event time in which tuples of one shard were shed and for which records were sent."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, int], tuple[int, int, int]] = {}  # first, last, token

    def add(self, topic: str, partition: int, times: Int64s) -> tuple[int, int] | int:
        """The span to send for shed tuples of these event times, as first and last microsecond. If the last
        record already has the span, returns that record's token instead.
        """
        first = int(times.min()) // STEP * STEP
        last = int(times.max()) // STEP * STEP + STEP - 1
        sent = self._sent.get((topic, partition))
        if sent is not None and sent[0] <= first and last <= sent[1]:
            return sent[2]
        return first, last

    def sent(self, topic: str, partition: int, span: tuple[int, int], token: int) -> None:
        """The record `token` has the span."""
        self._sent[topic, partition] = (*span, token)
