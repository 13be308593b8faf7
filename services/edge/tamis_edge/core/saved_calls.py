"""Count of the tuples of a topic for which omission saves calls of Python functions in the joiner."""

from __future__ import annotations

import numpy as np

from tamis_edge.core.messages.keys import Int64s


class SavedCalls:
    """Tuples that pass the filter of an alert which calls functions for retained tuples only, until they are
    published or omitted. Ids ascend in every array.
    """

    def __init__(self) -> None:
        self._undecided: Int64s = np.empty(0, np.int64)

    def add(self, ids: Int64s) -> None:
        """Add tuples; their ids are greater than all before."""
        if len(ids):
            self._undecided = np.concatenate([self._undecided, ids])

    def published(self, ids: Int64s) -> None:
        """Some tuples were published; others than those added don't count."""
        if len(self._undecided) and len(ids):
            self._undecided = np.setdiff1d(self._undecided, ids, assume_unique=True)

    def decided(self, held: Int64s) -> int:
        """The number of tuples that were omitted since the last call. `held`: the undecided ones."""
        if not len(self._undecided):
            return 0
        before = len(self._undecided)
        self._undecided = np.intersect1d(self._undecided, held, assume_unique=True)
        return before - len(self._undecided)
