"""HTTP of edge and registry under oversized bodies, slow senders, 2,000 connections, random requests."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import psutil
import pytest
from tests.faults.fuzz import TOOLS
from tests.integration.edges import Bench, RunningEdge, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import ServiceProcess, free_ports

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

CONNECTIONS = 2_000
SLOW_SENDERS = 50
T0 = 1_700_000_000_000_000
# Of a service while it is attacked, beyond what it has before.
MOST_GROWTH = 200 * 2**20
REPOSITORY = Path(__file__).parent.parent.parent
HOOKS = "tests.faults.schemathesis_hooks"
SCHEMATHESIS_SECONDS = int(os.environ.get("TAMIS_FUZZ_SECONDS", "60"))

STATEMENTS = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 10, rate = '1/s');
CREATE ALERT hot AS SELECT station, ts, temp FROM air WHERE temp > 30;
"""

_READING = {
    "type": "object",
    "properties": {
        "station": {"type": ["string", "null"]},
        "ts": {"type": ["integer", "string"]},
        "temp": {"type": ["number", "null"]},
    },
}
_STATUSES = (202, 400, 401, 403, 404, 405, 408, 413, 421, 429, 503)
# An edge has no description of its own: this is what services/edge/README.md says.
EDGE_API = {
    "openapi": "3.1.0",
    "info": {"title": "Edge", "version": "1"},
    "paths": {
        "/v1/streams/{name}": {
            "post": {
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"anyOf": [_READING, {"type": "array", "items": _READING}]}
                        },
                        "text/plain": {"schema": {"type": "string"}},
                    },
                },
                "responses": {str(status): {"description": ""} for status in _STATUSES},
            }
        }
    },
}


@pytest.fixture
def edge(bench: Bench) -> RunningEdge:
    bench.publish(everything("air:h/http"))
    return bench.edge("h").start()


@pytest.fixture
def registry(empty: EmbeddedKafka, tmp_path: Path) -> Iterator[tuple[ServiceProcess, str]]:
    (port,) = free_ports(1)
    environment = {
        "TAMIS_KAFKA_BOOTSTRAP": empty.bootstrap,
        "TAMIS_DATA": str(tmp_path),
        "TAMIS_PARTITIONS": "2",
        "TAMIS_LOG_FORMAT": "json",
    }
    url = f"http://127.0.0.1:{port}"
    process = ServiceProcess(
        "registry", ["registry", "--port", str(port)], environment, tmp_path / "registry.log", f"{url}/readyz"
    )
    process.start()
    process.wait_ready(120)
    yield process, url
    assert process.stop() == 0
    assert b"Traceback" not in process.log.read_bytes()


def post_and_count(edge: RunningEdge, first: int, size: int = 50) -> int:
    """Post good readings as an honest sender does; returns the number of the next."""
    batch = [{"station": f"s{i % 5}", "ts": T0 + i * 1000, "temp": 20.0} for i in range(first, first + size)]
    began = time.monotonic()
    while not accepted(edge, batch):
        assert time.monotonic() - began < 60, "an honest sender is not served"
        time.sleep(0.2)
    return first + size


def accepted(edge: RunningEdge, batch: list[dict[str, Any]]) -> bool:
    """True if the edge has taken the readings; a sender posts them again if not."""
    try:
        return edge.post("air", batch).status_code == httpx.codes.ACCEPTED
    except httpx.TransportError:
        return False


def refused_as_large(edge: RunningEdge, content: bytes | Iterator[bytes]) -> bool:
    """True for status 413, or if the edge closes the connection before it has read all."""
    try:
        return httpx.post(f"{edge.http}/v1/streams/air", content=content, timeout=30).status_code == 413
    except httpx.TransportError:
        return True


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0), 10)
    made.settimeout(60)
    return made


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of the answer, read until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65_536):
            found += data
    head, _, body = found.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1.1 (\d+)", head)
    return (int(status[1]) if status else 0), body


