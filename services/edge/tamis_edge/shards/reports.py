"""Reports of one shard to the registry: acknowledgements of plans, signs of life, and samples of readings.

An edge that has no shards yet sends signs of life of its own, since it may have sources that fail.
"""

from __future__ import annotations

from tamis.messaging.records import Ack, Observation
from tamis.messaging.topics import ACKS, SKETCHES
from tamis_edge.core.sampling import Sampler
from tamis_edge.publishing.publisher import Publisher

HEARTBEAT = 2_000_000  # microseconds between equal acknowledgements


class Reports:
    """Sends reports by the publisher. `now` is wall clock in microseconds."""

    def __init__(self, shard: str, stream: str, publisher: Publisher) -> None:
        self._shard, self._stream, self._publisher = shard, stream, publisher
        self._sent: Ack | None = None

    def sample(self, sampler: Sampler) -> None:
        """Send the sample of the shard's readings when it is due."""
        if sampler.due and self._publisher.ready:
            found = Observation(self._shard, self._stream, sampler.report())
            self._publisher.report(SKETCHES, self._shard.encode(), found.to_bytes())

    def live(self, now: int, failing: dict[str, str] | None) -> None:
        """Send the sign of life of an edge without shards when it is due; `shard` is the edge's name."""
        self.acknowledge(Ack.of_edge(self._shard, now, failing), now)

    def acknowledge(self, ack: Ack, now: int) -> None:
        """Send an acknowledgement if it has changed, or if it is time for a sign of life."""
        before = self._sent
        # Of a sign of life from the future the clock has been set back since.
        if before is not None and 0 <= now - before.time < HEARTBEAT and _content(before) == _content(ack):
            return
        if self._publisher.report(ACKS, self._shard.encode(), ack.to_bytes()):
            self._sent = ack


def _content(ack: Ack) -> tuple[int, int, str]:
    """The part of an acknowledgement that is compared with the last one."""
    return ack.plan, ack.activation, ack.state
