"""The registry's one loop: it alone decides and writes; HTTP threads hand it jobs and wait."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from tamis.errors import InputError, TamisError, UnavailableError
from tamis.messaging.compacted import Record
from tamis.messaging.topics import ACKS, FRONTIERS, SKETCHES
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, get_logger
from tamis_registry.core.change import Change
from tamis_registry.core.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state import State, recover
from tamis_registry.gauges import show
from tamis_registry.history import History
from tamis_registry.reports import read, read_ack, read_frontier, read_observation
from tamis_registry.settings import DEFAULT_PARTITIONS
from tamis_registry.store import FencedError, LostTransactionError, Recovered, Store
from tamis_registry.unwritten import Unwritten

T = TypeVar("T")

# Shards that announce themselves within one turn come into one plan.
TURN_SECONDS = 0.1
TICK_SECONDS = 0.5
PROBE_SECONDS = 5.0
JOB_SECONDS = 30.0
TAKEOVER_SECONDS = 5.0

_log = get_logger("tamis.registry")


@dataclass
class _Job(Generic[T]):
    decide: Callable[[Registry, int], tuple[T, Change]]
    answer: Future[T]


class Worker:
    """Recovers from Kafka, decides, writes; and does so again after every failure, until it is stopped or
    fenced.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        partitions: int | None,
        planner: Planner,
        metrics: Metrics,
        health: Health,
    ) -> None:
        self._kafka = kafka
        self._partitions = partitions
        self._planner = planner
        self._metrics = metrics
        self._health = health
        self._owner = uuid.uuid4().hex
        self._was_writer = False
        self._jobs: SimpleQueue[_Job[object]] = SimpleQueue()
        self._lock = threading.Lock()
        self._registry: Registry | None = None
        self._away: str | None = "the registry is starting"
        self.plans = History()
        self._unwritten = Unwritten()

    # ---- for HTTP threads

    def submit(self, decide: Callable[[Registry, int], tuple[T, Change]]) -> T:
        """Have the loop decide and perform; returns once it is durable. Raises what `decide` raises.

        UnavailableError: the registry can't write now, or nobody knows whether it was written.
        """
        self._check_available()
        job = _Job(decide, Future())
        self._jobs.put(job)  # type: ignore[arg-type]
        try:
            return job.answer.result(JOB_SECONDS)
        except TimeoutError:
            raise UnavailableError(
                "no answer from Kafka yet",
                where="registry",
                hint="send it again: statements that are in force already stay unchanged",
            ) from None

    @contextmanager
    def reading(self) -> Iterator[tuple[Registry, int]]:
        """The registry as it is now, and the time; nothing changes meanwhile."""
        with self._lock:
            if self._registry is None:
                raise UnavailableError(self._away or "starting", where="registry", hint="try again")
            yield self._registry, _now()

    # ---- the loop

    def run(self, stopping: threading.Event) -> None:
        """Work until `stopping` is set. Raises FencedError when another registry has taken over, InputError
        where Kafka holds a fleet that doesn't fit the settings.
        """
        pause = 0.5
        try:
            while not stopping.is_set():
                began = time.monotonic()
                self._health.beat()
                try:
                    self._serve(stopping)
                except UnavailableError as error:
                    self._lose(str(error))
                    _log.warning("kafka is away, starting over", error=str(error), seconds=pause)
                    # Long enough in service counts as a success: the next failure starts with a short pause.
                    pause = 0.5 if time.monotonic() - began > 60 else min(pause * 2, 8.0)
                    # Whoever has taken over needs a moment to say so; asking too early would take it back.
                    stopping.wait(TAKEOVER_SECONDS if isinstance(error, LostTransactionError) else pause)
        except (FencedError, InputError) as error:
            self._lose(str(error))
            raise
        self._lose("the registry is stopping")

    def _serve(self, stopping: threading.Event) -> None:
        store = Store(self._kafka, self._owner)
        try:
            self._start(store)
            ticked = probed = time.monotonic()
            while not stopping.is_set():
                self._health.beat()
                self._one_job(store)
                self._take_reports(store.poll(), _now())
                self._write_plan(store, self._current())
                # While Kafka is away nothing can be written, and nobody be judged by their silence.
                if self._away is None and time.monotonic() - ticked >= TICK_SECONDS:
                    self._tick(store)
                    ticked = time.monotonic()
                if time.monotonic() - probed >= PROBE_SECONDS:
                    self._probe(store)
                    probed = time.monotonic()
            self._write_plan(store, self._current(), ending=True)
        finally:
            store.close()

    def _start(self, store: Store) -> None:
        found = store.take_over(self._was_writer)
        self._was_writer = True
        before = recover(found.statements)
        partitions = self._fleet_partitions(before)
        store.topics.ensure_base(partitions)
        store.read_plans(found)
        self.plans, self._unwritten = found.plans, Unwritten()
        state = before.draft() if before else State(partitions)
        state.owner = self._owner
        registry = Registry(self._planner, state, before, found.plans.greatest, _now())
        self._recover_reports(registry, found)
        change = registry.begin(_now())
        self._perform(store, registry, change)
        with self._lock:
            self._registry = registry
        self._available()
        _log.info(
            "ready",
            plan=registry.plan.version,
            partitions=partitions,
            statements=len(state.statements),
            shards=len(state.shards),
        )

    def _fleet_partitions(self, before: State | None) -> int:
        if before is None:
            return self._partitions or DEFAULT_PARTITIONS
        if self._partitions not in (None, before.partitions):
            raise InputError(
                f"the fleet has {before.partitions} partitions, and {self._partitions} are set",
                where="TAMIS_PARTITIONS",
                hint=f"set it to {before.partitions} or leave it out: with another count keys would move",
            )
        return before.partitions

    def _recover_reports(self, registry: Registry, found: Recovered) -> None:
        for value in found.acks.values():
            ack = read(Record(ACKS, 0, 0, None, value), read_ack, self._metrics)
            if ack:
                registry.hear(ack, None)
        for value in found.frontiers.values():
            frontier = read(Record(FRONTIERS, 0, 0, None, value), read_frontier, self._metrics)
            if frontier:
                registry.follow(frontier)
        for value in found.sketches.values():
            told = read(Record(SKETCHES, 0, 0, None, value), read_observation, self._metrics)
            if told:
                registry.observe(told)

    def _one_job(self, store: Store) -> None:
        try:
            job = self._jobs.get(timeout=TURN_SECONDS)
        except Empty:
            return
        registry = self._current()
        try:
            with self._lock:
                result, change = job.decide(registry, _now())
            # Before anything is durable: someone else may have made a topic of that name.
            store.topics.check_streams(change.topics, change.state.partitions)
            if change.written is not None:
                store.check_plan(change.written)
        except TamisError as error:
            job.answer.set_exception(error)
            return
        except Exception:
            # A fault of ours in one text must not end the service for all others; it is logged whole.
            _log.exception("statement failed")
            job.answer.set_exception(TamisError("the registry failed on this; its log says how"))
            return
        try:
            self._perform(store, registry, change)
        except TamisError as error:
            job.answer.set_exception(error)
            raise
        job.answer.set_result(result)

    def _take_reports(self, records: list[Record], now: int) -> None:
        with self._lock:
            registry = self._current()
            for record in records:
                if record.topic == ACKS and (ack := read(record, read_ack, self._metrics)):
                    registry.hear(ack, now)
                elif record.topic == FRONTIERS and (frontier := read(record, read_frontier, self._metrics)):
                    registry.follow(frontier)
                elif record.topic == SKETCHES and (told := read(record, read_observation, self._metrics)):
                    registry.observe(told)

    def _tick(self, store: Store) -> None:
        registry = self._current()
        with self._lock:
            change = registry.tick(_now())
            show(registry.view(_now()), self._metrics)
        if change:
            self._perform(store, registry, change)

    def _probe(self, store: Store) -> None:
        """Whoever can't be heard must not be declared gone: while Kafka is away no silence counts."""
        if not store.reachable():
            self._away = "Kafka does not answer"
            self._health.not_ready(self._away)
        elif self._away:
            with self._lock:
                self._current().listen_anew(_now())
            self._available()

    def _perform(self, store: Store, registry: Registry, change: Change) -> None:
        """The order is what makes it safe to crash between any two of these."""
        if change.statements:
            store.write_statements(change.statements)
        if change.topics:
            store.topics.ensure_streams(change.topics, change.state.partitions)
        with self._lock:
            registry.done(change, _now())
        if change.plan is not None:
            self._unwritten.take(change)
            self._write_plan(store, registry)

    def _write_plan(self, store: Store, registry: Registry, *, ending: bool = False) -> None:
        """Write the newest plan if there is one and its time has come, or this process is `ending`."""
        new, partitions = self._unwritten, registry.state.partitions
        if new.plan is None or not (ending or new.due(time.monotonic(), partitions)):
            return
        document = new.plan.document
        store.write_plan(document, partitions, new.finals)
        self.plans.add(new.version, document)
        _log.info("plan written", plan=new.version, why=new.why)
        self._unwritten = Unwritten(written=time.monotonic())
        with self._lock:
            registry.published = _now()

    # ----

    def _current(self) -> Registry:
        if self._registry is None:
            raise UnavailableError("the registry is starting", where="registry")
        return self._registry

    def _available(self) -> None:
        self._away = None
        self._health.ready()

    def _lose(self, reason: str) -> None:
        """Nothing can be written; those who wait are told."""
        self._away = reason
        self._health.not_ready(reason)
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            job.answer.set_exception(UnavailableError(reason, where="registry", hint="try again"))

    def _check_available(self) -> None:
        if self._away:
            raise UnavailableError(self._away, where="registry", hint="try again")


def _now() -> int:
    """The wall clock, microseconds."""
    return time.time_ns() // 1000
