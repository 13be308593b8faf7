"""One shard at this edge: its source, its run, and the commits between them."""

from __future__ import annotations

from tamis.messaging.records import Ack, ShardState
from tamis.plan.model import Plan, StreamPlan
from tamis.query.backfill import Backfill
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.commit import Commit
from tamis_edge.core.progress import START_OF_TIME
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder, share_to_shed
from tamis_edge.decode.decoder import Decoder
from tamis_edge.decode.field_map import FieldMap
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.shards.alignment import Reader
from tamis_edge.shards.commits import Commits
from tamis_edge.shards.intake import Intake
from tamis_edge.shards.reports import Reports
from tamis_edge.sources.base import Delivery, SourceShard
from tamis_edge.sources.journal_shard import STRAY, JournalShard

_log = get_logger("edge.shard")

# The share of the journal above which it keeps no decided readings.
FULL_FOR_SERIES = 0.5


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
        self.run: ShardRun | None = None
        self._edge, self._publisher, self._metrics = edge, publisher, metrics
        self._shedder, self._progress_every = shedder, progress_every
        self._intake = Intake(source, edge, metrics)
        self._commits = Commits(source)
        self._reports = Reports(source.name, source.stream, publisher)
        self._version = 0
        self._planned = False
        self._unknown = False  # the plan doesn't have the stream: the run only makes dead letters
        # Of a shard that no plan lists: the offset from which its source is read, and the first delivery.
        self._listening: tuple[int, Decoder] | None = None
        self._unread: Delivery | None = None
        self._moved: int | None = None  # when the source last had something, or the watermark moved
        self._watermark: int | None = None

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
        if self.run is not None and (self._unknown != unknown or not (listed or unknown)):
            self._drop()
        if self.run is None:
            if listed:
                self._take_up(plan, now)
            elif unknown:
                self._take_up_unknown()
            elif stream is not None and self._listening is None:
                self._listen(plan)
        elif listed and plan.version > self.run.version and not self.run.rereading:
            known = self._intake.decoder
            decoder = self._decode_for(plan)
            if decoder is not known:
                self.source.decode_by(decoder)
            self.run.obey(plan, now)
            self._commits.due(now)

    def _listen(self, plan: Plan) -> None:
        """Start the source of a shard that isn't listed. A shard that was dropped because its source was
        silent is listed again when it has a reading, also after its edge has restarted.

        The reading is kept until then. Otherwise, if each fetch takes longer than `max_stall`, the shard
        would fetch the reading again and be dropped again before the reading arrived.
        """
        found = self.source.committed()
        if found is not None and not self._commits.pending:
            # What is read again for the series of watched streams is no new reading.
            self._start(found[0].decided, self._decode_for(plan))
            self._listening = found[0].decided, self._decode_for(plan)

    def _start(self, offset: int, decoder: Decoder) -> None:
        """Let the source deliver from `offset` on. A fetch from this offset that is already in progress is
        kept.
        """
        if self._listening == (offset, decoder):
            self._listening = None
            return
        if self._listening is not None:
            self._stop()
        self.source.start(offset, decoder)

    def _stop(self) -> None:
        self.source.stop()
        self._listening = self._unread = None

    def _take_up(self, plan: Plan, now: int) -> None:
        found = self.source.committed()
        if found is None or plan.version < found[0].version or self._commits.pending:
            return
        self._watermark = None
        commit, _ = found
        source = self.source
        run = ShardRun(
            source.name,
            source.stream,
            commit,
            plan,
            self._shedder,
            now=now,
            replayed=source.replayed,
            progress_every=self._progress_every,
        )
        self.run, self._unknown = run, False
        self._start(run.next_offset, self._decode_for(plan))
        self._commits.due(0)
        _log.info(
            "this edge now serves the shard", shard=source.name, plan=plan.version, offset=run.next_offset
        )

    def _take_up_unknown(self) -> None:
        found = self.source.committed()
        if found is None or self._commits.pending:
            return
        commit, _ = found
        nothing = Plan(commit.version, 1, since={self.source.name: commit.version})
        self.run, self._unknown = ShardRun(self.source.name, self.source.stream, commit, nothing), True
        self._start(
            commit.done, Decoder(StreamPlan(self.source.stream, (), None, 0, None, None, 0, ()), FieldMap())
        )

    def _drop(self) -> None:
        """Stop the run. Readings that are not committed come again when the shard is listed again."""
        run, found, decoder = self.run, self.source.committed(), self._intake.decoder
        waits = self._planned and not self._unknown and not self._commits.pending and self._unread is None
        if run and found and decoder and waits and run.next_offset == found[0].decided:
            # All that was read is committed: the fetch that is under way is for when it is listed again.
            self._listening = found[0].decided, decoder
        else:
            self._stop()
        self.run = None
        if not self._unknown:
            _log.info("the shard was dropped", shard=self.source.name, plan=self._version)

    def _decode_for(self, plan: Plan) -> Decoder:
        """The decoder for the next readings. Those that are read again under an older plan are decoded as its
        stream was.
        """
        stream = plan.stream(self.source.stream)
        assert stream is not None
        version = self.run.version if self.run is not None and self.run.rereading else plan.version
        return self._intake.decode_for(plan, stream, version)

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
        run = self.run
        if run is None:
            if self._listening is not None and self._unread is None:
                self._unread = self.source.poll(1, now)
            return 0
        publisher = self._publisher
        stuck = run.out and (not publisher.room or (publisher.stuck and not self.source.movable))
        if run.ended or run.settling or stuck:
            self._moved = now
            return 0
        delivery, self._unread = self._unread or self.source.poll(limit, now), None
        if self._moved is None or delivery is not None or self._watermark != run.watermark:
            self._moved, self._watermark = now, run.watermark
        if delivery is None:
            if self.source.ended:
                run.finish()
                self._commits.due(now)
            elif self.source.caught_up:
                run.idle(now)
            return 0
        labels = {"edge": self._edge, "stream": self.label}
        self._metrics.inc("tamis_edge_received_bytes_total", delivery.size, **labels)
        if self._unknown:
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
            self._reports.acknowledge(ack, now)

    def _ack(self, now: int, failing: dict[str, str] | None) -> Ack | None:
        source = self.source
        state: ShardState
        tuples: dict[str, int] | None = None
        if source.stream == STRAY or (self._unknown and self.run is not None):
            return None
        if self.run is None:
            found = source.committed()
            if found is not None and found[1]:
                plan, activation, state = found[0].version, found[0].activation, "final"
            else:
                plan, activation, state = self._version, 0, "waiting"
                # The registry can tell a source that never had a reading from one that has fallen silent.
                tuples = {} if found is not None and found[0].unread else None
        elif self.run.acknowledged is None:
            return None
        else:
            plan, activation = self.run.acknowledged
            state = "final" if self._commits.final_version == plan else "active"
            tuples = self.run.totals
        quiet = 0 if self._unread is not None or self._moved is None else now - self._moved
        reached = None if self.run is None else self.run.reached
        history = None if self.run is None else self.run.history
        watermark = None if self.run is None or self.run.ended else self.run.watermark
        return Ack(
            source.name,
            source.stream,
            self._edge,
            plan,
            activation,
            state,
            now,
            quiet,
            reached,
            rereadable=None if source.rereadable else False,
            first_offset=None if history is None else history.first_offset,
            earliest=None if history is None else history.earliest,
            failing=failing,
            tuples=tuples,
            watermark=None if watermark == START_OF_TIME else watermark,
            doubts=self._intake.doubts(now) or None,
            # A file that has ended has its final records to send.
            unread=self._unread is not None or source.ended if self.run is None else None,
            unused=not source.declared and self._never_read(tuples),
        )

    def _never_read(self, tuples: dict[str, int] | None) -> bool:
        """True if the shard never had a reading. `tuples`: as in its acknowledgement."""
        if self._unread is not None or tuples is None or any(tuples.values()):
            return False
        return self.run is None or self.run.durable.unread
