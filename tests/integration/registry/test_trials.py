"""Trials over real HTTP on readings of a real broker, their limits, and clients that disconnect."""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from tests.integration.registry.test_newest_records import send
from tests.unit.registry.test_openapi import Made
from tests.unit.registry.test_proving import CUBES, JOINS

from tamis_registry.http.definitions import trials
from tamis_registry.proving.messages import TrialLimits

TRIED = """CREATE ALERT close AS SELECT a.k, a.v, s.v AS other FROM air a JOIN surface s ON a.k = s.k
  AND s.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts + INTERVAL '3' SECOND WHERE a.v + s.v > 60;"""
ONE = "CREATE ALERT one AS SELECT k, v FROM air WHERE v > 90;"
BEGIN = 1_700_000_000_000_000


@pytest.fixture
def running(fresh: str, start: Any, sql: Any) -> Any:
    registry = start(fresh).ready()
    registry.sql(sql())
    return registry


def attempt(running: Any, text: str, **parameters: Any) -> httpx.Response:
    return httpx.post(f"{running.server.url}/v1/try", content=text, params=parameters, timeout=60)


def tuples(stream: str, count: int, value: float) -> list[tuple[int, int, bytes]]:
    now = time.time_ns() // 1_000_000
    envelope = {"shard": f"{stream}:e/s", "plan": 2, "activation": 0}
    return [
        (
            n % 2,
            now + n,
            orjson.dumps({"k": "k1", "ts": BEGIN + n * 1_000_000, "v": value + n, "_": envelope}),
        )
        for n in range(count)
    ]


def test_a_query_is_tried_on_the_newest_readings(running: Any) -> None:
    """The oracle joins the readings that were written."""
    answer = attempt(running, TRIED)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["row_count"], answer.json()["inputs"]["air"]["rows"]) == (0, 0)
    send(running.bootstrap, "tamis.stream.air.1", tuples("air", 20, 20))
    send(running.bootstrap, "tamis.stream.surface.1", tuples("surface", 20, 20))
    found = attempt(running, TRIED).json()
    Made().check("/v1/try", found, "post")
    every = {(20.0 + a, 20.0 + s) for a in range(20) for s in range(20) if abs(a - s) <= 3 and a + s > 20}
    rows = {(row[1], row[2]) for row in found["rows"]}
    assert rows and rows <= every and max(rows) == max(every)
    assert (found["query"], found["columns"], found["row_count"]) == ("close", ["k", "v", "other"], len(rows))
    one = found["inputs"]["air"]
    assert (one["rows"], one["source"], one["complete"]) == (20, "recent", True)
    assert (one["from"], one["to"]) == (BEGIN, BEGIN + 19_000_000)
    assert one["retained"] + one["omitted"] == 20 and "may have more rows" in found["note"]
    # An alert in service can be tried, too.
    again = attempt(running, "EXPLAIN hot;", limit=1)
    assert again.status_code == 200 and again.json()["truncated"], again.text
    many = [(0, n, orjson.dumps({"k": "k", "_": {"shard": "s"}})) for n in range(3)]
    send(running.bootstrap, "tamis.stream.air.1", many)
    without_time = attempt(running, ONE)
    assert without_time.json()["inputs"]["air"]["rows"] == 20, without_time.text
    assert running.get("alerts")[0]["name"] == "hot" and len(running.get("alerts")) == 1


