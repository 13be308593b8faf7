"""Spooling: records of shards that can't move to another edge are written to the spool and read back.

It also works while the disk refuses writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.telemetry.logs import get_logger
from tamis_edge.core.records import Record
from tamis_edge.publishing.in_flight import ShardSender
from tamis_edge.storage.disk import DiskError
from tamis_edge.storage.spool import Spool

_log = get_logger("edge.publisher")

RETRY = 1.0  # seconds after the disk refused a write before the next attempt


class Spooling:
    """The spool as the publisher uses it. It is the sender of the records that come from the spool."""

    def __init__(self, spool: Spool, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._spool, self._clock = spool, clock
        self.error: DiskError | None = None  # why the spool can't be written now
        self._retry_at = clock()
        self._delivered: list[int] = []  # tokens of records that Kafka has and that aren't deleted yet

    @property
    def waiting(self) -> bool:
        """True if the spool has records that were not yet taken from it."""
        return self._spool.waiting

    @property
    def records(self) -> int:
        """The number of records in the spool."""
        return self._spool.records

    def append(self, sender: ShardSender) -> None:
        """Write the records of a shard to the spool. If the disk refuses them, they stay with the shard,
        which reads nothing more until they are written.
        """
        if self._blocked:
            return
        records = [record for record in sender.out if sender.carries_tuple(record.token)]
        if records:
            try:
                self._spool.append(sender.shard, records, [sender.place(r.token) for r in records])
            except DiskError as error:
                self._refused(error)
                return
            self._accepted()
        while sender.out:
            record = sender.out.popleft()
            if sender.carries_tuple(record.token):
                sender.safe(record.token)
            else:
                # Progress follows the tuples that it covers, and these are not in Kafka yet.
                sender.retract(record.token)

    def take(self, limit: int, size: int) -> Sequence[Record]:
        """The next records of the spool: at most `limit`, and only until they have `size` bytes."""
        return self._spool.take(limit, size)

    def safe(self, *tokens: int) -> None:
        """Kafka has these records."""
        self._delivered.extend(tokens)

    def carries_tuple(self, token: int) -> bool:
        """All records in the spool are of readings."""
        return True

    def delete_delivered(self) -> None:
        """Delete the records that Kafka has. If the disk refuses, the only effect is that they are sent again
        after a restart.
        """
        if not self._delivered or self._blocked:
            return
        try:
            self._spool.delivered(self._delivered)
        except DiskError as error:
            self._refused(error)
            return
        self._accepted()
        self._delivered = []

    def idle(self) -> None:
        """No write is attempted now, so an earlier refusal of the disk no longer counts."""
        if not self._delivered:
            self._accepted()

    @property
    def _blocked(self) -> bool:
        return self.error is not None and self._clock() < self._retry_at

    def _refused(self, error: DiskError) -> None:
        if self.error is None:
            _log.error("the disk refuses writes of the spool", reason=str(error))
        self.error, self._retry_at = error, self._clock() + RETRY

    def _accepted(self) -> None:
        if self.error is not None:
            _log.info("the disk takes the spool again")
        self.error = None
