"""Events for listeners: limits of queues and of listeners, and who gets alarms."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.unit.registry.test_proving import started

from tamis.messaging.records import Ack
from tamis.web.tokens import Token, Tokens, digest
from tamis_registry.http.live.broadcast import LONGEST_QUEUE, Event, Listener, _seen
from tamis_registry.http.live.events import messages_of


def event(number: int, kind: str = "plan") -> Event:
    return Event(number, kind, b"{}")


def test_a_queue_is_limited_and_the_listener_is_told() -> None:
    async def run() -> list[bytes]:
        listener = Listener(asyncio.get_running_loop(), readings=True)
        for number in range(LONGEST_QUEUE + 7):
            listener.offer(event(number))
        listener.ready.set()
        found = messages_of(listener, {"plan": 3}, lambda: True)
        return [await anext(found) for _ in range(LONGEST_QUEUE + 2)]

    hello, *queued, gap = asyncio.run(run())
    assert hello == b'event: hello\ndata: {"plan":3}\n\n'
    assert queued == [b"id: %d\nevent: plan\ndata: {}\n\n" % number for number in range(LONGEST_QUEUE)]
    assert gap == b'event: gap\ndata: {"missed":7}\n\n'


def test_a_listener_hears_nothing_after_its_token_is_revoked() -> None:
    async def run() -> list[bytes]:
        listener = Listener(asyncio.get_running_loop(), readings=True)
        listener.ready.set()
        valid = [True, True, False]
        for number in range(4):
            listener.offer(event(number, "alarm"))
        return [message async for message in messages_of(listener, {"plan": 3}, lambda: valid.pop(0))]

    hello, *heard = asyncio.run(run())
    assert hello.startswith(b"event: hello") and heard == [event(0, "alarm").text, event(1, "alarm").text]


def test_a_token_counts_as_long_as_it_is_listed_unchanged() -> None:
    token = Token("ops", digest("tamis_x"), "reader", expires=datetime(2030, 1, 1, tzinfo=UTC), readings=True)
    early, late = datetime(2029, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    assert Tokens([token]).holds(token, early)
    assert not Tokens([token]).holds(token, late)
    assert not Tokens([]).holds(token, early)
    assert not Tokens([replace(token, readings=False)]).holds(token, early)


def test_only_listeners_with_the_right_get_readings() -> None:
    async def run(readings: bool) -> list[str]:
        listener = Listener(asyncio.get_running_loop(), readings)
        for number, kind in enumerate(("plan", "alarm", "episode", "edges")):
            listener.offer(event(number, kind))
        return [one.kind for one in listener.waiting]

    assert asyncio.run(run(False)) == ["plan", "edges"]
    assert asyncio.run(run(True)) == ["plan", "alarm", "episode", "edges"]


def test_a_stream_ends_after_the_messages_that_wait() -> None:
    async def run() -> list[bytes]:
        listener = Listener(asyncio.get_running_loop(), readings=True)
        listener.offer(event(1))
        listener.end()
        async with asyncio.timeout(5):
            return [message async for message in messages_of(listener, {"plan": 3}, lambda: True)]

    hello, *heard = asyncio.run(run())
    assert hello.startswith(b"event: hello") and heard == [event(1).text]


def test_a_look_tells_apart_which_sources_fail() -> None:
    registry = started()

    def looked(moment: int, failing: dict[str, str] | None) -> Any:
        registry.hear(Ack("air:e1/s", "air", "e1", 0, 0, "waiting", moment, failing=failing), moment)
        return _seen(registry.view(moment))["edges"]

    well, ill = looked(1, None), looked(2, {"mqtt": "refused (after 3 ms)"})
    assert ill != well
    assert looked(3, {"mqtt": "refused (after 9 ms)"}) == ill
    assert looked(4, {"mqtt": "refused", "kafka": "refused"}) != ill
    assert looked(5, None) == well
