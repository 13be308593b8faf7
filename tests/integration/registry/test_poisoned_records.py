"""Records that can't be used, in every topic that a registry reads, while it runs and when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import numpy as np
import orjson
import pytest
from starlette.routing import Route
from tests.integration.registry.test_silences_http import EPISODE

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation, StreamState
from tamis.messaging.silences import Acknowledgement, Held, Silence, encode
from tamis.messaging.topics import (
    ACKS,
    ALARMS,
    DEAD_LETTERS,
    EPISODES,
    FRONTIERS,
    HEARTBEATS,
    PLANS,
    SILENCES,
    SKETCHES,
    STATEMENTS,
)
from tamis.predicates.sketch import observe

NOW = 1_700_000_000_000_000
# JSON of values; some are right for some members, and are extreme.
WRONG = (
    *(b"5", b"-7", b"0.5", b"1e308", b"1e400", b"1" * 40, b"NaN", b"true", b"null"),
    *(b"9007199254740992", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551615"),
    *(b'"x"', b'"\\ud800"', b"[5]", b"[[]]", b'{"x":5}', b'{"x":9007199254740992}', b'{"":{"x":[]}}'),
)


@dataclass(frozen=True)
class Good:
    """A record that services write."""

    topic: str
    key: bytes
    value: bytes


def good_records() -> list[Good]:
    random = np.random.default_rng(1)
    state = StreamState(5, 1, 1, False, ("e/air",), obeyed=1)
    frontier = Frontier(0, 1, {"tamis.stream.air.1": state}, {"hot@1": 1}, {"hot": 1}, 0, 0, NOW)
    ack = Ack("e/air", "air", "e", 1, 0, "active", NOW, failing={"s": "x"}, doubts=["x"], tuples={"late": 1})
    event = {
        "alert": "hot", "key": ["k"], "episode": EPISODE, "event": "opened", "start": NOW, "end": NOW,
        "alarms": 1, "row": {"v": 1}, "severity": "page", "labels": {"team": "ops"},
    }  # fmt: skip
    silence = Silence(
        id="s1", start=NOW, until=NOW + 1, alerts=("hot",), labels={"a": ("b",)}, keys=(("k",),)
    )
    seen = Acknowledgement(episode=EPISODE, alert="hot", key=("k",), made=NOW, until=NOW + 1)
    held = Held(sink="pager", partition=0, offset=1, event=event)
    sample = Observation("e/air", "air", observe({"v": random.random(5)}, random))
    shard = {"stream": "air", "edge": "e", "since": None, "gone": 1, "reason": "silent"}
    statement = {
        "sql": "CREATE ALERT cold AS SELECT k FROM air WHERE v < 1",
        "order": 9,
        "version": 1,
        "paused": False,
    }
    beat = Heartbeat(time=NOW, host="h", pid=1)
    alarm = {"alert": "hot", "id": "x", "key": ["k"], "event_time": 1, "row": {"t": 1}, "arrived": 5}
    return [
        Good(ACKS, b"e/air", ack.to_bytes()),
        Good(FRONTIERS, b"0", frontier.to_bytes()),
        Good(SKETCHES, b"e/air", sample.to_bytes()),
        Good(SILENCES, silence.record_key, encode(silence)),
        Good(SILENCES, seen.record_key, encode(seen)),
        Good(SILENCES, held.record_key, encode(held)),
        Good(HEARTBEATS, JOINER.encode(), beat.to_bytes()),
        Good(STATEMENTS, b"shard/e/air", orjson.dumps(shard)),
        Good(STATEMENTS, b"alert/cold", orjson.dumps(statement)),
        Good(PLANS, b"plan", b'{"version":1,"partitions":2}'),
        Good(ALARMS, b'["hot","k"]', orjson.dumps(alarm)),
        Good(EPISODES, b'["hot","k"]', orjson.dumps(event)),
        Good(DEAD_LETTERS, b"", b"{}"),
    ]


def poisons(good: Good) -> list[tuple[bytes | None, bytes]]:
    """Keys and values that are wrong in every way, made of a record that is right."""
    document = orjson.loads(good.value)
    values = [b"", b"\x00\xff no JSON", good.value[:-3], b"[]", b"7", b'"x"', b"null", b"{}", b"[" * 100_000]
    values += [b'{"a":' * 100_000, b'{"version":NaN}', good.value.replace(b"}", b',"x":NaN}', 1)]
    for name in document:
        for wrong in WRONG:
            whole = {**{key: msgspec.Raw(orjson.dumps(one)) for key, one in document.items()}}
            values.append(msgspec.json.encode({**whole, name: msgspec.Raw(wrong)}))
    found: list[tuple[bytes | None, bytes]] = [(good.key, value) for value in values]
    return [*found, (b"wrong", good.value), (None, good.value), (b"\xff\xfe", good.value), (b"", good.value)]


def answers(registry: Any) -> dict[str, int]:
    """The status of every GET, with names that there are."""
    names = {"{name}": "air", "{alert}": "hot", "{version}": "1", "{silence}": EPISODE, "{episode}": EPISODE}
    found = {}
    with httpx.Client(base_url=registry.server.url, timeout=60) as client:
        for route in registry.app.router.routes:
            path = getattr(route, "path", "")
            if not isinstance(route, Route) or "GET" not in (route.methods or ()) or path == "/v1/events":
                continue
            if path.startswith("/console/"):
                continue
            for pattern, name in names.items():
                path = path.replace(pattern, "hot" if "alerts" in path and pattern == "{name}" else name)
            found[path] = client.get(path).status_code
    return found


@pytest.mark.timeout(600)
def test_no_record_takes_the_registry_down(fresh: str, start: Any, sql: Any, hand: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    fleet = hand(fresh)
    answer = httpx.post(f"{registry.server.url}/v1/silences", json={"alerts": ["hot"], "seconds": 900})
    assert answer.status_code == 201
    fleet.ack("e2/surface", 1)
    registry.until(lambda: "e2" in {one["name"] for one in registry.get("edges")})
    before = answers(registry)
    assert before["/v1/edges"] == before["/v1/silences"] == before["/v1/alerts/hot"] == 200

    sent = 0
    for good in good_records():
        for key, value in poisons(good):
            fleet.garbage(good.topic, value, key)
            sent += 1
    assert sent > 700
    # The last report of all comes behind the garbage.
    fleet.ack("e3/surface", 1)
    registry.until(lambda: "e3" in {one["name"] for one in registry.get("edges")}, 60)
    assert registry.error is None
    assert answers(registry) == before
    counted = 'tamis_dead_letters_total{reason="undecodable",service="registry"}'
    shown = registry.call("GET", "/metrics").text
    (count,) = [line.split()[-1] for line in shown.splitlines() if line.startswith(counted)]
    assert float(count) > 200
    registry.stop()

    # A start reads all of it, and keeps what was right.
    again = start(fresh).ready()
    assert again.error is None
    assert answers(again) == before
    # One of the records of `cold` was right in its form, and had a text that is no statement.
    assert {one["name"] for one in again.get("alerts")} - {"cold"} == {"hot"}
    assert [one["alerts"] for one in again.get("silences")] == [["hot"]]
    again.sql("CREATE ALERT warm AS SELECT k FROM air WHERE v > 20")
    again.stop()


@pytest.mark.timeout(300)
def test_an_edge_can_t_spoil_what_others_have(fresh: str, start: Any, sql: Any, hand: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    fleet = hand(fresh)
    fleet.ack("e1/air", 9)
    registry.until(lambda: registry.get("edges"))
    now = NOW
    stolen = Ack("e1/air", "surface", "e1", 9, 0, "final", now)
    fleet.garbage(ACKS, stolen.to_bytes(), b"e1/air")
    poisoned = orjson.loads(Ack("e9/air", "air", "e9", 1, 0, "waiting", now).to_bytes()) | {"doubts": 5}
    fleet.garbage(ACKS, orjson.dumps(poisoned), b"e9/air")
    fleet.ack("e2/surface", 1)
    registry.until(lambda: "e2" in {one["name"] for one in registry.get("edges")})
    shards = {one["shard"]: one for edge in registry.get("edges") for one in edge["shards"]}
    assert "e9/air" not in shards
    assert (shards["e1/air"]["stream"], shards["e1/air"]["state"] == "ended") == ("air", False)
