"""Records that a service can't read: each is counted and skipped, and named in the log once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

import structlog

from tamis.messaging.topic_reader import Record
from tamis.telemetry import Metrics

# The keys that are remembered as named. A writer with ever new keys can't fill the memory.
MOST_NAMED = 1_000
# Nor can it fill the log: so many are named at once, and then one a second.
AT_ONCE = 20


class UnreadableRecords:
    """Counts the unreadable records of one service, and logs the first one of each key.

    A writer with a fault writes the same record again and again.
    """

    def __init__(
        self,
        service: str,
        metrics: Metrics | None,
        log: structlog.typing.FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`metrics` None: the service counts them elsewhere. `clock` returns seconds."""
        self._service, self._metrics, self._log, self._clock = service, metrics, log, clock
        self._named: OrderedDict[tuple[str, bytes | None], None] = OrderedDict()
        self._free, self._filled, self._not_named = float(AT_ONCE), clock(), 0

    def report(self, record: Record, why: object) -> None:
        """A record was skipped."""
        if self._metrics is not None:
            self._metrics.inc("tamis_dead_letters_total", service=self._service, reason="undecodable")
        place = record.topic, record.key
        if place in self._named:
            return
        now = self._clock()
        self._free, self._filled = min(AT_ONCE, self._free + now - self._filled), now
        if self._free < 1:
            self._not_named += 1
            return
        self._free -= 1
        self._named[place] = None
        if len(self._named) > MOST_NAMED:
            self._named.popitem(last=False)
        self._log.error(
            "a record can't be read and is skipped; later ones of its key aren't named",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=(record.key or b"")[:200].decode(errors="replace"),
            error=f"{why!s:.500}",
            not_named=self._not_named,
        )
        self._not_named = 0
