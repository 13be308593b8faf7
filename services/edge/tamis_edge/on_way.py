"""Records that Kafka has not confirmed yet, in the order in which they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tamis_edge.core.records import Record


class Sender(Protocol):
    """Whose records they are."""

    out: deque[Record]

    def safe(self, token: int) -> None:
        """The record can't be lost any more."""
        ...

    def carries_tuple(self, token: int) -> bool:
        """Whether the record is of a reading, not progress or a final record."""
        ...

    def retract(self, token: int) -> None:
        """The progress or final record was not sent, and has to be made again."""
        ...


class Sent(NamedTuple):
    """One record, and whom its safety concerns."""

    sender: Sender
    record: Record


class Lane:
    """The records of one output partition: an idempotent producer confirms them in order and without gaps."""

    __slots__ = ("pending", "sent", "settled")

    def __init__(self) -> None:
        self.pending: deque[Sent] = deque()
        self.sent = 0
        self.settled = 0


class OnWay:
    """All lanes, and apart from them the records that are judged one by one."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._single: dict[int, Sent] = {}
        self._numbers = 0
        self.records = 0
        self.bytes = 0

    def lane(self, topic: str, partition: int) -> Lane:
        """The lane of an output partition."""
        place = topic, partition
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = Lane()
        return lane

    def count(self, records: int, size: int) -> None:
        """So many records and bytes more are on their way."""
        self.records += records
        self.bytes += size

    def single(self, sent: Sent) -> int:
        """Add a record that is judged alone; returns by what it is known."""
        self._numbers += 1
        self._single[self._numbers] = sent
        self.count(1, len(sent.record.value))
        return self._numbers

    def settle(self, lane: Lane, upto: int) -> Sequence[Sent]:
        """The first `upto` records that the lane ever had are in Kafka: those that weren't known to be."""
        pop = lane.pending.popleft
        found = [pop() for _ in range(upto - lane.settled)]
        if found:
            lane.settled = upto
            self.count(-len(found), -sum(len(sent.record.value) for sent in found))
        return found

    def settle_single(self, number: int) -> Sent | None:
        """A record that is judged alone has been; None where it was taken away before."""
        sent = self._single.pop(number, None)
        if sent is not None:
            self.count(-1, -len(sent.record.value))
        return sent

    def take_all(self) -> list[Sent]:
        """Everything, in order within each partition; nothing is on its way afterwards."""
        found = [sent for lane in self._lanes.values() for sent in lane.pending]
        found += self._single.values()
        for lane in self._lanes.values():
            lane.pending.clear()
            lane.settled = lane.sent
        self._lanes, self._single = {}, {}
        self.records = self.bytes = 0
        return found
