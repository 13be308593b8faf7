"""One edge: a loop over its sources, its shards and the publisher."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from tamis.errors import UnavailableError
from tamis.messaging.records import Ack
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.settings.http_security import HttpSecurity
from tamis.telemetry.health import disk_trouble
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis.web.authentication import Reason
from tamis_edge.core.commit import Commit
from tamis_edge.core.shedding import Shedder
from tamis_edge.plan_reader import PlanFile, PlanReader
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.publishing.publisher import Publisher
from tamis_edge.settings import EdgeConfig
from tamis_edge.shards.reports import Acks
from tamis_edge.shards.worker import Worker
from tamis_edge.sources.backfill import BackfillSources, too_far_ahead
from tamis_edge.sources.base import Source, SourceShard
from tamis_edge.sources.journal_shard import STRAY, JournalShard
from tamis_edge.sources.opening import HttpAccess, KafkaAccess, open_again, open_sources
from tamis_edge.storage.disk import DiskError, Reserve
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool
from tamis_edge.telemetry import EdgeTelemetry

_log = get_logger("edge")

MOST_FAILING = 10  # sources that a report names
LONGEST_REASON = 300  # characters of a reason in a report
SHOW_EVERY = 1_000_000  # microseconds between updates of the metrics
FLUSH = 4.0  # seconds that a stop waits for Kafka to take the records in flight, of the ten that it has
LAST_COMMITS = 2.0  # seconds that it waits for the last commits


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Edge:
    """One edge. `turn` is one round of its loop. All work happens in this thread, except reading plans, HTTP
    and MQTT.
    """

    def __init__(
        self,
        config: EdgeConfig,
        data: Path,
        kafka: KafkaSettings,
        metrics: Metrics,
        clock: Callable[[], int] = wall_clock,
        *,
        security: HttpSecurity = HttpSecurity(),  # noqa: B008
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`security` protects the HTTP sources. `stopping` tells whether `stop` follows: no answer is waited
        for any more.
        """
        self.config = config
        self._clock = clock
        self._metrics = metrics
        self._wake = threading.Event()
        self._telemetry = EdgeTelemetry(metrics, config.name)
        self._data = data
        self.reserve = Reserve(data / "reserve", config.limits.reserve)
        self._open_databases(data)
        files = DeadLetterFiles(data / "dead-letters", config.limits.spool, self.reserve)
        self.publisher = Publisher(kafka, config.name, self.spool, files, metrics)
        file = PlanFile(data, config.streams)
        self.plans = PlanReader(kafka, file, self.publisher.partition_counts, self._wake.set, config.name)
        self.workers: dict[str, Worker] = {}
        self._acks = Acks(self.publisher)
        access = KafkaAccess(kafka, self._last_commit, self._count_lost, stopping)
        again = partial(open_again, edge=config.name, journal=self.journal, wake=self._wake.set, kafka=access)
        self._backfills = BackfillSources(config.sources, again)
        self.sources = open_sources(
            config,
            self.journal,
            plan=lambda: self.plans.plan,
            planned=self._planned,
            wake=self._wake.set,
            kafka=access,
            access=HttpAccess(security, self._count_refused),
        )
        self._paused = False
        self._show_at = 0

    def _count_refused(self, reason: Reason) -> None:
        self._metrics.inc("tamis_http_refused_requests_total", service="edge", reason=reason)

    def _open_databases(self, data: Path) -> None:
        """Raises DiskError if the disk has no room even for the databases."""
        limits, reserve = self.config.limits, self.reserve
        self.journal = reserve.used(lambda: Journal(data / "journal.db", limits.journal, reserve))
        try:
            self.spool = reserve.used(lambda: Spool(data / "spool.db", limits.spool, reserve))
            try:
                self._delete_unfinished()
            except DiskError:
                self.spool.close()
                raise
        except DiskError:
            self.journal.close()
            raise

    def _delete_unfinished(self) -> None:
        """Delete spooled records whose readings will be delivered again, but not those of sources that are no
        longer configured.
        """
        read = {source.name for source in self.config.sources}
        for shard in self.journal.shards():
            if shard.rpartition("/")[2] in read:
                commit, _ = self.journal.committed(shard)
                number = None if commit.watched is None else commit.watched.number
                self.spool.delete_from(shard, commit.born + commit.decided, number)

    def _planned(self, stream: str) -> bool | None:
        """True if the plan has a stream; None if no plan was read since the start."""
        plan, fresh = self.plans.plan, self.plans.fresh
        if plan is None or plan.stream(stream) is not None:
            return None if plan is None else True
        return False if fresh else None

    def _count_lost(self, stream: str, readings: int) -> None:
        self._metrics.inc("tamis_edge_lost_readings_total", readings, edge=self.config.name, stream=stream)

    @property
    def _all_sources(self) -> list[Source]:
        """The configured sources, and those of backfill streams."""
        return [*self.sources, *self._backfills.sources]

    def start(self) -> None:
        """Start to read plans, and open the sources."""
        self.plans.start()
        for source in self.sources:
            source.start()

    def turn(self) -> bool:
        """One round of the loop. Returns True if more readings probably wait: the micro-batch was full, or a
        source has more.

        Raises:
            UnavailableError: Kafka or the disk refuses something that the edge needs.
            DeadThreadError: a thread of the edge has died.
        """
        self.journal.check()
        self.plans.check()
        for source in self._all_sources:
            source.check()
        now = self._clock()
        plan, fresh = self.plans.plan, self.plans.fresh
        self._backfills.obey(plan)
        self._meet_shards()
        self._pause(self.spool.full)
        came = 0
        limits = self.config.limits
        spool, journal = self.spool.bytes / limits.spool, 1 - self.journal.room / limits.journal
        for worker in self.workers.values():
            worker.obey(plan, fresh, now)
        readers = (worker.history_reader(plan) for worker in self.workers.values())
        waiting = too_far_ahead(one for one in readers if one is not None)
        for name, worker in self.workers.items():
            worker.set_pressure(spool, journal)
            if name in waiting:
                worker.hold_back(now)
            elif not self._paused:
                came += worker.read(self.config.batch.rows, now)
            worker.settle(now)
        self.publisher.poll()
        if self.publisher.fault is not None:
            raise UnavailableError(
                f"Kafka refused a record permanently: {self.publisher.fault}",
                hint="nothing is lost: start the edge again once the cause is removed",
            )
        failing = self._failing()
        for worker in self.workers.values():
            worker.commit(now)
            worker.report(now, failing)
        if all(worker.source.stream == STRAY for worker in self.workers.values()):
            self._acks.send(Ack.of_edge(self.config.name, now, failing), now)
        if now >= self._show_at:
            self._show_at = now + SHOW_EVERY
            if not self.reserve.held:
                self.spool.give_back()
                self.journal.give_back()
                self.reserve.hold()
            self._show(plan, now)
        # If nothing was taken, the readings that sources have wait for Kafka or for a plan.
        more = any(source.behind for source in self._all_sources)
        return came >= self.config.batch.rows or (came > 0 and more)

    def wait(self) -> None:
        """Wait until the next micro-batch is due, or until something arrives."""
        self._wake.wait(self.config.batch.wait / 1000)
        self._wake.clear()

    def topics(self) -> list[str]:
        """The stream topics of the plan in force."""
        plan = self.plans.plan
        return [topic.name for stream in plan.streams for topic in stream.topics] if plan else []

    def troubles(self) -> dict[str, str | None]:
        """The problem of each thing that the edge needs; None if it has no problem."""
        plan = self.plans.refused
        if plan is None and self.plans.plan is None and not self.plans.fresh:
            plan = "waiting for Kafka: there is no plan on this disk"
        disk = disk_trouble(self._data) if self.reserve.held else str(self.reserve.missing())
        denied = self.publisher.denied
        return {"plan": plan, "disk": disk, "rights": str(denied) if denied else None}

    def remark(self) -> str:
        """The problems of sources, for the operator. An edge is ready in spite of them."""
        return "; ".join(f"source {name}: {why}" for name, why in self._source_troubles().items() if why)

    def stop(self) -> None:
        """Accept no more readings, publish the decided tuples, commit, and close. Held tuples are read again
        after a restart.
        """
        self.plans.ask_to_stop()
        for source in self._all_sources:
            source.stop()
        now = self._clock()
        for worker in self.workers.values():
            worker.settle(now)
        self.publisher.poll()
        left = self.publisher.flush(FLUSH)
        self._last_commits()
        self._close_sources()
        self.plans.stop()
        self._show(self.plans.plan, self._clock())
        self.publisher.close()
        self.journal.close()
        self.spool.close()
        _log.info("stopped", undelivered=left)

    def _last_commits(self) -> None:
        until = time.monotonic() + LAST_COMMITS
        for worker in self.workers.values():
            worker.commit(self._clock(), at_once=True)
        while any(worker.committing for worker in self.workers.values()) and time.monotonic() < until:
            time.sleep(0.01)
            for source in self._all_sources:
                source.shards()
            for worker in self.workers.values():
                if worker.committing:
                    worker.commit(self._clock())

    def _close_sources(self) -> None:
        """Close all sources at once: in a rebalance each waits up to five seconds until its group lets
        it leave.
        """
        sources = self._all_sources
        if sources:
            with ThreadPoolExecutor(len(sources), "close") as threads:
                list(threads.map(lambda source: source.close(), sources))

    def _meet_shards(self) -> None:
        shards = {shard.name: shard for source in self._all_sources for shard in source.shards()}
        for name in [name for name, worker in self.workers.items() if shards.get(name) is not worker.source]:
            # It has moved to another edge, which reads again what was not committed.
            self._forget(self.workers.pop(name))
        for name, shard in shards.items():
            if name not in self.workers:
                self.workers[name] = Worker(
                    shard,
                    self.config.name,
                    self.publisher,
                    self._metrics,
                    self._shedder(shard),
                    progress_every=self.config.progress.every * 1_000,
                )

    def _shedder(self, shard: SourceShard) -> Shedder | None:
        """The shedder of a shard. Kafka topics and files can wait: only readings of HTTP and MQTT are ever
        shed.
        """
        sheds = self.config.overload.shed and isinstance(shard, JournalShard)
        return Shedder(np.random.default_rng()) if sheds else None

    def _forget(self, worker: Worker) -> None:
        if worker.run is not None:
            self._telemetry.count(worker.label, worker.run)

    def _last_commit(self, shard: str) -> Commit | None:
        worker = self.workers.get(shard)
        return worker.last_commit() if worker is not None else None

    def _source_troubles(self) -> dict[str, str | None]:
        found = {name: why for source in self.sources for name, why in source.troubles().items()}
        return found | dict(self._backfills.troubles())

    def _failing(self) -> dict[str, str] | None:
        """The failing sources for the reports of shards, few and with short reasons, since every shard's
        report has them; None if none fails.
        """
        found = {name: why[:LONGEST_REASON] for name, why in self._source_troubles().items() if why}
        return dict(islice(sorted(found.items()), MOST_FAILING)) or None

    def _pause(self, full: bool) -> None:
        if full != self._paused:
            self._paused = full
            _log.warning(
                "the spool is full: the sources are paused"
                if full
                else "the spool has room again: the sources continue"
            )
            for source in self._all_sources:
                source.refuse(full)

    def _show(self, plan: Plan | None, now: int) -> None:
        version = plan.version if plan is not None else 0
        self._telemetry.show(
            self.workers.values(),
            troubles=self._source_troubles(),
            spool=self.spool,
            journal=self.journal,
            paused=self._paused,
            disk_full=not self.reserve.held,
            version=version,
            now=now,
        )
