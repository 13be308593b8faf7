"""Requests that read topics: their turns, and that they don't hold up other requests."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.unit.registry.test_worker import idle_worker

from tamis.declarations.file_access import NO_ACCESS
from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis.telemetry.server import HttpServer
from tamis_registry.http.api import application
from tamis_registry.http.common.fair_requests import READERS, WAITING, ReadingTurns
from tamis_registry.proving.pool import provers_of


def test_requests_wait_for_their_turns_up_to_a_limit() -> None:
    async def run() -> None:
        turns, gate = ReadingTurns(1, waiting=1, seconds=30), threading.Event()
        running = asyncio.create_task(turns.run(lambda: gate.wait(30)))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(turns.run(lambda: "second"))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="requests that read from Kafka are waiting: 1"):
            await turns.run(lambda: "third")
        gate.set()
        assert await running and await waiting == "second"
        assert await turns.run(lambda: "fourth") == "fourth"

    asyncio.run(run())


def test_a_request_that_gets_no_turn_is_told() -> None:
    async def run() -> None:
        turns, gate = ReadingTurns(1, seconds=0.05), threading.Event()
        running = asyncio.create_task(turns.run(lambda: gate.wait(30)))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="1 requests read from Kafka already"):
            await turns.run(lambda: "second")
        gate.set()
        assert await running

    asyncio.run(run())


def test_an_error_gives_the_turn_back() -> None:
    async def run() -> None:
        turns = ReadingTurns(1, waiting=0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await turns.run(lambda: 1 // 0)

    asyncio.run(run())


def test_reads_of_topics_do_not_hold_up_other_requests() -> None:
    """Nothing listens at the address of Kafka, so each read takes the seconds in which it gives up."""
    worker = idle_worker()
    worker.kafka = KafkaSettings(bootstrap="127.0.0.1:1")
    provers = provers_of(NO_ACCESS, 1)
    server = HttpServer(application(worker, provers, Metrics("registry"), Health()), "127.0.0.1", 0)
    server.start()
    clients = 60  # more than the threads of the other requests
    try:
        with ThreadPoolExecutor(clients) as pool:
            asked = [
                pool.submit(httpx.get, f"{server.url}/v1/alerts/air/alarms", timeout=60)
                for _ in range(clients)
            ]
            refused = clients - READERS - WAITING
            deadline = time.monotonic() + 30
            while sum(one.done() for one in asked) < refused and time.monotonic() < deadline:
                time.sleep(0.05)
            began = time.monotonic()
            streams = httpx.get(f"{server.url}/v1/streams", timeout=60)
            seconds = time.monotonic() - began
            reading = sum(not one.done() for one in asked)
            answers = [one.result() for one in asked]
    finally:
        server.stop()
        provers.close()
    assert streams.status_code == httpx.codes.OK
    assert reading >= READERS and seconds < 2, (reading, seconds)
    assert {answer.status_code for answer in answers} == {503}
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    said = [answer.json()["detail"] for answer in answers]
    assert sum("that read from Kafka are waiting" in one for one in said) == refused, said
