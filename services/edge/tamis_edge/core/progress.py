"""Which progress of a shard has been said already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# Microseconds after which progress is repeated though unchanged, so that it outlives the topic's retention.
REFRESH = 30_000_000

Progress = Mapping[tuple[str, int], int]
"""By topic and output partition, the least event time that can still be published there."""


class Said:
    """Tells news from what was said. Only where records were sent in order and none was taken back."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, int], tuple[int, int]] = {}  # plan version and event time
        self._at = 0

    def news(self, progress: Progress, version: int, now: int) -> Iterator[tuple[str, int, int]]:
        """What is to be said under a plan version: topic, partition, event time."""
        if now - self._at >= REFRESH:
            self._said, self._at = {}, now
        for place, time in progress.items():
            if self._said.get(place) != (version, time):
                self._said[place] = version, time
                yield *place, time

    def take_back(self) -> None:
        """Something was not sent after all: everything is news again."""
        self._said.clear()
