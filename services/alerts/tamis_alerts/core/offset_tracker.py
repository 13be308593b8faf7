"""Offsets of one partition whose records are done in any order: decides which offset to commit."""

from __future__ import annotations

from collections import OrderedDict

# Kafka takes at most 4096 bytes of metadata with an offset. After a crash, records that don't fit are
# delivered again.
_METADATA = 4000


class OffsetTracker:
    """Tracks the records of a partition. They arrive in the order of their offsets and are done in any order.

    `start` is the committed offset, which is the offset of the first record that isn't done. `metadata` was
    committed with it and lists the records after it that are done. `capacity` is the number of event
    identities that are kept, the newest ones.
    """

    def __init__(self, start: int, capacity: int, metadata: str = "") -> None:
        self.start = self._next = start
        self.committed = (start, metadata)
        self._capacity = capacity
        self._waiting: OrderedDict[int, None] = OrderedDict()
        self._ahead = {start + number for number in _numbers(metadata)}  # done, after one that isn't
        self._event_ids: OrderedDict[str, None] = OrderedDict()

    @property
    def next(self) -> int:
        """The offset after the last record that came."""
        return self._next

    def add(self, offset: int) -> bool:
        """Add a record that waits from now on; False if it is done already."""
        self._next = max(self._next, offset + 1)
        if offset in self._ahead:
            return False
        self._waiting[offset] = None
        return True

    def done(self, offset: int) -> None:
        """A record was delivered or given up, or the sink doesn't accept it."""
        del self._waiting[offset]
        self._ahead.add(offset)

    def is_new_event(self, event_id: str) -> bool:
        """True if the event comes for the first time; its identity is kept from now on."""
        if event_id in self._event_ids:
            return False
        self._event_ids[event_id] = None
        if len(self._event_ids) > self._capacity:
            self._event_ids.popitem(last=False)
        return True

    @property
    def committable(self) -> int:
        """The offset to commit: every record before it is done."""
        return next(iter(self._waiting), self._next)

    def to_commit(self) -> tuple[int, str]:
        """The offset to commit, and its metadata."""
        at = self.committable
        self._ahead = {offset for offset in self._ahead if offset > at}
        return at, _text(sorted(offset - at for offset in self._ahead))


def _text(numbers: list[int]) -> str:
    """Ascending numbers as spans, as many as fit into the metadata.

    >>> _text([1, 2, 3, 7])
    '1-3,7-7'
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    text = ",".join(f"{first}-{last}" for first, last in spans)
    return text if len(text) <= _METADATA else text[:_METADATA].rpartition(",")[0]


def _numbers(text: str) -> set[int]:
    """The numbers of `_text`.

    >>> sorted(_numbers("1-3,7-7"))
    [1, 2, 3, 7]
    """
    spans = (span.split("-") for span in text.split(",") if span)
    return {number for first, last in spans for number in range(int(first), int(last) + 1)}
