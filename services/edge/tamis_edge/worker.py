"""One shard at this edge: its source, its run, and the commits between them."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import Ack, Observation, ShardState
from tamis.messaging.topics import ACKS, SKETCHES
from tamis.planning.plan import Plan, StreamPlan
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.sampling import Sampler
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder, share_to_shed
from tamis_edge.decode.decoder import Decoder, FieldMap
from tamis_edge.publisher import Publisher
from tamis_edge.sources.base import Delivery, Payloads, SourceShard
from tamis_edge.sources.journalled import STRAY

_log = get_logger("edge.shard")

COMMIT_EVERY = (
    500_000  # microseconds; progress travels with commits, and each costs a synchronisation with the disk
)
HEARTBEAT = 2_000_000  # microseconds between acknowledgements that say nothing new
RETRY = 1_000_000  # microseconds after a commit that failed


class Worker:
    """Belongs to the edge's one loop; `now` is wall clock in microseconds throughout."""

    def __init__(
        self,
        source: SourceShard,
        edge: str,
        publisher: Publisher,
        metrics: Metrics,
        shedder: Shedder | None = None,
    ) -> None:
        self.source = source
        self.run: ShardRun | None = None
        self._edge, self._publisher, self._metrics = edge, publisher, metrics
        self._shedder = shedder
        self._version = 0
        self._planned = False
        self._decoder: Decoder | None = None
        self._sampler: Sampler | None = None
        self._unknown = False  # the run only sets readings aside, of a stream that the plan doesn't have
        self._making: tuple[ShardRun, Future[None], bool] | None = None
        self._commit_at = 0
        self._final: int | None = None  # plan version under which the final records went out, durably
        # Of a shard that a plan has dropped: whether its source is asked, and whether it has something.
        self._listening = self._unread = False
        self._moved: int | None = None  # when the source last had something, or the watermark moved
        self._watermark: int | None = None
        self._said: Ack | None = None

    @property
    def label(self) -> str:
        """The stream as metrics name it: one name for all that nothing but a sender names."""
        return self.source.stream if self._planned or self.source.declared else STRAY

    # ---- the plan

    def obey(self, plan: Plan | None, fresh: bool, now: int) -> None:
        """Start, stop or change over the run as the plan has it. `fresh`: the plan isn't only what the disk
        remembers.
        """
        if plan is None:
            return
        self._version = plan.version
        stream = plan.stream(self.source.stream)
        self._planned = stream is not None
        listed = stream is not None and self.source.name in plan.since
        unknown = stream is None and not self.source.declared and fresh
        if self.run is not None and (self._unknown != unknown or not (listed or unknown)):
            self._drop()
        if self.run is None:
            if listed:
                self._take_up(plan, now)
            elif unknown:
                self._take_up_unknown()
            elif stream is not None and self._moved is not None and not self._listening:
                self._listen(plan)
        elif listed and plan.version > self.run.version:
            self._decode_for(plan)
            self.run.obey(plan)
            self._commit_at = now

    def _listen(self, plan: Plan) -> None:
        """Start the source of a shard that isn't listed any more: one that was silent for too long comes back
        when it has something. What it delivers now comes again when the shard is taken up.
        """
        found = self.source.committed()
        if found is not None and self._making is None:
            self.source.start(found[0].done, self._decode_for(plan))
            self._listening = True

    def _take_up(self, plan: Plan, now: int) -> None:
        found = self.source.committed()
        if found is None or plan.version < found[0].version or self._making is not None:
            return
        self._listening = self._unread = False
        self._watermark = None
        commit, _ = found
        decoder = self._decode_for(plan)
        source = self.source
        run = ShardRun(source.name, source.stream, commit, plan, self._shedder, now=now)
        self.run, self._unknown = run, False
        self.source.start(commit.done, decoder)
        self._commit_at = 0
        _log.info("taken up", shard=self.source.name, plan=plan.version, offset=commit.done)

    def _take_up_unknown(self) -> None:
        found = self.source.committed()
        if found is None or self._making is not None:
            return
        commit, _ = found
        nothing = Plan(commit.version, 1, since={self.source.name: commit.version})
        self.run, self._unknown = ShardRun(self.source.name, self.source.stream, commit, nothing), True
        self.source.start(
            commit.done, Decoder(StreamPlan(self.source.stream, (), None, 0, None, None, 0, ()), FieldMap())
        )

    def _drop(self) -> None:
        """Stop without a trace: what is not committed comes again when the shard is listed again."""
        self.source.stop()
        self.run = None
        if not self._unknown:
            _log.info("dropped", shard=self.source.name, plan=self._version)

    def _decode_for(self, plan: Plan) -> Decoder:
        stream = plan.stream(self.source.stream)
        assert stream is not None
        if self._decoder is None or self._decoder.stream != stream:
            self._decoder = Decoder(stream, self.source.fields)
            self._sampler = Sampler(stream, np.random.default_rng())
        return self._decoder

    # ---- tuples

    def press(self, spool: float, journal: float) -> None:
        """Say which shares of spool and journal are filled. Readings that wait in the journal count only
        where some of them are this shard's.
        """
        if self._shedder is not None:
            self._shedder.share = share_to_shed(spool if self.source.caught_up else max(spool, journal))

    def read(self, limit: int, now: int) -> int:
        """Take a micro-batch; returns how many readings came."""
        run = self.run
        if run is None:
            if self._listening and not self._unread and self.source.poll(1, now) is not None:
                self._unread = True
                self.source.stop()
            return 0
        if run.ended or run.settling or (run.out and not self._publisher.room):
            self._moved = now
            return 0
        delivery = self.source.poll(limit, now)
        if self._moved is None or delivery is not None or self._watermark != run.watermark:
            self._moved, self._watermark = now, run.watermark
        if delivery is None:
            if self.source.ended:
                run.finish()
                self._commit_at = now
            elif self.source.caught_up:
                run.idle(now)
            return 0
        labels = {"edge": self._edge, "stream": self.label}
        self._metrics.inc("tamis_edge_received_bytes_total", delivery.size, **labels)
        if self._unknown:
            for row in range(len(delivery.offsets)):
                stream = self.source.stream
                if isinstance(delivery, Payloads) and delivery.streams:
                    stream = delivery.streams[row]
                error = f"no stream {stream!r:.250} in the plan"
                self._bury(run, delivery, row, Reason.UNKNOWN_STREAM, error)
        else:
            self._take(run, delivery, now)
        return len(delivery.offsets)

    def _take(self, run: ShardRun, delivery: Delivery, now: int) -> None:
        assert self._decoder is not None
        assert self._sampler is not None
        decoded = delivery.decode(self._decoder, now)
        for offence in decoded.offences:
            self._bury(run, delivery, offence.row, offence.reason, offence.error)
        rows = decoded.rows
        if len(rows):
            self._sampler.take(decoded.columns, len(rows))
            run.take(
                Batch(decoded.columns, decoded.times, delivery.offsets[rows], delivery.arrivals[rows]), now
            )
        run.skip(int(delivery.offsets[-1]) + 1)

    def _bury(self, run: ShardRun, delivery: Delivery, row: int, reason: Reason, error: str) -> None:
        source, offset = self.source, int(delivery.offsets[row])
        payload = delivery.payload(row)
        letter = DeadLetter(payload, "edge", source.topic, source.partition, offset, reason, error)
        run.bury(letter, int(delivery.arrivals[row]) // 1000)
        self._metrics.inc("tamis_dead_letters_total", service="edge", reason=reason.value)

    def settle(self, now: int) -> None:
        """Decide by watermark and clock, and send on."""
        if self.run is not None:
            self.run.settle(now)
            self._publisher.send(self.run, self.source.movable)

    # ---- commits and acknowledgements

    @property
    def committing(self) -> bool:
        """A commit is not durable yet."""
        return self._making is not None

    def commit(self, now: int, at_once: bool = False) -> None:
        """Finish the commit in the making, and begin one when it is time."""
        if self._making is not None:
            run, done, final = self._making
            if not done.done():
                return
            self._making = None
            fault = done.exception()
            if fault is not None:
                _log.warning("a commit failed", shard=self.source.name, error=str(fault))
                run.commit_failed()
                self._commit_at = now + RETRY
                return
            self._committed(run, final, now)
        run_now = self.run
        if run_now is None or (now < self._commit_at and not at_once):
            return
        commit = run_now.commit()
        if commit is None:
            return
        self._commit_at = now + COMMIT_EVERY
        final = run_now.ended and run_now.final_version == run_now.version
        if commit == run_now.durable and not (final and self._final != run_now.version):
            self._committed(run_now, final, now)
        else:
            self._making = run_now, self.source.commit(commit, final), final

    def _committed(self, run: ShardRun, final: bool, now: int) -> None:
        run.committed(now)
        self._final = run.durable.version if final else None

    def last_commit(self) -> Commit | None:
        """What may be committed as the shard moves away; None where there is nothing to add."""
        return self.run.commit() if self.run is not None else None

    def say(self, now: int) -> None:
        """Tell the registry of the shard: when something changed, and as a sign of life; and what its
        readings are like.
        """
        if self._sampler is not None and self._sampler.due and self._publisher.ready:
            told = Observation(self.source.name, self.source.stream, self._sampler.tell())
            self._publisher.say(SKETCHES, self.source.name.encode(), told.to_bytes())
        ack = self._ack(now)
        if ack is None:
            return
        before = self._said
        if before is not None and now - before.time < HEARTBEAT and _tells(before) == _tells(ack):
            return
        if self._publisher.say(ACKS, self.source.name.encode(), ack.to_bytes()):
            self._said = ack

    def _ack(self, now: int) -> Ack | None:
        source = self.source
        state: ShardState
        if source.stream == STRAY or (self._unknown and self.run is not None):
            return None
        if self.run is None:
            found = source.committed()
            if found is not None and found[1]:
                plan, activation, state = found[0].version, found[0].activation, "final"
            else:
                plan, activation, state = self._version, 0, "waiting"
        elif self.run.acknowledged is None:
            return None
        else:
            plan, activation = self.run.acknowledged
            state = "final" if self._final == plan else "active"
        quiet = 0 if self._unread or self._moved is None else now - self._moved
        return Ack(source.name, source.stream, self._edge, plan, activation, state, now, quiet)


def _tells(ack: Ack) -> tuple[int, int, str]:
    """What in a shard's acknowledgements can be news."""
    return ack.plan, ack.activation, ack.state
