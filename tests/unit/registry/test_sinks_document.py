"""`GET /v1/sinks`: what the heartbeats of the alerts service say about sinks, and what silence means."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.registry.test_openapi import Made, made

from tamis.messaging.heartbeats import Heartbeat, SinkState
from tamis_registry.http.state.fleet import sink_documents

SECOND = 1_000_000
BEGIN = 100 * SECOND

__all__ = ["made"]


@pytest.fixture
def told(made: Made) -> Made:
    """A registry that has just begun to listen."""
    seen = made.registry.seen
    seen.floor = BEGIN
    seen.heartbeats.clear()
    seen.services_heard.clear()
    return made


def hear(told: Made, worker: str, at: int | None, **sinks: SinkState) -> None:
    beat = Heartbeat(time=at or BEGIN - 60 * SECOND, sinks=sinks)
    told.registry.take_heartbeat(f"alerts/{worker}", beat, at)


def documents(told: Made, now: int) -> dict[str, dict[str, Any]]:
    found = sink_documents(told.registry.view(now))
    told.check("/v1/sinks", found)
    return {one["name"]: one for one in found}


def test_a_sink_is_the_sum_of_the_workers_that_report(told: Made) -> None:
    assert told.client.get("/v1/sinks").json() == []
    hear(told, "a", BEGIN, pager=SinkState(waiting=2, oldest=BEGIN - 3 * SECOND), log=SinkState())
    hear(told, "b", BEGIN, pager=SinkState(waiting=1, oldest=BEGIN - 9 * SECOND))
    found = documents(told, BEGIN + SECOND)
    assert list(found) == ["log", "pager"]
    pager = found["pager"]
    assert (pager["state"], pager["waiting"], pager["why"]) == ("delivering", 3, [])
    assert pager["oldest"] == BEGIN - 9 * SECOND
    late = documents(told, BEGIN + 7 * SECOND)["pager"]
    why = ["sink pager: 3 notifications wait, the oldest for 16 s"]
    assert (late["state"], late["why"]) == ("behind", why)
    full = SinkState(waiting=1000, unread=2500, oldest=BEGIN - 9 * SECOND)
    hear(told, "b", BEGIN, pager=full)
    more = documents(told, BEGIN + 7 * SECOND)["pager"]
    assert (more["waiting"], more["unread"]) == (1002, 2500)
    assert more["why"][0].endswith("for 16 s; 2,500 more events of episodes are in Kafka")
    # The partitions of a worker that has ended are those of the other.
    for second in (8, 20):
        hear(told, "b", BEGIN + second * SECOND, pager=SinkState(waiting=1, oldest=BEGIN))
    assert documents(told, BEGIN + 21 * SECOND)["pager"]["waiting"] == 1


def test_a_sink_that_takes_nothing_says_why(told: Made) -> None:
    state = SinkState(waiting=1, oldest=BEGIN, error="HTTP status 503")
    hear(told, "a", BEGIN + SECOND, pager=state, log=SinkState())
    found = documents(told, BEGIN + 2 * SECOND)
    assert found["pager"]["state"] == "failing" and found["pager"]["error"] == "HTTP status 503"
    assert found["pager"]["why"] == ["sink pager: 1 notification waits, the oldest for 2 s: HTTP status 503"]
    assert found["log"]["state"] == "delivering"


def test_an_alerts_service_that_is_silent_makes_its_sinks_silent(told: Made) -> None:
    hear(told, "a", None, pager=SinkState(waiting=4))
    assert documents(told, BEGIN + SECOND)["pager"]["state"] == "delivering"
    found = documents(told, BEGIN + 16 * SECOND)["pager"]
    why = ["the alerts service has reported nothing since 1970-01-01T00:00:40Z"]
    assert (found["state"], found["waiting"], found["why"]) == ("silent", 4, why)


def test_a_heartbeat_of_a_later_release_is_read_and_garbage_is_not() -> None:
    later = b'{"time": 5, "more": 1, "sinks": {"pager": {"waiting": 3, "more": true}}}'
    assert Heartbeat.from_bytes(later) == Heartbeat(time=5, sinks={"pager": SinkState(waiting=3)})
    for wrong in (b"", b"[]", b'{"time": "x"}', b'{"time": 1, "sinks": {"a": 1}}'):
        with pytest.raises(ValueError, match=r".+"):
            Heartbeat.from_bytes(wrong)
