"""Faust's consumer of Kafka, mended: it passes records over, and may crash, while it starts.

When Faust has read its tables it lets its fetcher loose on the alarms, then seeks to the committed offsets,
then empties the queues of its agents; what came between the last two was taken and is gone. And where
nothing is committed yet it seeks nowhere, so that what came before is gone as well. (Faust 0.15; its issue
596 tells of the first.) A check for stuck streams, run every half a second, ends the application when it
meets a partition whose position is still being asked for.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP


class Consumer(aiokafka.Consumer):
    """A consumer that begins a partition of which nothing is committed at its beginning."""

    async def perform_seek(self) -> None:
        """Go to where the next record of each partition is that has to be taken."""
        await super().perform_seek()
        unread = [tp for tp in self.assignment() if not self._is_changelog_tp(tp) and not self.committed(tp)]
        if unread:
            beginnings = await self.earliest_offsets(*(self._new_topicpartition(*tp) for tp in unread))
            await self.seek_wait(beginnings)

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Log a stream that is stuck; not before its position is known."""
        with suppress(AssertionError):
            super().verify_event_path(now, tp)

    def committed(self, tp: TP) -> int | None:
        """The offset that this consumer knows to be committed; None where there is none."""
        return self._committed_offset.get(tp)


class Transport(aiokafka.Transport):
    """Faust's transport with this consumer."""

    Consumer = Consumer


def begin_where_committed(app: faust.App) -> None:
    """Let `app` take every record from what is committed on.

    Tables must have no standby replicas: what was fetched for them when the flow stops isn't fetched again.
    """
    app.transport = Transport(app.conf.broker_consumer, app)

    # Faust tells so before it lets the fetcher loose, and resumes the flow itself once the queues are empty.
    @app.on_rebalance_complete.connect(weak=False)
    async def hold(*_: Any, **__: Any) -> None:
        app.consumer.stop_flow()
