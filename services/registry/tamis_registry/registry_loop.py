"""The registry's one loop. Only this loop decides and writes; HTTP threads give it jobs and wait."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tamis.errors import InputError, TamisError, UnavailableError
from tamis.messaging.topic_reader import Record
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics, get_logger
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import recover
from tamis_registry.gauges import KeyWarnings, show
from tamis_registry.jobs import IDLE, Decide, Jobs
from tamis_registry.kafka.reports import Reports
from tamis_registry.kafka.store import FencedError, LostTransactionError, Store
from tamis_registry.plans import History, Origin, PendingPlan
from tamis_registry.startup import (
    fleet_partitions,
    newest_partials,
    recover_reports,
    remove_unreadable_plans,
    repair_statements,
    statements_lost,
)

T = TypeVar("T")

# Shards that announce themselves within one turn come into one plan.
TURN_SECONDS = 0.1
TICK_SECONDS = 0.5
PROBE_SECONDS = 5.0
TAKEOVER_SECONDS = 5.0

_log = get_logger("tamis.registry")


class RegistryLoop:
    """The loop: recovers from Kafka, decides and writes, and starts over after every failure.

    It ends when it is stopped, or when another registry takes over.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        partitions: int | None,
        planner: Planner,
        metrics: Metrics,
        health: Health,
    ) -> None:
        self.kafka = kafka
        self._partitions = partitions
        self._planner = planner
        self._metrics = metrics
        self._health = health
        self._reports = Reports(metrics)
        self._owner = uuid.uuid4().hex
        self._was_writer = False
        self._jobs = Jobs()
        self._key_warnings = KeyWarnings()
        self._lock = threading.Lock()
        self._registry: Registry | None = None
        self._away: str | None = "the registry is starting"
        self.plans = History()
        self.cluster_id: str | None = None
        self._unwritten = PendingPlan()

    # ---- for HTTP threads

    def submit(self, decide: Decide[T]) -> T:
        """Let the loop decide and perform a change; returns when the change is durable. Raises the errors of
        `decide`.

        UnavailableError: the registry can't write now, or nobody knows whether it was written.
        """
        self._check_available()
        return self._jobs.submit(decide)

    @contextmanager
    def reading(self) -> Iterator[tuple[Registry, int]]:
        """The registry at this moment, and the time; nothing changes during the block.

        Use it only for quick reads, because the loop waits for the end of the block before it changes
        anything.
        """
        with self._lock:
            if self._registry is None:
                raise UnavailableError(self._away or "starting", where="registry", hint="try again")
            yield self._registry, _now()

    # ---- the loop

    def run(self, stopping: threading.Event) -> None:
        """Work until `stopping` is set.

        Raises FencedError if another registry has taken over, InputError if the fleet in Kafka doesn't fit
        the settings.
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
                    _log.warning(
                        "Kafka can't be used: the registry starts again", error=str(error), seconds=pause
                    )
                    # Long enough in service counts as a success: the next failure starts with a short pause.
                    pause = 0.5 if time.monotonic() - began > 60 else min(pause * 2, 8.0)
                    # A registry that has taken over needs some time to report it. Connecting too early would
                    # take over from it again.
                    stopping.wait(TAKEOVER_SECONDS if isinstance(error, LostTransactionError) else pause)
        except (FencedError, InputError) as error:
            self._lose(str(error))
            raise
        self._lose("the registry is stopping")

    def _serve(self, stopping: threading.Event) -> None:
        store = Store(self.kafka, self._owner)
        try:
            self._start(store)
            ticked = probed = time.monotonic()
            while not stopping.is_set():
                self._health.beat()
                # Ten thousand edges send more reports in a turn than are taken at once.
                self._one_job(store, 0.0 if store.behind else TURN_SECONDS)
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
        repair_statements(store, found, self._metrics)
        before = recover(found.statements)
        partitions = fleet_partitions(before, self._partitions)
        store.topics.ensure_base(partitions)
        store.read_plans(found)
        remove_unreadable_plans(store, found, self._metrics)
        self.cluster_id = store.topics.cluster_id
        self.plans, self._unwritten = found.plans, PendingPlan()
        state = before.draft() if before else State(partitions)
        state.owner = self._owner
        greatest = found.plans.greatest
        partials = newest_partials(found.plans)
        registry = Registry(self._planner, state, before, greatest, _now(), partials=partials)
        recover_reports(registry, found, self._reports)
        lost = statements_lost(before, found.plans)
        if lost:
            _log.error(
                "the statements are lost: the fleet keeps its plan until statements are applied",
                plan=found.plans.greatest,
                hint="apply the streams and the alerts again",
            )
        change = registry.begin(_now(), keep_plan=lost)
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

    def _one_job(self, store: Store, wait: float) -> None:
        job = self._jobs.next(wait)
        if job is None:
            return
        registry = self._current()
        job.stage, self._jobs.doing = "planned", "planning other statements"
        try:
            # Without the lock: a draft is decided on, and nothing of what others read changes until `done`.
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
            job.answer.set_exception(TamisError("an error in the registry; its log has the cause"))
            return
        job.stage, self._jobs.doing = "written", "waiting for Kafka"
        try:
            self._perform(store, registry, change)
        except TamisError as error:
            job.answer.set_exception(error)
            raise
        job.answer.set_result(result)
        self._jobs.doing = IDLE

    def _take_reports(self, records: list[Record], now: int) -> None:
        with self._lock:
            registry = self._current()
            for record in records:
                self._reports.take(registry, record, now)

    def _tick(self, store: Store) -> None:
        registry = self._current()
        self._jobs.doing = "planning for shards that came or went"
        change = registry.tick(_now())
        view = registry.view(_now())
        show(view, self._metrics)
        self._key_warnings.show(view)
        self._jobs.doing = IDLE
        if change:
            self._perform(store, registry, change)

    def _probe(self, store: Store) -> None:
        """A shard that can't be heard must not be declared gone, so silence doesn't count while Kafka is
        away.
        """
        if not store.reachable():
            self._away = store.trouble
            self._health.not_ready(self._away)
        elif self._away:
            with self._lock:
                self._current().listen_anew(_now())
            self._available()

    def _perform(self, store: Store, registry: Registry, change: Change) -> None:
        """Perform a change. The order of the steps makes a crash between any two of them safe."""
        if change.statements:
            store.write_statements(change.statements)
        if change.silences:
            store.write_silences(change.silences)
        if change.topics:
            store.topics.ensure_streams(change.topics, change.state.partitions)
        for stream in change.anew:
            self._metrics.inc("tamis_registry_times_begun_anew_total", stream=stream)
            _log.error(
                "a stream's time is ahead of the clock: the stream starts again in new topics",
                stream=stream,
                hint="look for readings from the future: `tamis_dead_letters_total`, reason ahead_of_clock",
            )
        with self._lock:
            registry.done(change, _now())
        if change.plan is not None:
            self._unwritten.take(change)
            self._write_plan(store, registry)

    def _write_plan(self, store: Store, registry: Registry, *, ending: bool = False) -> None:
        """Write the newest plan if there is one and it is due, or if this process is `ending`."""
        new, partitions = self._unwritten, registry.state.partitions
        if new.plan is None or not (ending or new.due(time.monotonic(), partitions)):
            return
        document = new.plan.json
        # A plan that is written again for the joiner is the one that it was.
        origin = self.plans.origin(new.version) or Origin.now(_now(), new.why)
        store.write_plan(document, origin, partitions, new.finals)
        self.plans.add(new.version, document, origin)
        _log.info("plan written", plan=new.version, why=new.why)
        self._unwritten = PendingPlan(written=time.monotonic())
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
        """Tell all waiting callers that nothing can be written."""
        self._away = reason
        self._health.not_ready(reason)
        self._jobs.refuse_all(reason)

    def _check_available(self) -> None:
        if self._away:
            raise UnavailableError(self._away, where="registry", hint="try again")


def _now() -> int:
    """The wall clock, microseconds."""
    return time.time_ns() // 1000
