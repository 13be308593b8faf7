"""Progress of a shard: the event times that it has passed, and the progress records that it has sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

START_OF_TIME = -(2**62)  # before every event time, and far enough from int64's end to subtract from

# Microseconds after which unchanged progress is sent again, so that it outlives the topic's retention.
REFRESH = 30_000_000

Progress = Mapping[tuple[str, int], int]
"""By topic and output partition, the least event time that can still be published there."""


class SentProgress:
    """The progress that was sent. Records must be sent in order, or be reported by `forget`.

    `every`: microseconds that must pass between two progress records of a plan version in one partition.
    """

    def __init__(self, every: int = 0) -> None:
        self._every = every
        self._sent: dict[tuple[str, int], tuple[int, int]] = {}  # plan version and event time
        self._at = 0  # when all progress was due again
        self._next, self._version = 0, 0

    def changed(
        self, progress: Progress, version: int, now: int, *, last: bool = False
    ) -> Iterator[tuple[str, int, int]]:
        """The progress to send under a plan version: topic, partition and event time. From then on it counts
        as sent. `last`: final records follow it.
        """
        if not 0 <= now - self._at < REFRESH:
            self._sent, self._at = {}, now
        # Others wait for the first progress under a plan and for the last one, so they aren't held back.
        # The clock may have been set back, so only a time that is near counts.
        waits = 0 < self._next - now <= self._every
        if waits and version == self._version and not last:
            return
        for place, time in progress.items():
            if self._sent.get(place) != (version, time):
                self._sent[place] = version, time
                self._next, self._version = now + self._every, version
                yield *place, time

    def forget(self) -> None:
        """Some record was not sent, so all progress must be sent again."""
        self._sent.clear()
        self._next = 0
