"""Records that Kafka has not confirmed yet, in the order in which they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tamis_edge.core.records import Record


class Sender(Protocol):
    """Whose records they are."""

    def safe(self, token: int) -> None:
        """The record can't be lost any more."""
        ...

    def carries_tuple(self, token: int) -> bool:
        """Whether the record is of a reading, not progress or a final record."""
        ...


class ShardSender(Sender, Protocol):
    """A shard, which has records to send."""

    shard: str
    out: deque[Record]

    def place(self, token: int) -> int:
        """Where in its source the readings of the record stood, the first of them."""
        ...

    def retract(self, token: int) -> None:
        """The progress or final record was not sent, and has to be made again."""
        ...


class Sent(NamedTuple):
    """Records of one sender, in order, that are reported together, and their bytes."""

    sender: Sender
    records: Sequence[Record]
    size: int


def sent(sender: Sender, records: Sequence[Record]) -> Sent:
    """With the bytes of their values."""
    return Sent(sender, records, sum([len(record.value) for record in records]))


class Lane:
    """The records of one output partition: an idempotent producer confirms them in order and without gaps."""

    __slots__ = ("pending", "posted", "settled")

    def __init__(self) -> None:
        self.pending: deque[Sent] = deque()
        self.posted = 0  # how many bundles there ever were
        self.settled = 0


class OnWay:
    """All lanes, and apart from them the records that are judged one by one."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._single: dict[int, Sent] = {}
        self._numbers = 0
        self.records = 0
        self.bytes = 0

    def post(self, topic: str, partition: int, bundle: Sent) -> tuple[Lane, int]:
        """Add a bundle to the lane of an output partition; returns by what it is known there."""
        lane = self._lanes.setdefault((topic, partition), Lane())
        lane.pending.append(bundle)
        lane.posted += 1
        self._count(bundle, 1)
        return lane, lane.posted

    def post_single(self, single: Sent) -> int:
        """Add a record that is judged alone; returns by what it is known."""
        self._numbers += 1
        self._single[self._numbers] = single
        self._count(single, 1)
        return self._numbers

    def settle(self, lane: Lane, upto: int) -> Sequence[Sent]:
        """The first `upto` bundles that the lane ever had are in Kafka: those that weren't known to be."""
        found = [lane.pending.popleft() for _ in range(upto - lane.settled)]
        lane.settled = max(upto, lane.settled)
        for bundle in found:
            self._count(bundle, -1)
        return found

    def settle_single(self, number: int) -> Sent | None:
        """A record that is judged alone has been; None where it was taken away before."""
        single = self._single.pop(number, None)
        if single is not None:
            self._count(single, -1)
        return single

    def take_all(self) -> list[tuple[Sender, Record]]:
        """Everything, in order within each partition; nothing is on its way afterwards."""
        found = [bundle for lane in self._lanes.values() for bundle in lane.pending]
        found += self._single.values()
        for lane in self._lanes.values():
            lane.pending.clear()
            lane.settled = lane.posted
        self._lanes, self._single = {}, {}
        self.records = self.bytes = 0
        return [(bundle.sender, record) for bundle in found for record in bundle.records]

    def _count(self, bundle: Sent, sign: int) -> None:
        self.records += sign * len(bundle.records)
        self.bytes += sign * bundle.size
