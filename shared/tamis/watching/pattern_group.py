"""The patterns of all watches that compare the same value and have the same limit of gaps: one index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Expr
from tamis.omission.ticks import as_span
from tamis.query.watches import Watch
from tamis.similarity import KeyedPatterns, Matches, Pattern
from tamis.similarity.sliding_transform import Floats, Int64s


class PatternGroup:
    """Matches of many series with the patterns of a group.

    `members` has for each pattern of the group the number of its watch in `watches`, and its place in
    `Watch.patterns`. `max_gap` is in microseconds.
    """

    def __init__(
        self, watches: Sequence[Watch], value: Expr, max_gap: int, members: Sequence[tuple[int, int]]
    ) -> None:
        self.value = value
        self.max_gap = as_span(max_gap)
        self.watch, self.place = np.array(members, np.int64).T
        self._patterns = KeyedPatterns(
            _pattern(number, watches[watch], place) for number, (watch, place) in enumerate(members)
        )
        self.longest = self._patterns.longest

    def continue_from(self, before: PatternGroup) -> None:
        """Continue the series of a group of other patterns."""
        self._patterns.load(before._patterns.dump())

    @property
    def bytes_per_key(self) -> int:
        """The memory of one series."""
        return self._patterns.bytes_per_key

    def push(self, keys: Int64s, values: Floats, spans: NDArray[np.uint64]) -> Matches:
        """Append readings to their series; `spans` are the times since the reading before of the same key.
        Patterns are numbered as `members`.
        """
        apart = spans > self.max_gap
        if not apart.any():
            return self._patterns.push(keys, values)
        rows = np.repeat(np.arange(len(keys)), 1 + apart)
        readings = values[rows]
        # A gap before each reading that is too far from the one before it.
        readings[np.flatnonzero(apart) + np.arange(np.count_nonzero(apart))] = np.nan
        matches = self._patterns.push(keys[rows], readings)
        return matches._replace(row=rows[matches.row])

    def needed(self, keys: int) -> Int64s:
        """By key, the number of latest readings that windows of later readings can have, if these come before
        `max_gap` has passed.
        """
        found, known = np.zeros(keys, np.int64), self._patterns.needed()[:keys]
        found[: len(known)] = known
        return found

    def forget(self, keys: Int64s) -> None:
        """Start the series of these keys anew."""
        self._patterns.forget(keys)


def _pattern(number: int, watch: Watch, place: int) -> Pattern:
    """A pattern under a name of its own: several watches may ask for one pattern with different limits."""
    named = watch.patterns[place]
    return Pattern(
        f"{named.name} ({number})",
        named.values,
        epsilon=watch.epsilon,
        scale=watch.scale,
        shift=watch.shift,
    )
