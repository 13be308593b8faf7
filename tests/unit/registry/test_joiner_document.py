"""The joiner's document, rates of shards, and what a look for events compares."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.in_process_fleet import InProcessRegistry
from tests.unit.registry.test_openapi import Made, made, make

from tamis.durations import iso_text
from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier, StreamState
from tamis_registry.core.shards.fleet_reports import LEAST_SPAN, RECENT_SPAN, SPAN, Rates
from tamis_registry.http.documents.alerts import alert_documents
from tamis_registry.http.documents.edges import edge_documents
from tamis_registry.http.documents.streams import stream_documents
from tamis_registry.http.live import broadcast
from tamis_registry.http.state.joiner import joiner_document

SECOND = 1_000_000
ACK = Ack("air:e1/s", "air", "e1", 3, 0, "active", 0)

__all__ = ["made"]


def counted(time: int, **tuples: int) -> Ack:
    return replace(ACK, time=time, tuples=tuples)


def test_rates_are_differences_over_one_to_two_spans() -> None:
    """The oracle keeps all counts and finds the two that the rate is made of."""
    for seed in range(20):
        numbers = random.Random(seed)
        rates, past = Rates(), list[tuple[int, int]]()
        time = total = 0
        for _ in range(60):
            time += numbers.randrange(1, 4 * SECOND)
            total += numbers.randrange(5)
            past.append((time, total))
            rates.hear(counted(time, published=total))
            found = rates.of(ACK.shard)
            if time - past[0][0] < LEAST_SPAN:
                assert found is None
                continue
            assert found is not None
            possible = [(total - n) * SECOND / (time - t) for t, n in past if t < time]
            young = [
                (total - n) * SECOND / (time - t)
                for t, n in past
                if SPAN <= time - t <= 2 * SPAN + 4 * SECOND or t == past[0][0]
            ]
            assert found["published"] in possible
            if time - past[0][0] > 2 * SPAN + 4 * SECOND:
                assert found["published"] in young[1:]


def test_rates_begin_anew_with_the_counts() -> None:
    rates = Rates()
    for time, n in ((0, 0), (5, 100), (6, 3), (8, 7)):
        rates.hear(counted(time * SECOND, published=n))
    assert rates.of(ACK.shard) == {"published": 2.0}
    rates.hear(ACK)
    assert rates.of(ACK.shard) is None and rates.of("nobody") is None


def test_what_was_added_is_recent_for_one_to_two_spans() -> None:
    recent, shown = Rates(RECENT_SPAN), dict[int, int]()
    for second in range(0, 1300, 2):
        recent.hear(counted(second * SECOND, published=second, dead=3 if second >= 10 else 0))
        found = recent.growth(ACK.shard)
        assert found is not None and found.span <= 2 * RECENT_SPAN
        assert found.tuples["published"] == found.span // SECOND
        shown[second] = found.tuples["dead"]
    told = [second for second, dead in shown.items() if dead]
    assert {shown[second] for second in told} == {3}
    assert told[0] == 10 and RECENT_SPAN <= (told[-1] - told[0] + 2) * SECOND <= 2 * RECENT_SPAN
    assert recent.growth("nobody") is None


def test_reports_of_older_edges_have_no_counts() -> None:
    assert b"tuples" not in ACK.to_bytes() and Ack.from_bytes(ACK.to_bytes()) == ACK
    newer = replace(ACK, tuples={"published": 5}, watermark=7)
    assert Ack.from_bytes(newer.to_bytes()) == newer
    for wrong in ({"tuples": {"published": -1}}, {"tuples": [1]}, {"watermark": "soon"}):
        with pytest.raises(ValueError, match=r"tuples|watermark"):
            Ack.from_bytes(replace(ACK, **wrong).to_bytes())


def test_streams_have_counts_rates_and_the_retained_share(made: Made) -> None:
    for time, n in ((1, 0), (11, 40), (12, 60)):
        counts = {"published": n, "omitted": 2 * n, "filtered": 0, "late": n, "dead": 5}
        made.registry.hear(
            replace(ACK, plan=made.registry.plan.version, time=time * SECOND, tuples=counts, watermark=9), 1
        )
    streams = {one["name"]: one for one in made.client.get("/v1/streams").json()}
    made.check("/v1/streams", list(streams.values()))
    air = streams["air"]
    assert air["tuples"] == {"published": 60, "omitted": 120, "filtered": 0, "late": 60, "dead": 5}
    assert air["retained"] == 0.5
    # The shard was heard long ago by the clock of the machine, and has no rates any more.
    assert air["rates"] is None
    fresh = {one["name"]: one for one in stream_documents(made.registry.view(1))}
    assert fresh["air"]["rates"]["omitted"] == pytest.approx(120 / 11)
    (shard,) = air["shards"]
    assert (shard["watermark"], shard["tuples"], shard["recent"]) == (9, air["tuples"], None)
    recent = fresh["air"]["shards"][0]["recent"]
    added = {"published": 60, "omitted": 120, "filtered": 0, "late": 60, "dead": 0}
    assert recent == {"seconds": 11, "tuples": added}
    made.check("/v1/streams", list(fresh.values()))
    assert streams["surface"]["rates"] is None and streams["surface"]["retained"] is None
    made.check("/v1/edges", made.client.get("/v1/edges").json())


def frontier(made: Made, partition: int, topics: dict[str, int | None], **more: Any) -> Frontier:
    states = {name: StreamState(value, 10, 1000, False) for name, value in topics.items()}
    facts = {"plan": made.registry.plan.version, "definitions": {}, "alarms": {}, "late": 1, "parked": 2}
    return Frontier(partition, topics=states, **{**facts, "time": 0, **more})


def test_the_joiner_names_the_shard_that_it_waits_for() -> None:
    made = make()
    registry, now = made.registry, made.now + 100 * SECOND
    topics = [topic.name for stream in registry.plan.streams for topic in stream.topics]
    for partition in range(registry.state.partitions):
        registry.follow(frontier(made, partition, dict.fromkeys(topics, 5), time=now), now)

    def why(quiet: int, behind: int) -> dict[str, list[str]]:
        for stream, silence, watermark in (("air", 0, 1_000), ("surface", quiet, 1_000 - behind)):
            told = replace(ACK, shard=f"{stream}:e1/s", stream=stream, plan=registry.plan.version)
            registry.hear(replace(told, quiet=silence * SECOND, watermark=watermark * SECOND), now)
        found = joiner_document(registry.view(now))["topics"]
        return {one["stream"]: one["why"] for one in found if one["why"]}

    assert why(10, 500) == {}  # it may have a reading at any time
    assert why(20, 1) == {}  # it holds nobody back
    (reason,) = why(20, 500)["surface"]
    assert reason.startswith(
        "shard surface:e1/s has had nothing new for 20 s; the joiner waits for it until max_stall"
    )
    assert reason.endswith(": tamis drop shard surface:e1/s")


@pytest.mark.parametrize(("edge", "allowed"), [("raw", 0), ("auto", 3_600 + 5)])
def test_partial_aggregates_may_lie_behind_by_a_pane_and_the_delay(edge: str, allowed: int) -> None:
    now = 1_000_000 * SECOND
    made = InProcessRegistry(
        "CREATE STREAM air (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);"
        f"CREATE ALERT q WITH (edge = '{edge}') AS SELECT window_end, count(*) AS n"
        " FROM TUMBLE(air, ts, INTERVAL '1' HOUR) GROUP BY window_end",
        now,
    )
    made.list_shards(["air"], now)
    (topic,) = [topic.name for stream in made.plan.streams for topic in stream.topics]
    for lag in (3_700, 1, None):
        at = None if lag is None else now - lag * SECOND
        state = StreamState(at, 0, 0, False)
        made.registry.follow(Frontier(0, made.plan.version, {topic: state}, {}, {}, 0, 0, now))
        found = joiner_document(made.registry.view(now))
        for one in (*found["partitions"], *found["topics"]):
            assert one["frontier"] == at
            assert one["behind"] == (None if lag is None else max(0, lag - allowed) * SECOND)


def test_the_joiner_says_how_far_it_is_and_why(made: Made) -> None:
    registry = made.registry
    registry.hear(replace(ACK, plan=registry.plan.version, watermark=9), 1)
    registry.seen.frontiers.clear()
    empty = made.client.get("/v1/joiner").json()
    made.check("/v1/joiner", empty)
    assert (empty["state"], empty["plan"], empty["why"]) == (
        "unknown",
        0,
        ["the joiner has reported nothing yet"],
    )
    topics = [topic.name for stream in registry.plan.streams for topic in stream.topics]
    name = next(one.alert for one in registry.plan.definitions)
    definition = f"{name}@{next(one.version for one in registry.plan.definitions)}"
    registry.follow(frontier(made, 0, dict.fromkeys(topics, 5), definitions={definition: 3}, dead={"x": 1}))
    one = joiner_document(registry.view(1))
    assert one["why"] == ["the joiner has reported nothing yet about partition 1"]
    assert all(topic["frontier"] is None for topic in one["topics"])
    registry.follow(frontier(made, 1, dict.fromkeys(topics, 4), definitions={definition: 4}, dead={"x": 2}))
    both = made.client.get("/v1/joiner").json()
    made.check("/v1/joiner", both)
    assert (both["state"], both["plan"], both["why"]) == ("running", registry.plan.version, [])
    assert {topic["frontier"] for topic in both["topics"]} == {4}
    assert {topic["tuples"] for topic in both["topics"]} == {20}
    assert (both["late"], both["parked"], both["dead"]) == (2, 4, {"x": 3})
    live = {one["definition"]: one["live"] for one in both["definitions"]}
    assert live.pop(definition) == 7 and set(live.values()) <= {0}
    air = next(topic for topic in both["topics"] if topic["stream"] == "air")
    assert air["slowest"] == {"shard": "air:e1/s", "watermark": 9}
    registry.follow(frontier(made, 1, dict.fromkeys(topics, None), plan=1, unable={name: "no such function"}))
    now = registry.published + 70 * SECOND
    late = joiner_document(registry.view(now))
    assert late["state"] == "behind"
    assert late["why"] == [
        f"partition 1 uses plan 1, and the newest is plan {registry.plan.version}",
        f"alert {name} can't be evaluated: no such function",
    ]
    waiting = next(topic for topic in late["topics"] if topic["stream"] == "air")
    assert waiting["frontier"] is None and "has said nothing since" in waiting["why"][0]
    # Its silence counts only while there is something to join.
    for partition in range(2):
        registry.follow(frontier(made, partition, dict.fromkeys(topics, 5), time=now - 61 * SECOND))
    assert joiner_document(registry.view(now))["why"] == []
    registry.hear(replace(ACK, plan=registry.plan.version), now)
    assert joiner_document(registry.view(now))["why"] == [
        "the joiner has ended no batch for 61 s, though shards are active"
    ]


def test_a_silent_joiner_is_told_first_and_no_shard_is_blamed(made: Made) -> None:
    registry = made.registry
    topics = [topic.name for stream in registry.plan.streams for topic in stream.topics]
    now = registry.published + 20 * SECOND
    for shard in [shard.name for shard in registry.state.listed(["air", "surface"])]:
        stream, edge = shard.partition(":")[0], shard.partition(":")[2].partition("/")[0]
        told = replace(ACK, shard=shard, stream=stream, edge=edge, plan=registry.plan.version, watermark=9)
        registry.hear(told, now)
    for partition in range(2):
        registry.follow(frontier(made, partition, dict.fromkeys(topics, 5), time=now), now)
    # Without heartbeats it is of an earlier release, which reports only with batches.
    assert joiner_document(registry.view(now + 40 * SECOND))["state"] == "running"
    registry.take_heartbeat(JOINER, Heartbeat(time=now), now + SECOND)
    fresh = joiner_document(registry.view(now + 15 * SECOND))
    assert (fresh["state"], fresh["reported_ago"], fresh["process"]) == ("running", 14, None)
    assert next(topic for topic in fresh["topics"] if topic["stream"] == "air")["slowest"] is not None
    view = registry.view(now + 18 * SECOND)
    silent = joiner_document(view)
    why = f"the joiner has reported nothing since {iso_text(now + SECOND, 'seconds')}"
    made.check("/v1/joiner", silent)
    assert (silent["state"], silent["why"], silent["reported_ago"]) == ("silent", [why], 17)
    assert all(topic["slowest"] is None and topic["why"] == [] for topic in silent["topics"])
    # The console asks for alerts a moment later, and shows the reason once.
    later = registry.view(now + 19 * SECOND)
    assert all(alert["why"][0] == why for alert in alert_documents(later))
    assert {alert["state"] for alert in alert_documents(view)} <= {"degraded", "starting"}
    registry.take_heartbeat(JOINER, Heartbeat(time=now, host="node7", pid=12), now + SECOND)
    assert joiner_document(registry.view(now + 18 * SECOND))["process"] == "process 12 on node7"
    # Kafka was away meanwhile, so nobody could be heard.
    registry.listen_anew(now + 18 * SECOND)
    assert joiner_document(registry.view(now + 30 * SECOND))["state"] == "running"


def test_a_registry_that_starts_beside_a_dead_joiner_says_so_after_some_heartbeats(made: Made) -> None:
    registry = made.registry
    registry.seen.floor = now = 100 * SECOND
    registry.seen.frontiers.clear()
    registry.seen.services_heard.clear()
    registry.take_heartbeat(JOINER, Heartbeat(time=40 * SECOND), None)
    assert joiner_document(registry.view(now + 14 * SECOND))["state"] == "unknown"
    silent = joiner_document(registry.view(now + 16 * SECOND))
    assert (silent["state"], silent["why"]) == (
        "silent",
        ["the joiner has reported nothing since 1970-01-01T00:00:40Z"],
    )


def _shard(shard: dict[str, Any]) -> tuple[str, str, str, int, bool]:
    return shard["shard"], shard["edge"], shard["state"], shard["plan"] or 0, bool(shard["doubts"])


def test_a_look_finds_the_same_changes_as_documents_have(made: Made) -> None:
    """The oracle makes the documents, as it was done before."""
    view = made.registry.view(1)
    found = broadcast._seen(view)
    streams, edges = stream_documents(view), edge_documents(view)
    for one in streams:
        expected = [_shard(shard) for shard in one["shards"]]
        assert found["streams"][one["name"]][1:] == expected
    of_edges = {one["name"]: [_shard(shard) for shard in one["shards"]] for one in edges}
    assert found["edges"] == of_edges
    alerts = {
        one["name"]: (one["state"], tuple(one["why"]), one["plan"], sorted(one["retiring"]))
        for one in alert_documents(view)
    }
    assert {name: (a, tuple(b), c, d) for name, (a, b, c, d) in found["alerts"].items()} == alerts
