"""The second phase of omission under overload: retained tuples are dropped at random (cai-2021, section 7.1).

Off unless the edge's configuration asks for it. Which tuples go is random, so that what is left of an outage
is a sample of all of it and not only its beginning. What is shed is never silent: of each topic and output
partition the span of event time goes out, in the place where the tuples would have gone.
"""

from __future__ import annotations

import numpy as np

from tamis_edge.core.keys import Int64s

# Of the room for what waits: below the first nothing is shed, from the second on everything. What is left
# above is for dead letters and for the spans themselves.
FIRST, ALL = 0.5, 0.9
# Spans are widened to whole seconds, so that a steady overload is one record a second, not one a batch.
STEP = 1_000_000


def share_to_shed(filled: float) -> float:
    """Which share of the retained tuples to drop when this share of the room is filled.

    >>> share_to_shed(0.5), round(share_to_shed(0.7), 3), share_to_shed(1.2)
    (0.0, 0.5, 1.0)
    """
    return min(max((filled - FIRST) / (ALL - FIRST), 0.0), 1.0)


class Shedder:
    """Picks what to drop. `share` is set by whoever sees how full the edge is."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self.share = 0.0

    def kept(self, count: int) -> np.ndarray | None:
        """A mask of those of `count` tuples that stay; None for all."""
        if self.share <= 0 or count == 0:
            return None
        mask: np.ndarray = self._random.random(count) >= self.share
        return mask


class Spans:
    """What was shed of one shard, as far as it was said: the last span of each topic and output partition."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, int], tuple[int, int, int]] = {}  # first, last, token

    def add(self, topic: str, partition: int, times: Int64s) -> tuple[int, int] | int:
        """Tuples of these event times were shed: the span to tell, first and last microsecond, or the token
        of the record that tells it already.
        """
        first = int(times.min()) // STEP * STEP
        last = int(times.max()) // STEP * STEP + STEP - 1
        said = self._said.get((topic, partition))
        if said is not None and said[0] <= first and last <= said[1]:
            return said[2]
        return first, last

    def said(self, topic: str, partition: int, span: tuple[int, int], token: int) -> None:
        """The record `token` tells of the span."""
        self._said[topic, partition] = (*span, token)