def test_attacks_on_the_http_source_lose_no_reading_of_others(bench: Bench, edge: RunningEdge) -> None:
    reader = bench.reader(TOPIC)
    n = post_and_count(edge, 0)
    process = psutil.Process(edge.process.pid)
    before = process.memory_info().rss

    # Oversized: a body beyond the limit, announced and not; a reading beyond the limit; too many readings.
    big = b'{"station": "' + b"x" * 17_000_000 + b'"}'
    assert refused_as_large(edge, big)
    assert refused_as_large(edge, (big[i : i + 65_536] for i in range(0, len(big), 65_536)))
    assert edge.post("air", b'{"station": "' + b"x" * 900_000 + b'"}').status_code == 413
    assert edge.post("air", b"[" + b"{}," * 100_001 + b"{}]").status_code == 413
    host = urlsplit(edge.http).netloc.encode()
    with connect(edge.http) as huge_header:
        huge_header.sendall(b"POST /v1/streams/air HTTP/1.1\r\nhost: " + host + b"\r\nx: " + b"y" * 200_000)
        assert answer(huge_header)[0] in (400, 431)
    n = post_and_count(edge, n)

    # Slow senders, one byte a second: half of them in the headers, half in the body.
    head = b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: 1000\r\n" % host
    slow = [connect(edge.http) for _ in range(SLOW_SENDERS)]
    for i, one in enumerate(slow):
        one.sendall(head if i % 2 else head + b"\r\n")
    began = time.monotonic()
    left = list(slow)
    while left and time.monotonic() - began < 60:
        for one in list(left):
            try:
                one.sendall(b"a" if one is left[0] else b"b")
            except OSError:
                left.remove(one)
        n = post_and_count(edge, n)
        time.sleep(1)
    assert not left, f"{len(left)} slow senders are still served after {time.monotonic() - began:.0f} s"
    for one in slow:
        one.close()

    # Many connections at once, which send nothing, then half of a request, then go.
    many = []
    for _ in range(CONNECTIONS):
        try:
            many.append(connect(edge.http))
        except OSError:
            time.sleep(0.01)
    assert len(many) > CONNECTIONS // 2
    for i, one in enumerate(many):
        if i % 2:
            with contextlib.suppress(OSError):
                one.sendall(head)
    for _ in range(5):
        n = post_and_count(edge, n)
    for one in many:
        one.close()
    n = post_and_count(edge, n)

    wanted = set(range(n))

    def came() -> set[int]:
        return {(m.tuple["ts"] - T0) // 1000 for m in reader.of("tuple")}

    wait_for("all accepted readings", lambda: came() >= wanted, 60)
    assert came() == wanted
    growth = process.memory_info().rss - before
    print(f"edge: {n} readings of an honest sender; memory {before >> 20} MB, then {growth >> 20} MB more")
    assert growth < MOST_GROWTH
    edge.stop()
    assert b"Traceback" not in edge.process.log.read_bytes()


def test_random_requests_to_the_edge_get_reasons(bench: Bench, edge: RunningEdge) -> None:
    host = urlsplit(edge.http).netloc.encode()
    statuses: Counter[int] = Counter()
    requests = [
        b"",
        b"\0" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /v1/streams/air HTTP/9.9\r\nhost: %s\r\n\r\n",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: elsewhere.example\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: -1\r\n\r\n{}",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"POST /v1/streams/../../etc/passwd HTTP/1.1\r\nhost: %s\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/streams/%%00%%ff HTTP/1.1\r\nhost: %s\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/streams/nowhere HTTP/1.1\r\nhost: %s\r\ncontent-length: 2\r\n\r\n{}",
        b"DELETE /v1/streams/air HTTP/1.1\r\nhost: %s\r\n\r\n",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: 4\r\n\r\n\xff\xfe\x00\x01",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: 4\r\n\r\nnull",
        b"POST /v1/streams/air HTTP/1.1\r\nhost: %s\r\ncontent-length: 10000\r\n\r\n" + b"[" * 10_000,
    ]
    for request in requests:
        with connect(edge.http) as connection:
            connection.sendall(request.replace(b"%s", host).replace(b"%%", b"%"))
            connection.shutdown(socket.SHUT_WR)
            status, body = answer(connection)
        statuses[status] += 1
        assert status == 0 or 400 <= status < 500, (request, status, body)
        if body.startswith(b"{"):
            problem = orjson.loads(body)
            assert problem["title"] and problem["detail"], (request, body)
        else:
            assert status == 0 or body, request
    assert statuses[0] <= 2, statuses  # those that sent no request
    post_and_count(edge, 0)
    edge.stop()
    assert b"Traceback" not in edge.process.log.read_bytes()


def test_schemathesis_finds_no_wrong_answer_of_the_edge(edge: RunningEdge, tmp_path: Path) -> None:
    description = tmp_path / "openapi.json"
    description.write_bytes(orjson.dumps(EDGE_API))
    run_schemathesis(str(description), edge.process, tmp_path, "--url", edge.http)
    post_and_count(edge, 0)
    edge.stop()
    assert b"Traceback" not in edge.process.log.read_bytes()


def test_schemathesis_finds_no_wrong_answer_of_the_registry(
    registry: tuple[ServiceProcess, str], tmp_path: Path
) -> None:
    process, url = registry
    httpx.post(f"{url}/v1/statements", content=STATEMENTS, timeout=40).raise_for_status()
    # An answer with events has no end.
    run_schemathesis(f"{url}/openapi.json", process, tmp_path, "--exclude-path", "/v1/events")
    # It still works.
    answer = httpx.post(f"{url}/v1/explain", content=STATEMENTS.replace(" hot ", " warm "), timeout=40)
    assert answer.status_code in (httpx.codes.OK, httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY)
    assert httpx.get(f"{url}/readyz").status_code == httpx.codes.OK


def run_schemathesis(api: str, process: ServiceProcess, directory: Path, *options: str) -> None:
    """Run Schemathesis on a service, and assert that it finds nothing and that the service doesn't grow."""
    assert (TOOLS / "schemathesis").is_dir(), "`make faults` installs Schemathesis"
    memory = psutil.Process(process.pid)
    before = memory.memory_info().rss
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", api, *options),
        *("--checks", "not_a_server_error,content_type_conformance,status_code_conformance"),
        *("--phases", "coverage,fuzzing", "--max-examples", "30"),
        *("--max-time", str(2 * SCHEMATHESIS_SECONDS), "--seed", "17", "--request-timeout", "30"),
        *("--workers", "1", "--no-color", "--generation-database", "none"),
    ]
    done = subprocess.run(
        command,
        check=False,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{TOOLS}:{REPOSITORY}", "SCHEMATHESIS_HOOKS": HOOKS},
        capture_output=True,
        text=True,
        timeout=2 * SCHEMATHESIS_SECONDS + 300,
    )
    print(done.stdout[-800:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert memory.memory_info().rss - before < MOST_GROWTH
