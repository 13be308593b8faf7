"""Faust's consumer of Kafka without two ways of passing records over that its start-up has.

When Faust has read its tables it lets its fetcher loose on the alarms, then seeks to the committed offsets,
then empties the queues of its agents; what came between the last two was taken and is gone. And where
nothing is committed yet it seeks nowhere, so that what came before is gone as well. (Faust 0.15, and
https://github.com/faust-streaming/faust/issues/596.)
"""

from __future__ import annotations

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
            await self._thread.seek_to_beginning(*(self._new_topicpartition(*tp) for tp in unread))

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
