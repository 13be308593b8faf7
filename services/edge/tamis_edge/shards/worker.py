"""One shard at this edge: its source, its run, and the commits between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from tamis.declarations.backfill import Backfill
from tamis.messaging.records import Ack
from tamis.plan.model import Plan, StreamPlan
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.commit import Commit
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder, share_to_shed
from tamis_edge.decode.decoder import Decoder
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.shards.commits import Commits
from tamis_edge.shards.intake import Intake
from tamis_edge.shards.reports import Reports
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.backfill import Reader
from tamis_edge.sources.base import Delivery, SourceShard
from tamis_edge.sources.journal_shard import STRAY, JournalShard
from tamis_edge.sources.kafka.shard import KafkaShard

_log = get_logger("edge.shard")

# The share of the journal above which it keeps no decided readings.
FULL_FOR_SERIES = 0.5
# The share of the journal above which all readings in partial aggregates are sent.
FULL_FOR_CUTS = 0.25


@dataclass(frozen=True, slots=True)
class Idle:
    """The source delivers nothing: no plan lists the shard, or its commit isn't known yet."""


@dataclass(slots=True)
class Listening:
    """No plan lists the shard, but its source delivers from `offset` on. `first`: the first delivery.

    A shard that was dropped because its source was silent is listed again when it has a reading, also after
    its edge has restarted. The reading is kept until then. Otherwise, if each fetch takes longer than
    `max_stall`, the shard would fetch the reading again and be dropped again before the reading arrived.
    """

    offset: int
    decoder: Decoder
    first: Delivery | None = None


@dataclass(slots=True)
class Serving:
    """A plan lists the shard. `first`: a delivery from before, not yet read. `watermark`: that of the run
    when it read last.
    """

    run: ShardRun
    first: Delivery | None = None
    watermark: int | None = None


@dataclass(slots=True)
class Rejecting:
    """The plan doesn't have the shard's stream: the run only makes dead letters."""

    run: ShardRun
    watermark: int | None = None


State = Idle | Listening | Serving | Rejecting


