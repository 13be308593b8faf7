"""The source of a shard: its readings, which it may delete, and its offsets, which may begin again at 0."""

from __future__ import annotations

import random

from tests.model.cuts.terms import END, FAR, Reading, Shard


class Source:
    """`sent` are the readings so far. Those of the present source have the offsets from 0 to `end`, of which
    those before `first` are deleted.
    """

    def __init__(self, r: random.Random, shard: Shard, topics: int, delay: int, *, future: bool) -> None:
        self.shard, self.delay, self._topics = shard, delay, topics
        self.sent: list[Reading] = []
        self.number, self._bases, self.first = 0, [0], 0
        self._waiting, latest = [], r.randint(0, 6)
        for _ in range(r.randint(4, 22)):
            latest += r.choice((0, 0, 1, 1, 2, 5))
            late = r.randint(1, 14) if r.random() < 0.1 else 0
            time = float(max(0, latest - r.randint(0, delay) - late))
            self._waiting.append((time, r.randrange(4), tuple(r.random() < 0.85 for _ in range(topics))))
        if future and r.random() < 0.6:
            at = r.randrange(len(self._waiting) // 2 + 1)
            self._waiting[at] = (FAR, *self._waiting[at][1:])
        self._waiting.reverse()

    def __len__(self) -> int:
        """The number of readings to come."""
        return len(self._waiting)

    @property
    def _base(self) -> int:
        return self._bases[-1]

    def number_at(self, source: int, offset: int) -> int:
        """The number of the reading at an offset of the present or an earlier source."""
        return self._bases[source] + offset

    @property
    def end(self) -> int:
        """The offset of the next reading."""
        return len(self.sent) - self._base

    def emit(self) -> Reading:
        """Give the next reading."""
        number = len(self.sent)
        reading = Reading(self.shard, number, self.number, number - self._base, *self._waiting.pop())
        self.sent.append(reading)
        return reading

    def close(self) -> None:
        """Give all readings to come, and the last word, which no query counts."""
        self._waiting.insert(0, (END, 0, (False,) * self._topics))
        while self._waiting:
            self.emit()

    def at(self, offset: int) -> Reading:
        return self.sent[self._base + offset]

    def delete(self, count: int) -> list[Reading]:
        """Delete the first readings; returns them."""
        before = self.first
        self.first = min(self.first + count, self.end)
        return self.sent[self._base + before : self._base + self.first]

    def make_anew(self) -> list[Reading]:
        """Delete all, and begin again at offset 0; returns what was deleted."""
        deleted = self.delete(self.end)
        self._bases.append(len(self.sent))
        self.number, self.first = self.number + 1, 0
        return deleted
