"""The registry's loop and its HTTP threads: what they share, and what is said of a job that isn't done."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import numpy as np
import pytest

from tamis.declarations.file_access import NO_ACCESS
from tamis.errors import UnavailableError
from tamis.messaging.records import Observation
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import SKETCHES
from tamis.predicates.sketch import merge, observe
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis.telemetry.server import HttpServer
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.http.api import application
from tamis_registry.kafka.store import AT_ONCE, Store
from tamis_registry.proving.pool import provers_of
from tamis_registry.registry_loop import TURN_SECONDS, RegistryLoop

STREAM = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts);"""


def idle_worker() -> RegistryLoop:
    """A worker whose loop doesn't run, with a registry that has one stream."""
    worker = RegistryLoop(KafkaSettings(), 2, PLANNER, Metrics("registry"), Health())
    registry = Registry(PLANNER, State(2), None, 0, 0)
    registry.done(registry.begin(0), 0)
    _, change = registry.apply(STREAM, 1)
    registry.done(change, 1)
    worker._registry, worker._away = registry, None
    return worker


def told(shard: int) -> Record:
    r = np.random.default_rng(shard)
    sketch = observe({"x": r.random(5_000) * 100}, r)
    found = Observation(f"air:e{shard}/s", "air", sketch)
    return Record(SKETCHES, 0, shard, found.shard.encode(), found.to_bytes())


def test_explain_and_the_loop_s_observations_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """While EXPLAIN looks at the sketches of a stream, another shard tells of its own."""
    worker = idle_worker()
    worker._take_reports([told(1), told(2)], 1)
    threads: list[threading.Thread] = []

    def meanwhile(sketches: Iterable[bytes]) -> Any:
        def slowly() -> Any:
            for number, sketch in enumerate(sketches):
                if not number:
                    threads.append(threading.Thread(target=worker._take_reports, args=([told(3)], 2)))
                    threads[-1].start()
                    threads[-1].join(0.3)  # where nothing holds it up, it is done by now
                yield sketch

        return merge(slowly())

    monkeypatch.setattr("tamis_registry.core.shards.fleet_reports.merge", meanwhile)
    provers = provers_of(NO_ACCESS, 1)
    server = HttpServer(application(worker, provers, Metrics("registry"), Health()), "127.0.0.1", 0)
    server.start()
    try:
        sql = "CREATE ALERT q AS SELECT k FROM air WHERE x > 2;"
        answer = httpx.post(f"{server.url}/v1/explain", content=sql.encode(), timeout=60)
    finally:
        provers.close()
        server.stop()
        for thread in threads:
            thread.join()
    assert answer.status_code == httpx.codes.OK, answer.text
    assert len(threads) == 1
    with worker.reading() as (registry, _):
        assert len(registry.seen.sketches["air"]) == 3


def test_a_job_that_is_not_done_in_time_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis_registry.jobs.JOB_SECONDS", 0.05)
    worker = idle_worker()
    worker._jobs.doing = "planning other statements"
    with pytest.raises(UnavailableError) as raised:
        worker.submit(lambda registry, now: registry.apply("", now))
    assert "not begun" in raised.value.what and "planning other statements" in raised.value.what
    assert raised.value.hint is not None and "the request had no effect" in raised.value.hint
    decided = []

    def decide(registry: Registry, now: int) -> Any:
        decided.append(now)
        return registry.apply("", now)

    with pytest.raises(UnavailableError):
        worker.submit(decide)
    while not worker._jobs._queue.empty():
        worker._one_job(cast(Store, None), 0.0)
    assert not decided  # who was told that nothing is done can rely on it


def test_the_loop_does_not_wait_for_jobs_while_more_reports_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise thousands of edges would send more than it reads, and it would fall behind for ever."""
    left, waits, stopping = [told(1)] * (3 * AT_ONCE // 2), list[float](), threading.Event()

    def poll(limit: int) -> list[Record]:
        found = left[:limit]
        del left[:limit]
        return found

    def one_job(store: Store, wait: float) -> None:
        waits.append(wait)
        if len(waits) == 4:
            stopping.set()

    store = Store.__new__(Store)
    store.behind, store._reader = False, cast(Any, SimpleNamespace(poll=poll, close=lambda: None))
    worker = idle_worker()
    monkeypatch.setattr("tamis_registry.registry_loop.Store", lambda *_: store)
    for name in ("_start", "_take_reports", "_tick", "_write_plan"):
        monkeypatch.setattr(worker, name, lambda *_, **__: None)
    monkeypatch.setattr(worker, "_one_job", one_job)
    monkeypatch.setattr(store, "close", lambda: None)
    worker._serve(stopping)
    assert waits == [TURN_SECONDS, 0.0, TURN_SECONDS, TURN_SECONDS]
