"""The edge as a process: one loop over sources, shards and the way to Kafka."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np

from tamis.collecting import collect_seldom
from tamis.errors import UnavailableError
from tamis.planning.plan import Plan
from tamis.settings import KafkaSettings, ServiceSettings
from tamis.telemetry.health import Health
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.server import TelemetryServer
from tamis_edge.aside import LetterFiles
from tamis_edge.config import EdgeConfig, FileSource, HttpSource, KafkaSource, MqttSource
from tamis_edge.core.commit import Commit
from tamis_edge.core.shedding import Shedder
from tamis_edge.core.warm_up import warm_up
from tamis_edge.journal import Journal
from tamis_edge.plans import PlanFile, PlanReader
from tamis_edge.publisher import Publisher
from tamis_edge.sources.base import Source, SourceShard
from tamis_edge.sources.journalled import JournalShard
from tamis_edge.spool import Spool
from tamis_edge.telemetry import EdgeTelemetry
from tamis_edge.worker import Worker

_log = get_logger("edge")

SHOW_EVERY = 1_000_000  # microseconds between looks at the metrics
FLUSH = 4.0  # seconds that a stop waits for Kafka to take what is on its way, of the ten that it has
LAST_COMMITS = 2.0  # and for the last commits


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Edge:
    """One edge service. `turn` is one round of its loop, and all that happens on its thread."""

    def __init__(
        self,
        config: EdgeConfig,
        data: Path,
        kafka: KafkaSettings,
        metrics: Metrics,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.config = config
        self._clock = clock
        self._metrics = metrics
        self._wake = threading.Event()
        self._telemetry = EdgeTelemetry(metrics, config.name)
        self.journal = Journal(data / "journal.db", config.limits.journal)
        self.spool = Spool(data / "spool.db", config.limits.spool)
        self._give_up_unfinished()
        files = LetterFiles(data / "dead-letters", config.limits.spool)
        self.publisher = Publisher(kafka, config.name, self.spool, files, metrics)
        self.plans = PlanReader(
            kafka, PlanFile(data / "plan.json"), self.publisher.partitions, self._wake.set
        )
        self.workers: dict[str, Worker] = {}
        self.sources = self._open_sources(kafka)
        self._paused = False
        self._show_at = 0

    def _give_up_unfinished(self) -> None:
        """Forget what is spooled of readings that come again, but not where nothing reads them any more."""
        read = {source.name for source in self.config.sources}
        for shard in self.journal.shards():
            if shard.rpartition("/")[2] in read:
                commit, _ = self.journal.committed(shard)
                self.spool.give_up(shard, commit.born + commit.done)

    def _open_sources(self, kafka: KafkaSettings) -> list[Source]:
        from tamis_edge.sources.file import FileSources
        from tamis_edge.sources.http import HttpSources
        from tamis_edge.sources.kafka import KafkaTopic
        from tamis_edge.sources.mqtt import MqttShards

        config, journal = self.config, self.journal
        sources: list[Source] = []
        http = [source for source in config.sources if isinstance(source, HttpSource)]
        if http:
            sources.append(
                HttpSources(
                    http,
                    edge=config.name,
                    http=config.http,
                    journal=journal,
                    plan=lambda: self.plans.plan,
                    wake=self._wake.set,
                )
            )
        files = [source for source in config.sources if isinstance(source, FileSource)]
        if files:
            sources.append(FileSources(files, config.name, journal))
        for source in config.sources:
            if isinstance(source, MqttSource):
                sources.append(
                    MqttShards(
                        source,
                        edge=config.name,
                        journal=journal,
                        limit=config.limits.journal,
                        planned=self._planned,
                        wake=self._wake.set,
                    )
                )
            elif isinstance(source, KafkaSource):
                lost = partial(
                    self._metrics.inc,
                    "tamis_edge_lost_readings_total",
                    edge=config.name,
                    stream=source.stream,
                )
                sources.append(KafkaTopic(source, kafka, self._last_commit, lost))
        return sources

    def _planned(self, stream: str) -> bool | None:
        """Whether the plan has a stream; None while no plan of this life could tell."""
        plan, fresh = self.plans.plan, self.plans.fresh
        if plan is None or plan.stream(stream) is not None:
            return None if plan is None else True
        return False if fresh else None

    def start(self) -> None:
        """Begin to read plans and to open the sources."""
        self.plans.start()
        for source in self.sources:
            source.start()

    def turn(self) -> bool:
        """One round; returns whether more is likely to wait: as much came as fits into a micro-batch, or a
        source has more at hand than was taken.

        Raises:
            UnavailableError: Kafka or the disk refuses what the edge can't go on without.
            DeadThreadError: a part of the edge has died.
        """
        self.journal.check()
        self.plans.check()
        for source in self.sources:
            source.check()
        now = self._clock()
        plan, fresh = self.plans.plan, self.plans.fresh
        self._meet_shards()
        self._pause(self.spool.full)
        came = 0
        limits = self.config.limits
        spool, journal = self.spool.bytes / limits.spool, 1 - self.journal.room / limits.journal
        for worker in self.workers.values():
            worker.obey(plan, fresh, now)
            worker.press(spool, journal)
            if not self._paused:
                came += worker.read(self.config.batch.rows, now)
            worker.settle(now)
        self.publisher.poll()
        if self.publisher.fault is not None:
            raise UnavailableError(
                f"Kafka refused a record for good: {self.publisher.fault}",
                hint="nothing is lost: start the edge again once the cause is removed",
            )
        for worker in self.workers.values():
            worker.commit(now)
            worker.say(now)
        if now >= self._show_at:
            self._show_at = now + SHOW_EVERY
            self._show(plan, now)
        # With nothing taken there is no hurry: what is at hand waits for Kafka or for a plan.
        more = any(source.behind for source in self.sources)
        return came >= self.config.batch.rows or (came > 0 and more)

    def wait(self) -> None:
        """Until the next micro-batch is due, or something came."""
        self._wake.wait(self.config.batch.wait / 1000)
        self._wake.clear()

    def wake(self) -> None:
        """End a `wait` early; may be called from a signal handler."""
        self._wake.set()

    def readiness(self) -> str | None:
        """Why the edge can't do its work; None where it can."""
        if self.plans.refused is not None:
            return self.plans.refused
        if self.plans.plan is None and not self.plans.fresh:
            return "waiting for Kafka: there is no plan on this disk"
        return None

    def stop(self) -> None:
        """Take nothing more, publish what is decided, commit, and close. What is held comes again from its
        source.
        """
        for source in self.sources:
            source.stop()
        now = self._clock()
        for worker in self.workers.values():
            worker.settle(now)
        self.publisher.poll()
        left = self.publisher.flush(FLUSH)
        self._last_commits()
        for source in self.sources:
            source.close()
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
            for source in self.sources:
                source.shards()
            for worker in self.workers.values():
                if worker.committing:
                    worker.commit(self._clock())

    def _meet_shards(self) -> None:
        shards = {shard.name: shard for source in self.sources for shard in source.shards()}
        for name in [name for name, worker in self.workers.items() if shards.get(name) is not worker.source]:
            # Moved to another edge: what was not committed is its work now.
            self._forget(self.workers.pop(name))
        for name, shard in shards.items():
            if name not in self.workers:
                self.workers[name] = Worker(
                    shard, self.config.name, self.publisher, self._metrics, self._shedder(shard)
                )

    def _shedder(self, shard: SourceShard) -> Shedder | None:
        """Kafka topics and files wait by themselves: only what HTTP and MQTT bring is ever shed."""
        sheds = self.config.overload.shed and isinstance(shard, JournalShard)
        return Shedder(np.random.default_rng()) if sheds else None

    def _forget(self, worker: Worker) -> None:
        if worker.run is not None:
            self._telemetry.count(worker.label, worker.run.take_counts())

    def _last_commit(self, shard: str) -> Commit | None:
        worker = self.workers.get(shard)
        return worker.last_commit() if worker is not None else None

    def _pause(self, full: bool) -> None:
        if full != self._paused:
            self._paused = full
            _log.warning("the spool is full, pausing the sources" if full else "going on")
            for source in self.sources:
                source.refuse(full)

    def _show(self, plan: Plan | None, now: int) -> None:
        version = plan.version if plan is not None else 0
        self._telemetry.show(
            self.workers.values(),
            troubles={name: why for source in self.sources for name, why in source.troubles().items()},
            spool=self.spool,
            journal=self.journal,
            paused=self._paused,
            version=version,
            now=now,
        )


def serve(config: EdgeConfig, kafka: KafkaSettings, settings: ServiceSettings) -> None:
    """Run an edge until SIGTERM or SIGINT."""
    metrics, health = Metrics("edge"), Health()
    edge = Edge(config, config.data or settings.data, kafka, metrics)
    telemetry = TelemetryServer(metrics, health, settings.telemetry_host, settings.telemetry_port)
    stopping = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopping.set()
        edge.wake()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    telemetry.start()
    warm_up()
    collect_seldom()
    edge.start()
    _log.info("started", edge=config.name, telemetry=telemetry.url, data=str(config.data or settings.data))
    try:
        while not stopping.is_set():
            telemetry.check()
            busy = edge.turn()
            health.beat()
            reason = edge.readiness()
            if reason is None:
                health.ready()
            else:
                health.not_ready(reason)
            if not busy:
                edge.wait()
    except BaseException as error:
        health.failed(str(error))
        raise
    finally:
        health.not_ready("stopping")
        edge.stop()
        telemetry.stop()
