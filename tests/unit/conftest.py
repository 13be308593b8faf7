"""Checks around every module of quick tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_CLOSE_SECONDS = 5.0


@pytest.fixture(scope="module", autouse=True)
def no_kafka_client_stays_open() -> Iterator[None]:
    """Fail if a client of Kafka outlives its module: its threads would run until the garbage collector finds
    it, in the middle of another test.
    """
    yield
    deadline = time.monotonic() + _CLOSE_SECONDS
    while (threads := _kafka_threads()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not threads


def _kafka_threads() -> list[str]:
    """Names of the threads of librdkafka in this process; none where the system can't list them."""
    names = []
    for file in Path("/proc/self/task").glob("*/comm"):
        try:
            names.append(file.read_text().strip())
        except OSError:
            continue  # this thread has ended
    return [name for name in names if name.startswith("rdk:")]
