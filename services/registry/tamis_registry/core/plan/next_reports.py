"""Frontier records of the joiner that wait for its next batch.

The record of a batch with alarms comes with the next batch (decision 6). If all sources have ended or are
silent, no batch follows: nobody would learn how far the joiner is. Any record that the joiner reads makes a
batch, so the registry writes the plan again.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.messaging.records import Frontier

# Some batches of a busy joiner, microseconds: the next one nearly always comes by itself.
PATIENCE = 10_000_000


class NextReports:
    """The partitions whose last record announces another one."""

    def __init__(self) -> None:
        # By partition, the record and when it was first seen, microseconds; None after it was overdue.
        self._seen: dict[int, tuple[Frontier, int | None]] = {}

    def take_overdue(self, frontiers: Iterable[Frontier], now: int) -> bool:
        """True if a record has been announced for too long, once for each announcement."""
        before, self._seen = self._seen, {}
        overdue = False
        for one in frontiers:
            if one.next_waits:
                known, since = before.get(one.partition, (one, now))
                since = since if known is one else now
                if since is not None and now - since >= PATIENCE:
                    overdue, since = True, None
                self._seen[one.partition] = one, since
        return overdue
