"""Reports of one shard to the registry: acknowledgements of plans, signs of life, and samples of readings."""

from __future__ import annotations

from tamis.messaging.records import Ack, Observation, ShardState
from tamis.messaging.topics import ACKS, SKETCHES
from tamis_edge.core.outbox import START_OF_TIME
from tamis_edge.core.sampling import Sampler
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.sources.base import SourceShard

HEARTBEAT = 2_000_000  # microseconds between equal acknowledgements


class Acks:
    """Sends acknowledgements by the publisher, of one shard or of an edge that has no shards yet, since it
    may have sources that fail. `now` is wall clock in microseconds.
    """

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._sent: Ack | None = None

    def send(self, ack: Ack, now: int) -> None:
        """Send an acknowledgement if it has changed, or if it is time for a sign of life."""
        before = self._sent
        # Of a sign of life from the future the clock has been set back since.
        if before is not None and 0 <= now - before.time < HEARTBEAT and _content(before) == _content(ack):
            return
        if self._publisher.report(ACKS, ack.shard.encode(), ack.to_bytes()):
            self._sent = ack


def _content(ack: Ack) -> tuple[int, int, str]:
    """The part of an acknowledgement that is compared with the last one."""
    return ack.plan, ack.activation, ack.state


class Reports:
    """The reports of one shard. `now` is wall clock in microseconds.

    In acknowledgements, `quiet` are the microseconds since the source last had something or the watermark
    moved. `waits`: the source has a reading that was not read.
    """

    def __init__(self, source: SourceShard, edge: str, publisher: Publisher) -> None:
        self._source, self._edge, self._publisher = source, edge, publisher
        self.acks = Acks(publisher)

    def sample(self, sampler: Sampler) -> None:
        """Send the sample of the shard's readings when it is due."""
        if sampler.due and self._publisher.ready:
            name, stream = self._source.name, self._source.stream
            observation = Observation(name, stream, sampler.report())
            self._publisher.report(SKETCHES, name.encode(), observation.to_bytes())

    def of_run(
        self, run: ShardRun, final_version: int | None, now: int, quiet: int, *, waits: bool
    ) -> Ack | None:
        """The acknowledgement of the plan that a run uses; None before its first commit. `final_version`: the
        plan version of final records that are durably sent.
        """
        if run.acknowledged is None:
            return None
        source, (plan, activation), tuples = self._source, run.acknowledged, run.totals
        never_read = run.durable.unread and not waits and not any(tuples.values())
        return Ack(
            source.name,
            source.stream,
            self._edge,
            plan,
            activation,
            "final" if final_version == plan else "active",
            now,
            0 if waits else quiet,
            run.reached,
            rereadable=None if source.rereadable else False,
            first_offset=None if run.history is None else run.history.first_offset,
            earliest=None if run.history is None else run.history.earliest,
            tuples=tuples,
            watermark=None if run.ended or run.watermark == START_OF_TIME else run.watermark,
            unused=not source.declared and never_read,
        )

    def without_run(self, version: int, now: int, quiet: int, *, waits: bool) -> Ack:
        """The acknowledgement of a shard that no plan lists. `version`: of the newest plan."""
        source, known = self._source, self._source.committed()
        state: ShardState
        plan, activation, state = version, 0, "waiting"
        if known is not None and known[1]:
            plan, activation, state = known[0].version, known[0].activation, "final"
        # The registry can tell a source that never had a reading from one that has fallen silent.
        never_read = state == "waiting" and known is not None and known[0].unread
        return Ack(
            source.name,
            source.stream,
            self._edge,
            plan,
            activation,
            state,
            now,
            0 if waits else quiet,
            rereadable=None if source.rereadable else False,
            tuples={} if never_read else None,
            # A file that has ended has its final records to send.
            unread=waits or source.ended,
            unused=not source.declared and never_read and not waits,
        )