class Worker:
    """One shard at this edge. It belongs to the edge's loop; `now` is wall clock in microseconds."""

    def __init__(
        self,
        source: SourceShard,
        edge: str,
        publisher: Publisher,
        metrics: Metrics,
        shedder: Shedder | None = None,
        *,
        progress_every: int = 0,
    ) -> None:
        """`progress_every`: microseconds, see `SentProgress`."""
        self.source = source
        self._state: State = Idle()
        self._edge, self._publisher, self._metrics = edge, publisher, metrics
        self._shedder, self._progress_every = shedder, progress_every
        self._intake = Intake(source, edge, metrics)
        self._commits = Commits(source)
        self._reports = Reports(source, edge, publisher)
        self._version = 0
        self._planned = False
        self._moved: int | None = None  # when the source last had something, or the watermark moved

    @property
    def run(self) -> ShardRun | None:
        """The run, while there is one."""
        return self._state.run if isinstance(self._state, Serving | Rejecting) else None

    @property
    def label(self) -> str:
        """The stream as metrics name it. All streams that are unknown to the plan share one label."""
        return self.source.stream if self._planned or self.source.declared else STRAY

    # ---- the plan

    def obey(self, plan: Plan | None, fresh: bool, now: int) -> None:
        """Start, stop or change the run according to the plan. `fresh`: the plan was read from Kafka, not
        only from the disk.
        """
        if plan is None:
            return
        self._version = plan.version
        stream = plan.stream(self.source.stream)
        self._planned = stream is not None
        listed = stream is not None and self.source.name in plan.since
        unknown = stream is None and not self.source.declared and fresh
        match self._state:
            case Serving() as serving if not listed:
                self._drop(serving)
            case Rejecting() if not unknown:
                self._stop()
        match self._state:
            case Serving(run):
                if plan.version > run.version and not run.rereading:
                    if run.ready(plan):
                        self._change(run, plan, now)
                    else:
                        self._commits.due(now)
            case Rejecting():
                pass
            case Idle() | Listening() as state:
                if listed:
                    self._take_up(plan, now)
                elif unknown:
                    self._reject()
                elif stream is not None and isinstance(state, Idle):
                    self._listen(plan)
            case other:
                assert_never(other)

    def _change(self, run: ShardRun, plan: Plan, now: int) -> None:
        known = self._intake.decoder
        decoder = self._decode_for(plan)
        if decoder is not known:
            self.source.decode_by(decoder)
        run.obey(plan, now)
        self._commits.due(now)

    def _listen(self, plan: Plan) -> None:
        known = self.source.committed()
        if known is not None and not self._commits.pending:
            # What is read again for the series of watched streams is no new reading.
            offset, decoder = known[0].decided, self._decode_for(plan)
            self.source.start(offset, decoder)
            self._state = Listening(offset, decoder)

    def _start(self, offset: int, decoder: Decoder) -> Delivery | None:
        """Let the source deliver from `offset` on. A fetch from this offset that is already in progress is
        kept, and what has come of it is returned.
        """
        if isinstance(self._state, Listening):
            if (self._state.offset, self._state.decoder) == (offset, decoder):
                return self._state.first
            self.source.stop()
        self.source.start(offset, decoder)
        return None

    def _stop(self) -> None:
        self.source.stop()
        self._state = Idle()

    def _take_up(self, plan: Plan, now: int) -> None:
        known = self.source.committed()
        if known is None or plan.version < known[0].form or self._commits.pending:
            return
        source = self.source
        run = ShardRun(
            source.name,
            source.stream,
            known[0],
            plan,
            self._shedder,
            now=now,
            replayed=source.replayed,
            progress_every=self._progress_every,
        )
        self._state = Serving(run, self._start(run.next_offset, self._decode_for(plan, run.version)))
        self._commits.due(0)
        _log.info(
            "this edge now serves the shard", shard=source.name, plan=plan.version, offset=run.next_offset
        )

    def _reject(self) -> None:
        known = self.source.committed()
        if known is None or self._commits.pending:
            return
        source, (commit, _) = self.source, known
        nothing = Plan(commit.version, 1, since={source.name: commit.version})
        stream = StreamPlan(source.stream, (), None, 0, None, None, 0, ())
        self._start(commit.done, Decoder(stream, FieldMap()))
        self._state = Rejecting(ShardRun(source.name, source.stream, commit, nothing))

    def _drop(self, state: Serving) -> None:
        """Stop the run. Readings that are not committed come again when the shard is listed again."""
        known, decoder = self.source.committed(), self._intake.decoder
        waits = self._planned and not self._commits.pending and state.first is None
        if known and decoder and waits and state.run.next_offset == known[0].decided:
            # All that was read is committed: the fetch that is under way is for when it is listed again.
            self._state = Listening(known[0].decided, decoder)
        else:
            self._stop()
        _log.info("the shard was dropped", shard=self.source.name, plan=self._version)

    def _decode_for(self, plan: Plan, version: int | None = None) -> Decoder:
        """The decoder for the next readings. Those that are read again under an older plan are decoded as its
        stream was, which `version` names.
        """
        stream = plan.stream(self.source.stream)
        assert stream is not None
        return self._intake.decode_for(plan, stream, plan.version if version is None else version)

    # ---- tuples

    def set_pressure(self, spool: float, journal: float) -> None:
        """Set how full the spool and the journal are. The journal counts only if it has readings of this
        shard.

        A journal that is half full must not fill up with readings that are kept only for a restart: sources
        would be refused, event time would stand still, and so the readings would stay.
        """
        if self.run is not None and isinstance(self.source, JournalShard):
            keep = journal < FULL_FOR_SERIES
            if self.run.watched and keep != self.run.keep_series:
                _log.warning(
                    "the journal has room again for the readings that similar() needs after a restart"
                    if keep
                    else "the journal is half full: after a restart, windows that began before it are missed",
                    shard=self.source.name,
                )
            self.run.keep_series = keep
            # Readings of partial aggregates that weren't sent stay in the journal.
            self.run.partials.full = journal >= FULL_FOR_CUTS
        if self.run is not None and isinstance(self.source, KafkaShard):
            self.run.partials.full = self.source.deletes_soon
        if self._shedder is not None:
            self._shedder.share = share_to_shed(spool if self.source.caught_up else max(spool, journal))

    def history_reader(self, plan: Plan | None) -> Reader | None:
        """The shard for alignment, if it is one of a backfill stream; None for other shards, without a run
        and without event time.
        """
        source, run = self.source, self.run
        if run is None or plan is None or Backfill.named(source.stream) is None:
            return None
        stream = plan.stream(source.stream)
        if stream is None or stream.time is None:
            return None
        going = not (run.ended or source.ended or source.caught_up)
        return Reader(source.name, source.stream, run.high, stream.max_stall, going)

    def hold_back(self, now: int) -> None:
        """Read nothing now. The shard doesn't count as silent."""
        self._moved = now

    def read(self, limit: int, now: int) -> int:
        """Take a micro-batch; returns how many readings came."""
        match self._state:
            case Idle():
                return 0
            case Listening() as state:
                state.first = state.first or self.source.poll(1, now)
                return 0
            case Serving() | Rejecting() as state:
                return self._read(state, limit, now)
            case other:
                assert_never(other)

    def _read(self, state: Serving | Rejecting, limit: int, now: int) -> int:
        run, publisher = state.run, self._publisher
        stuck = run.out and (not publisher.room or (publisher.stuck and not self.source.movable))
        if run.ended or run.settling or run.partials.overfull or stuck:
            self._moved = now
            return 0
        first = None
        if isinstance(state, Serving):
            first, state.first = state.first, None
        if run.partials.fence.asks_for_end():
            self.source.confirm_end()
        if run.partials.fence.asked and self.source.read_through(run.next_offset):
            run.partials.fence.source_read()
        delivery = first or self.source.poll(limit, now)
        if delivery is not None or state.watermark != run.watermark:
            self._moved, state.watermark = now, run.watermark
        if delivery is None:
            if self.source.ended:
                run.finish()
                self._commits.due(now)
            elif self.source.caught_up:
                run.idle(now)
            return 0
        labels = {"edge": self._edge, "stream": self.label}
        self._metrics.inc("tamis_edge_received_bytes_total", delivery.size, **labels)
        if isinstance(state, Rejecting):
            self._intake.reject(run, delivery)
        else:
            self._intake.take(run, delivery, self.label, now)
        return len(delivery.offsets)

    def settle(self, now: int) -> None:
        """Decide by watermark and clock, and send records."""
        if self.run is not None:
            self.run.settle(now)
            self._publisher.send(self.run, self.source.movable)

    # ---- commits and acknowledgements

    @property
    def committing(self) -> bool:
        """A commit is not durable yet."""
        return self._commits.pending

    def commit(self, now: int, at_once: bool = False) -> None:
        """Finish the pending commit, and begin another one when it is time."""
        self._commits.advance(self.run, now, at_once=at_once)

    def last_commit(self) -> Commit | None:
        """The last commit of a shard that moves away; None if there is nothing to add."""
        return self.run.commit() if self.run is not None else None

    def report(self, now: int, failing: dict[str, str] | None = None) -> None:
        """Report to the registry: the plan that the shard uses, a sample of its readings, and the `failing`
        sources of its edge with the reasons.
        """
        if self._intake.sampler is not None and Backfill.named(self.source.stream) is None:
            self._reports.sample(self._intake.sampler)
        ack = self._ack(now, failing)
        if ack is not None:
            self._reports.acks.send(ack, now)

    def _ack(self, now: int, failing: dict[str, str] | None) -> Ack | None:
        if self.source.stream == STRAY:
            return None
        quiet = 0 if self._moved is None else now - self._moved
        match self._state:
            case Rejecting():
                return None
            case Serving(run, first):
                final = self._commits.final_version
                ack = self._reports.of_run(run, final, now, quiet, waits=first is not None)
            case Idle():
                ack = self._reports.without_run(self._version, now, quiet, waits=False)
            case Listening(first=first):
                ack = self._reports.without_run(self._version, now, quiet, waits=first is not None)
            case other:
                assert_never(other)
        return ack and replace(ack, failing=failing, doubts=self._intake.doubts(now) or None)
