"""Server-sent events of the registry: changes, alarms, limits, and clients that come back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
import pytest
from confluent_kafka import Producer

from tamis.errors import UnavailableError
from tamis.messaging.topics import ALARMS
from tamis_registry.http.live.broadcast import Broadcast

Message = tuple[str, str | None, Any]  # kind, number, data


@contextmanager
def listening(registry: Any, last: str | None = None) -> Iterator[Iterator[Message]]:
    """The messages of one listener."""
    headers = {} if last is None else {"last-event-id": last}
    with httpx.stream("GET", f"{registry.server.url}/v1/events", headers=headers, timeout=30) as answer:
        assert answer.status_code == httpx.codes.OK
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield messages(answer.iter_lines())


def messages(lines: Iterator[str], seconds: float = 60) -> Iterator[Message]:
    fields: dict[str, str] = {}
    deadline = time.monotonic() + seconds
    for line in lines:
        # Heartbeats come for ever.
        assert time.monotonic() < deadline, f"waited {seconds} s for a message"
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id"), orjson.loads(fields["data"])
            fields = {}


def until(found: Iterator[Message], kind: str) -> Message:
    return next(one for one in found if one[0] == kind)


def threads() -> int:
    return sum(thread.name == "events" for thread in threading.enumerate())


def alarm(bootstrap: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(ALARMS, orjson.dumps({"alert": "hot", "event_time": number}), b"k")
    assert producer.flush(30) == 0


@pytest.fixture
def registry(fresh: str, start: Any) -> Any:
    return start(fresh).ready()


def test_listeners_hear_of_changes_and_alarms(registry: Any, sql: Any, hand: Any) -> None:
    with listening(registry) as first, listening(registry) as second:
        assert [next(one)[0] for one in (first, second)] == ["hello", "hello"]
        assert threads() == 1
        registry.sql(sql())
        _, number, data = until(first, "plan")
        assert data == {"version": registry.get("plans")[0]["version"]} and number is not None
        assert until(first, "alerts")[2] == {"changed": ["hot"], "count": 1}
        assert set(until(first, "streams")[2]["changed"]) == {"air", "surface"}
        hand(registry.bootstrap).ack("e1/air", 0)
        assert until(first, "edges")[2]["changed"] == ["e1"]
        hand(registry.bootstrap).ack("e1/air", 0, failing={"mqtt": "refused"})
        assert until(first, "edges")[2]["changed"] == ["e1"]
        alarm(registry.bootstrap, 1)
        assert until(first, "alarm")[2] == {"alert": "hot", "event_time": 1}
        # The other listener has the same messages; a third one comes back and gets those after a number.
        assert until(second, "plan")[:2] == ("plan", number)
        assert until(second, "alarm")[2]["event_time"] == 1
        with listening(registry, number) as third:
            assert next(third)[0] == "hello"
            assert int(next(third)[1] or 0) == int(number) + 1
            assert until(third, "alarm")[2]["event_time"] == 1
        with listening(registry, "999999") as unknown:
            assert [next(unknown)[0], next(unknown)[0]] == ["hello", "gap"]
        assert threads() == 1
    # The last has gone.
    registry.until(lambda: threads() == 0)
    assert registry.call("GET", "/v1/events", **{"last-event-id": "x"}).status_code == 400


def test_listeners_are_limited_and_the_thread_ends_with_the_last(registry: Any) -> None:
    async def run() -> None:
        broadcast = Broadcast(registry.worker, registry.worker.kafka, most=2)
        assert not broadcast.watching
        first, second = (broadcast.join(None, readings=True) for _ in range(2))
        with pytest.raises(UnavailableError, match="2 clients listen"):
            broadcast.join(None, readings=True)
        await first.ready.wait()
        broadcast.leave(first)
        broadcast.leave(first)
        assert (broadcast.listeners, broadcast.watching, threads()) == (1, True, 1)
        broadcast.leave(second)
        assert (broadcast.listeners, broadcast.watching) == (0, False)

    asyncio.run(run())
    registry.until(lambda: threads() == 0)


def test_streams_end_when_the_server_stops(registry: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with listening(registry) as found:
        assert next(found)[0] == "hello"
        began = time.monotonic()
        stopping = threading.Thread(target=registry.server.stop)
        stopping.start()
        rest = [kind for kind, _, _ in found]
        stopping.join()
        assert time.monotonic() - began < 2.5  # it gives requests 3 s, then it breaks them off
    assert set(rest) <= {"plan", "alerts", "streams", "edges"}
    assert "Traceback" not in capfd.readouterr().err
