"""Offsets of a source from which all readings from some event time on can be read again."""

from __future__ import annotations

from bisect import bisect_right

# Then every second one is forgotten. With fewer, a restart reads more readings again than it needs.
MOST = 4096


class Checkpoints:
    """Offsets, each with the greatest event time before it. Both never fall."""

    def __init__(self, offset: int, latest: int) -> None:
        """`latest`: no reading before `offset` has a greater event time."""
        self._known = [(latest, offset)]

    def add(self, offset: int, latest: int) -> None:
        """Note the greatest event time before an offset."""
        if (latest, offset) <= self._known[-1]:
            return
        self._known.append((latest, offset))
        if len(self._known) > MOST:
            del self._known[1:-1:2]

    def before(self, time: int, offset: int) -> tuple[int, int]:
        """Event time and offset of the last checkpoint before all needed readings. These have event times
        from `time` on, and those at `time` itself have offsets from `offset` on.

        If there is none, it is the first checkpoint. Checkpoints before the returned one are forgotten.
        """
        del self._known[: max(bisect_right(self._known, (time, offset)) - 1, 0)]
        return self._known[0]