def test_mistakes_of_a_trial(running: Any) -> None:
    wrong = attempt(running, "CREATE ALERT q AS SELECT nothing FROM air;", file="mine.sql")
    assert wrong.status_code == 400
    (mistake,) = wrong.json()["errors"]
    assert (mistake["file"], mistake["line"], mistake["column"]) == ("mine.sql", 1, 26)
    new = "CREATE STREAM fresh (k VARCHAR KEY, v DOUBLE); CREATE ALERT f AS SELECT k FROM fresh WHERE v > 1;"
    assert attempt(running, new).status_code == 422
    running.sql("CREATE STREAM fresh (k VARCHAR KEY, v DOUBLE);")
    unread = attempt(running, "CREATE ALERT f AS SELECT DISTINCT v FROM fresh WHERE v IN (1, 2);")
    assert unread.status_code == 422 and "no query reads it" in unread.json()["detail"]
    rose = "CREATE ALERT rose AS SELECT k FROM air WHERE v - lag(v) OVER (PARTITION BY k ORDER BY ts) > 5;"
    beside = attempt(running, rose)
    assert beside.status_code == 422 and "compares readings with those beside" in beside.json()["detail"]
    readings = [{"k": "a", "ts": BEGIN + n, "v": n * n} for n in range(6)]
    sent = httpx.post(
        f"{running.server.url}/v1/try", json={"sql": rose, "samples": {"air": readings}}, timeout=60
    )
    assert sent.json()["row_count"] == 2, sent.text
    assert sent.json()["inputs"]["air"]["source"] == "sent"
    assert attempt(running, ONE, limit=0).status_code == 400


def test_a_trial_has_limits_of_its_own(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join with many millions of rows ends with the memory of the trial, and a long one with its time."""
    readings = [{"k": "a", "ts": BEGIN, "v": n % 100} for n in range(5000)]
    # Edges can omit nothing for a remainder.
    loose = TRIED.replace("a.v + s.v > 60", "mod(a.v + s.v, 7) = 3")
    body = {"sql": loose, "samples": {"air": readings, "surface": readings}}
    url = f"{running.server.url}/v1/try"
    monkeypatch.setattr(trials, "_LIMITS", TrialLimits(60, 2**26, 1000))
    large = httpx.post(url, json=body, timeout=120)
    assert large.status_code == 422 and "too much memory" in large.json()["detail"], large.text
    monkeypatch.setattr(trials, "_LIMITS", TrialLimits(1, 2**30, 1000))
    slow = f"CREATE ALERT slow AS SELECT a0.k FROM air a0 {JOINS} WHERE {CUBES.replace('.x', '.v')} > 5;"
    late = attempt(running, slow)
    assert late.status_code == 422 and "more than 1 s of processor time" in late.json()["detail"], late.text
    assert attempt(running, "EXPLAIN hot;").status_code == 200


def give_up(running: Any, text: str) -> None:
    """Send a text to be explained, and disconnect as soon as it is read."""
    server = urlsplit(running.server.url)
    with socket.create_connection((server.hostname, server.port), timeout=10) as client:
        body = text.encode()
        head = f"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        running.until(lambda: running.provers.busy)


def test_a_client_that_goes_costs_no_process(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an editor: each request is given up for the next one."""
    monkeypatch.setattr(running.provers, "_grace", 60.0)
    running.call("POST", "/v1/explain", ONE)
    process = running.prover.running
    # Long enough to be seen at work, which is asked every 50 ms.
    joins = f"SELECT a0.k FROM air a0 {JOINS} WHERE {CUBES.replace('.x', '.v')} > "
    for number in range(2):
        give_up(running, f"EXPLAIN {joins}{number};")
        running.until(lambda: not running.provers.busy, 60)
    answer = running.call("POST", "/v1/explain", TRIED)
    assert answer.status_code == 200 and answer.json()["queries"][0]["name"] == "close"
    assert running.prover.running is process and process.poll() is None


def test_a_long_text_ends_soon_after_its_client(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.provers, "_grace", 0.1)
    running.call("POST", "/v1/explain", ONE)
    process = running.prover.running
    slow = "".join(
        f"EXPLAIN SELECT a0.k FROM air a0 {JOINS} WHERE {CUBES.replace('.x', '.v')} > {number};"
        for number in range(20)
    )
    give_up(running, slow)
    running.until(lambda: process.poll() is not None)
    assert running.call("POST", "/v1/explain", ONE).status_code == 200
    assert running.prover.running is not process
