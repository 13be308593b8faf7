"""Records in flight: sent to Kafka and not yet confirmed, by output partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tamis_edge.core.records import Record


class Sender(Protocol):
    """The owner of records in flight."""

    def safe(self, *tokens: int) -> None:
        """These records can't be lost any more."""
        ...

    def carries_tuple(self, token: int) -> bool:
        """True if the record is of a reading, not progress or a final record."""
        ...


class ShardSender(Sender, Protocol):
    """A shard, which has records to send."""

    shard: str
    out: deque[Record]

    def place(self, token: int) -> int:
        """The position of the first reading in the record: in the source, or below 0 on a watched stream."""
        ...

    def retract(self, token: int) -> None:
        """The progress or final record was not sent and must be made again."""
        ...


class Sent(NamedTuple):
    """Records of one sender, in order, that are reported together, and their bytes."""

    sender: Sender
    records: Sequence[Record]
    size: int


def sent(sender: Sender, records: Sequence[Record]) -> Sent:
    """Records of one sender, with the bytes of their values."""
    return Sent(sender, records, sum([len(record.value) for record in records]))


class PartitionQueue:
    """The records of one output partition. An idempotent producer confirms them in order and without gaps."""

    __slots__ = ("pending", "posted", "settled")

    def __init__(self) -> None:
        self.pending: deque[Sent] = deque()
        self.posted = 0  # how many bundles there ever were
        self.settled = 0


class InFlight:
    """The queues of all output partitions, and the records that are reported one by one."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._single: dict[int, Sent] = {}
        self._numbers = 0
        self.records = 0
        self.bytes = 0

    def post(self, topic: str, partition: int, bundle: Sent) -> tuple[PartitionQueue, int]:
        """Add a bundle to the queue of an output partition; returns the queue and the bundle's number in
        it.
        """
        queue = self._queues.setdefault((topic, partition), PartitionQueue())
        queue.pending.append(bundle)
        queue.posted += 1
        self._count(bundle, 1)
        return queue, queue.posted

    def post_single(self, single: Sent) -> int:
        """Add a record that is reported separately; returns its number."""
        self._numbers += 1
        self._single[self._numbers] = single
        self._count(single, 1)
        return self._numbers

    def settle(self, queue: PartitionQueue, upto: int) -> Sequence[Sent]:
        """Remove the first `upto` bundles that were ever added to a queue, because Kafka has them; returns
        those of them that were still in the queue.
        """
        found = [queue.pending.popleft() for _ in range(upto - queue.settled)]
        queue.settled = max(upto, queue.settled)
        for bundle in found:
            self._count(bundle, -1)
        return found

    def settle_single(self, number: int) -> Sent | None:
        """Remove a record that was reported separately; None if it was removed before."""
        single = self._single.pop(number, None)
        if single is not None:
            self._count(single, -1)
        return single

    def take_all(self) -> list[tuple[Sender, Record]]:
        """Remove all records; returns them in order within each partition."""
        found = [bundle for queue in self._queues.values() for bundle in queue.pending]
        found += self._single.values()
        for queue in self._queues.values():
            queue.pending.clear()
            queue.settled = queue.posted
        self._queues, self._single = {}, {}
        self.records = self.bytes = 0
        return [(bundle.sender, record) for bundle in found for record in bundle.records]

    def _count(self, bundle: Sent, sign: int) -> None:
        self.records += sign * len(bundle.records)
        self.bytes += sign * bundle.size
