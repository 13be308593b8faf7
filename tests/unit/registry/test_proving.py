"""Texts that another process reads and proves: the same answers, limits that hold, and work that ends."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest

from tamis.declarations.file_access import UNRESTRICTED
from tamis.errors import RefusedError, SqlErrors, TamisError, UnavailableError
from tamis.query.model import Catalog
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.statements.reading import OutdatedError, read, same_definitions
from tamis_registry.proving import child
from tamis_registry.proving.messages import Failed, Request, Sent, Settings, decoded, is_read
from tamis_registry.proving.pool import Provers
from tamis_registry.proving.prover import Prover

STREAMS = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), WATERMARK FOR ts AS ts);
CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM still (k VARCHAR, x INT);
CREATE FUNCTION double(v DOUBLE) RETURNS DOUBLE AS 2 * v;
CREATE STREAM hot AS SELECT k, ts, x FROM air WHERE x > 30;
"""
ALERTS = """
CREATE ALERT pair AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND WHERE double(a.x) + s.x > 7;
CREATE ALERT alone AS SELECT k FROM hot WHERE x > 90;
CREATE ALERT counted AS SELECT DISTINCT x FROM still WHERE x IN (1, 2);
CREATE ALERT mean AS SELECT window_end, k, avg(x) AS m FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
  GROUP BY window_end, k;
EXPLAIN SELECT k FROM air WHERE x > 5;
"""
CUBES = " + ".join(
    f"power(a{i}.x, 3) - 3 * power(a{i}.x, 2) * a{j}.x + 3 * a{i}.x * power(a{j}.x, 2) - power(a{j}.x, 3)"
    for i, j in ((i, (i + 1) % 16) for i in range(16))
)
JOINS = " ".join(
    f"JOIN air a{i} ON a{i}.k = a0.k AND a{i}.ts BETWEEN a0.ts AND a0.ts + INTERVAL '5' SECOND"
    for i in range(1, 16)
)
# Some seconds of processor time.
SLOW = f"CREATE ALERT slow AS SELECT a0.k FROM air a0 {JOINS} WHERE {CUBES} > 5;" + "".join(
    f"CREATE ALERT slow{n} AS SELECT a0.k FROM air a0 {JOINS} WHERE {CUBES} > {n};" for n in range(6, 10)
)


def started(text: str = STREAMS) -> Registry:
    registry = Registry(PLANNER, State(2), None, 0, 0)
    registry.done(registry.begin(0), 0)
    _, change = registry.apply(text, 1)
    registry.done(change, 1)
    return registry


@pytest.fixture(scope="module")
def prover() -> Iterator[Prover]:
    made = Prover(Settings(UNRESTRICTED, 60, 2 << 30))
    yield made
    made.close()


def test_what_another_process_has_read_is_planned_as_if_it_were_read_here(prover: Prover) -> None:
    changed = ALERTS.replace("CREATE ALERT alone", "CREATE OR REPLACE ALERT alone").replace("90", "80")
    for text in (STREAMS + ALERTS, "PAUSE ALERT pair; DROP ALERT alone;", changed):
        one, other = started(STREAMS + ALERTS), started(STREAMS + ALERTS)
        by = other.state.catalog
        mine, wanted = one.apply(text, 2)
        theirs, change = other.apply_read(prover.ask(text, by, None, keep=False), by, 2)
        assert theirs == mine
        assert change.statements == wanted.statements
        assert change.written is None or change.written.json == wanted.written.json  # type: ignore[union-attr]
        snapshot = other.snapshot()
        found = prover.ask(text, snapshot.state.catalog, None, keep=False)
        assert snapshot.explain_read(found, snapshot.state.catalog) == one.explain(text)


