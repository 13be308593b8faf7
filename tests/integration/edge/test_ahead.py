"""A reading from the future at a running edge: it becomes a dead letter, and later readings are processed."""

from __future__ import annotations

import time
from functools import partial

import pytest
from tests.integration.edges import Bench, Message, Reader, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.messaging.topics import ACKS, DEAD_LETTERS

FAR = 4_102_444_800_000_000  # the year 2100
DAY = 86_400_000_000
SHARD = "air:h/http"


def progress(reader: Reader) -> set[int]:
    return {m.envelope["event_time"] for m in reader.of("progress") if "event_time" in m.envelope}


def letters(reader: Reader) -> list[Message]:
    return [m for m in reader.read() if m.topic == DEAD_LETTERS]


def is_there(reader: Reader, times: list[int], set_aside: int) -> bool:
    """True if these readings came, progress says that they are all, and so many others are dead letters."""
    came = {m.tuple["ts"] for m in reader.of("tuple")}
    return set(times) <= came and max(times) in progress(reader) and len(letters(reader)) >= set_aside


def activation(reader: Reader, version: int) -> int | None:
    found = [ack.activation for ack in reader.acks() if ack.plan == version and ack.state == "active"]
    return found[-1] if found else None


@pytest.mark.parametrize("limited", [True, False])
def test_a_reading_of_the_year_2100_moves_nothing(bench: Bench, limited: bool) -> None:
    now = time.time_ns() // 1000
    most = DAY if limited else None  # None: max_ahead = 'unlimited'
    bench.publish(everything(SHARD, max_ahead=most))
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    edge = bench.edge("h").start()
    for life in range(2):
        if life:
            edge.kill()
            edge.start()
        times = [now + 10 * life, FAR + life, now + 10 * life + 1, now + 10 * life + 2]
        edge.post("air", [{"station": "s", "ts": at, "temp": 1.0} for at in times])
        taken = [at for at in times if not limited or at < FAR]
        wait_for("all of them", partial(is_there, reader, taken, limited * (life + 1)))
    bench.publish(everything(SHARD, version=2, max_ahead=most))
    begins = wait_for("a new plan", partial(activation, reader, 2))
    late = {m.tuple["ts"] for m in reader.of("tuple") if m.envelope.get("late")}
    if limited:
        assert {m.headers["reason"] for m in letters(reader)} == {"ahead_of_clock"}
        assert (late, max(progress(reader)), begins) == (set(), now + 12, now + 13)
    else:  # what the limit is for
        assert letters(reader) == []
        assert {now + 1, now + 2, now + 11, now + 12} <= late
        assert (max(progress(reader)), begins) == (FAR + 1, FAR + 2)
    edge.stop()
