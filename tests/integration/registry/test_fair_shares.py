"""Requests of readers: answers that grow with their text, limits, and turns for all others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from tests.integration.registry.registry_process import RegistryProcess, registry_process
from tests.unit.registry.test_proving import SLOW

AIR = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts) WITH (keys = 10, rate = '1/s', max_stall = '1 minute');\n"""
TOKENS = {
    "writer": "role: writer",
    "one": "role: reader",
    "two": "role: reader",
    "three": "role: reader",
}
# Of a request that has its turn, on a busy machine.
SECONDS = 30.0


@pytest.fixture
def registry(fresh: str, tmp_path: Path) -> Iterator[RegistryProcess]:
    with registry_process(tmp_path, fresh, TOKENS) as running:
        answer = running.post("statements", "writer", content=AIR)
        assert answer.status_code == 200, answer.text
        yield running


def many(count: int) -> str:
    return "".join(
        f"CREATE ALERT a{i} AS SELECT k, x FROM air WHERE x > {i % 90}.{i};\n" for i in range(count)
    )


@contextmanager
def looping(*loops: Callable[[], object]) -> Iterator[None]:
    """Each function is called again and again by a thread."""
    ending = threading.Event()

    def again(loop: Callable[[], object]) -> None:
        while not ending.is_set():
            loop()

    threads = [threading.Thread(target=again, args=(loop,)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def processes(registry: RegistryProcess) -> list[psutil.Process]:
    parent = psutil.Process(registry.pid)
    return [parent, *parent.children(recursive=True)]


def test_answers_and_memory_grow_with_the_number_of_alerts(registry: RegistryProcess) -> None:
    most = 0

    def look() -> None:
        nonlocal most
        total = 0
        for one in processes(registry):
            try:
                total += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        most = max(most, total)
        time.sleep(0.02)

    sizes, memory = [], []
    for count in (500, 1000, 2000):
        most = 0
        with looping(look):
            answer = registry.post("explain", "one", timeout=120, content=many(count))
        assert answer.status_code == 200, answer.text[:1000]
        assert len(answer.json()["queries"]) == count
        sizes.append(len(answer.content))
        memory.append(most)
    assert sizes[1] < 2.1 * sizes[0] and sizes[2] < 2.1 * sizes[1], sizes
    # 500 and 1000 more alerts: what they take at most doubles, beside the noise of processes.
    assert memory[2] - memory[1] < 2.2 * (memory[1] - memory[0]) + 200e6, memory


def test_readers_keep_no_writer_waiting_and_each_other_for_a_text_at_most(registry: RegistryProcess) -> None:
    text = many(300)  # about a second of processor time

    def explain(who: str) -> int:
        return registry.post("explain", who, timeout=120, content=text).status_code

    statuses: list[int] = []
    loops = [lambda who=who: statuses.append(explain(who)) for who in ("one", "one", "two")]
    with looping(*loops):
        time.sleep(1)
        for number in range(3):
            began = time.monotonic()
            alert = f"CREATE OR REPLACE ALERT ours AS SELECT k FROM air WHERE x > {number};"
            answer = registry.post("statements", "writer", content=alert)
            assert answer.status_code == 200, answer.text
            assert registry.post("explain", "writer", content="EXPLAIN ours;").status_code == 200
            assert time.monotonic() - began < SECONDS
        # However many requests of others wait, this one has its turn after that of one of them.
        began = time.monotonic()
        assert registry.post("explain", "three", timeout=120, content="EXPLAIN ours;").status_code == 200
        assert time.monotonic() - began < 4 * SECONDS
    assert set(statuses) == {200}, statuses


def test_work_ends_with_its_client(registry: RegistryProcess) -> None:
    url = urlsplit(registry.url)
    text = (AIR + SLOW).encode()
    request = (
        f"POST /v1/explain HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: {len(text)}\r\n"
        f"Authorization: Bearer {registry.tokens['one']}\r\n\r\n"
    ).encode()
    with socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(request + text)
        deadline = time.monotonic() + SECONDS
        while used(registry) < 0.05:
            assert time.monotonic() < deadline
    # The process that worked is replaced by another one, which then waits.
    deadline = time.monotonic() + SECONDS
    while used(registry) > 0.02:
        assert time.monotonic() < deadline
    assert (
        registry.post("explain", "one", content="EXPLAIN SELECT k FROM air WHERE x > 1;").status_code == 200
    )


def used(registry: RegistryProcess) -> float:
    """Processor time that the children of the registry use within a second."""

    def total() -> float:
        found = 0.0
        for one in processes(registry)[1:]:
            try:
                times = one.cpu_times()
                found += times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return found

    before = total()
    time.sleep(1)
    return max(0.0, total() - before)