def test_nothing_is_proved_again_where_it_was_carried_here(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = started()
    by = registry.state.catalog
    found = prover.ask(ALERTS, by, None, keep=False)

    def prove(*_: object, **__: object) -> None:
        raise AssertionError("proved again")

    for name in (
        "omission_rules.certify",
        "join_verdict._judge",
        "decide._decide",
    ):
        monkeypatch.setattr(f"tamis.planning.{name}", prove)
    _, change = registry.apply_read(found, by, 2)
    assert change.plan is not None and len(change.plan.queries) == 4


def test_mistakes_come_with_their_places(prover: Prover) -> None:
    by = started().state.catalog
    with pytest.raises(SqlErrors) as raised:
        prover.ask("CREATE ALERT q AS SELECT nothing FROM air;", by, "a.sql", keep=False)
    assert str(raised.value).startswith("a.sql:1:26: ")


def test_definitions_that_changed_meanwhile_are_noticed(prover: Prover) -> None:
    registry = started()
    by = registry.state.catalog
    found = prover.ask(ALERTS, by, None, keep=False)
    _, change = registry.apply("DROP FUNCTION double;", 2)
    registry.done(change, 2)
    with pytest.raises(OutdatedError):
        registry.apply_read(found, by, 3)
    with pytest.raises(OutdatedError):
        registry.snapshot().explain_read(found, by)


def test_only_what_has_changed_is_sent() -> None:
    registry, sent, replica = started(STREAMS + ALERTS), Sent(), Catalog()
    dropped = "DROP ALERT alone; CREATE STREAM more (x INT);"
    for text, new in (("", 9), ("PAUSE ALERT pair;", 0), (dropped, 1)):
        _, change = registry.apply(text, 2)
        registry.done(change, 2)
        difference = sent.difference(registry.state.catalog)
        difference.apply(replica)
        assert len(difference.new) == new
        assert replica == Catalog(**{**vars(registry.state.catalog), "file_access": replica.file_access})
    assert not same_definitions(replica, registry.state.catalog)  # equal, and others


def test_a_text_that_takes_too_long_is_refused_and_the_next_is_read() -> None:
    prover = Prover(Settings(UNRESTRICTED, 1, 2 << 30))
    by = started().state.catalog
    try:
        with pytest.raises(RefusedError, match="more than 1 s of processor time") as raised:
            prover.ask(SLOW, by, "a.sql", keep=False)
        assert raised.value.where is not None and raised.value.where.startswith("a.sql:1:")
        assert len(prover.ask("SHOW ALERTS;", by, None, keep=False).statements) == 1
    finally:
        prover.close()


def test_work_ends_with_its_client_and_waiting_is_limited() -> None:
    async def check(prover: Prover) -> None:
        pool = Provers([prover], most_waiting=1, grace_seconds=0.05)
        first = asyncio.create_task(pool.read(SLOW, by))
        second = asyncio.create_task(pool.read("SHOW ALERTS;", by))
        while not prover.running:
            await asyncio.sleep(0.01)
        process = prover.running
        with pytest.raises(UnavailableError, match="are waiting: 1"):
            await pool.read("SHOW ALERTS;", by)
        first.cancel()
        assert len((await second).statements) == 1
        assert process.poll() is not None and prover.running is not process
        with pytest.raises(asyncio.CancelledError):
            await first
        pool.close()

    by = started().state.catalog
    asyncio.run(check(Prover(Settings(UNRESTRICTED, 60, 2 << 30))))


def test_a_short_text_is_finished_after_its_client_has_gone(prover: Prover) -> None:
    """An editor gives up a request with every key: a new process each time would take seconds."""

    async def check() -> None:
        pool = Provers([prover], grace_seconds=60)
        for _ in range(3):
            given_up = asyncio.create_task(pool.read(ALERTS, by))
            await asyncio.sleep(0)
            assert pool.busy == 1
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert len((await pool.read("SHOW ALERTS;", by)).statements) == 1
        assert prover.running is process and not prover.ended

    by = started().state.catalog
    prover.start()
    process = prover.running
    asyncio.run(check())


def test_the_process_that_was_started_takes_the_first_text() -> None:
    """Otherwise the first text would wait until a second process has imported its modules."""
    provers = [Prover(Settings(UNRESTRICTED, 60, 2 << 30)) for _ in range(2)]

    async def check() -> None:
        pool = Provers(provers)
        pool.start()
        first = [prover.running for prover in provers]
        assert len((await pool.read("SHOW ALERTS;", by)).statements) == 1
        assert [prover.running for prover in provers] == first and first.count(None) == 1
        pool.close()

    by = started().state.catalog
    asyncio.run(check())


def test_a_process_that_ends_by_itself_is_told(prover: Prover) -> None:
    by = started().state.catalog
    prover.start()
    assert prover.running is not None
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(prover.ask, SLOW, by, None, keep=False)
        time.sleep(0.3)
        prover.running.kill()
        with pytest.raises(TamisError, match="ended with exit code -9"):
            asked.result(20)
    assert len(prover.ask("SHOW ALERTS;", by, None, keep=False).statements) == 1


def test_a_process_that_has_grown_is_replaced() -> None:
    """It keeps what others have asked, and would refuse a later text for its memory."""

    async def check() -> None:
        settings = Settings(UNRESTRICTED, 60, 2 << 30)
        prover = Prover(settings)
        pool = Provers([prover])
        await pool.read(ALERTS, by)
        first = prover.running
        await pool.read(ALERTS, by)
        assert prover.running is first and not prover.overgrown
        prover._settings = replace(settings, data_bytes=1 << 20)
        await pool.read("SHOW ALERTS;", by)
        prover._settings = settings
        await pool.read(ALERTS, by)
        assert prover.running is not first
        pool.close()

    by = started().state.catalog
    asyncio.run(check())


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(Sent().difference(started().state.catalog), ALERTS, None, keep=False)
    catalog = started().state.catalog
    ours, theirs = socket.socketpair()
    with ours, Connection(theirs.detach()) as connection:
        assert is_read(child._answer(request, catalog, connection))
        monkeypatch.setattr(child, "MOST_ANSWER", 1000)
        refused = decoded(child._answer(request, catalog, connection))
    assert isinstance(refused, Failed) and "takes more than" in refused.error.what


def test_reading_here_changes_no_catalogue() -> None:
    registry = started()
    before = registry.state.catalog.copy()
    assert len(read(ALERTS, registry.state.catalog).known) == 5
    assert registry.state.catalog == before
