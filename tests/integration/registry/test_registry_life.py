"""The registry on a real broker: shards, replaced alerts, restarts, takeovers, broker outages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import httpx
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.cli import main
from tamis.errors import InputError
from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import free_ports
from tamis.messaging.topics import ACKS, FRONTIERS, PLANS, STATEMENTS
from tamis.settings import KafkaSettings
from tamis_registry.kafka.store import FencedError, Store

SHARDS = ("e1/air", "e1/surface")
TOPICS = ("tamis.stream.air.1", "tamis.stream.surface.1")
REPLACED = (
    "CREATE OR REPLACE ALERT hot AS SELECT a.k, a.v FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN "
    "a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > 60;"
)


def settle(registry: Any, hand: Any, activation: int) -> int:
    """All shards are listed and obey the newest plan, and so does the joiner; returns its version."""
    for shard in SHARDS:
        if shard not in registry.plan()["since"]:
            hand.ack(shard, registry.plan()["version"])
    registry.until(lambda: registry.plan()["since"].keys() == set(SHARDS))
    version: int = registry.plan()["version"]
    for shard in SHARDS:
        hand.ack(shard, version, activation, "active")
    for partition in (0, 1):
        hand.frontier(partition, version, dict.fromkeys(TOPICS, activation))
    return version


def tamis(registry: Any, *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and its output."""
    done = CliRunner().invoke(main, [*arguments, "--registry", registry.server.url])
    return done.exit_code, done.output


def names(registry: Any) -> set[str]:
    """The shards that the registry shows."""
    return {shard["shard"] for edge in registry.get("edges") for shard in edge["shards"]}


def test_an_alert_runs_when_all_obey_and_its_old_definition_ends_when_nothing_waits_for_it(
    fresh: str, start: Any, hand: Any, sql: Any
) -> None:
    registry, fleet = start(fresh).ready(), hand(fresh)
    registry.sql(sql())
    version = settle(registry, fleet, 5_000_000)
    alert = registry.until(lambda: (a := registry.get("alerts/hot"))["state"] == "running" and a)
    assert alert["activations"] == {shard: {"plan": version, "event_time": 5_000_000} for shard in SHARDS}
    assert registry.get("edges")[0]["state"] == "active"

    old = alert["plan"]
    new = registry.sql(REPLACED)[0]["plan"]

    def definitions() -> Any:
        return registry.get("plans")[0]["definitions"]

    assert definitions() == [f"hot@{old}", f"hot@{new}"]
    settle(registry, fleet, 8_000_000)
    alert = registry.until(lambda: (a := registry.get("alerts/hot"))["state"] == "running" and a)
    assert "the joiner has not told" in alert["retiring"][f"hot@{old}"]
    reached = dict.fromkeys(TOPICS, 8_000_000)
    for partition, count in ((0, 0), (1, 2)):
        fleet.frontier(partition, new, reached, {f"hot@{old}": count})
    why = "2 tuples of older plans in partition 1 may still find a partner"
    registry.until(lambda: registry.get("alerts/hot")["retiring"] == {f"hot@{old}": why})
    assert definitions() == [f"hot@{old}", f"hot@{new}"]
    fleet.frontier(1, new, reached, {f"hot@{old}": 0})
    registry.until(lambda: definitions() == [f"hot@{new}"])


def test_a_silent_shard_is_declared_gone_in_band_and_comes_back(
    fresh: str, start: Any, hand: Any, sql: Any
) -> None:
    registry, fleet = start(fresh).ready(), hand(fresh)
    registry.sql(sql("3 seconds"))
    listed = settle(registry, fleet, 5_000_000)
    registry.until(lambda: registry.plan()["since"] == {}, 10)
    gone = {s["shard"]: s for e in registry.get("edges") for s in e["shards"]}
    assert {s["state"] for s in gone.values()} == {"gone"}
    for shard, topic in zip(SHARDS, TOPICS, strict=True):
        finals = fleet.read(topic)
        assert sorted(p for p, _ in finals) == [0, 1]
        for _, final in finals:
            envelope = final["_"]
            assert (envelope["kind"], envelope["shard"]) == ("final", shard) and envelope["plan"] > listed
    one = 'tamis_registry_shards{state="gone",stream="air"} 1.0'
    registry.until(lambda: one in registry.call("GET", "/metrics").text)
    assert "declared gone" in str(registry.get("alerts/hot")["why"])
    for shard in SHARDS:
        fleet.ack(shard, listed)
    time.sleep(1)
    assert registry.plan()["since"] == {}
    fleet.ack("e1/air", registry.plan()["version"])
    registry.until(lambda: "e1/air" in registry.plan()["since"])
    # The other one doesn't come back, and somebody says so.
    drop = partial(tamis, registry, "drop", "shard", "e1/surface")
    code, output = drop()
    assert code == 2 and "had something new in the last 15 s" in output
    registry.until(lambda: drop() == (0, "shard e1/surface dropped\n"), 30)
    assert drop()[0] == 2
    registry.until(lambda: 'state="gone",stream="surface"' not in registry.call("GET", "/metrics").text)
    assert names(registry) == {"e1/air"}
    registry.stop()
    assert names(start(fresh, None).ready()) == {"e1/air"}


def test_everything_is_recovered_from_kafka(fresh: str, start: Any, hand: Any, sql: Any) -> None:
    registry, fleet = start(fresh).ready(), hand(fresh)
    registry.sql(sql() + "CREATE ALERT air_alone AS SELECT k FROM air WHERE v > 90; PAUSE ALERT air_alone;")
    settle(registry, fleet, 5_000_000)
    registry.sql(REPLACED)
    plan = registry.plan()
    streams, alerts = registry.get("streams"), registry.get("alerts")
    registry.stop()
    fleet.garbage(ACKS, b"no JSON")
    fleet.garbage(FRONTIERS, b'{"partition": "x"}')

    registry = start(fresh, None).ready()
    again = registry.plan()
    assert again["version"] == plan["version"] + 1
    assert {**again, "version": 0} == {**plan, "version": 0}

    def names(rows: Any) -> Any:
        return [(row["name"], row["plan"], row["sql"]) for row in rows]

    assert names(registry.get("streams")) == names(streams) and names(registry.get("alerts")) == names(alerts)
    assert {a["name"]: a["state"] for a in registry.get("alerts")} == {
        "hot": "starting",
        "air_alone": "paused",
    }
    assert [m["result"] for m in registry.sql(REPLACED)] == ["unchanged"]
    assert {p for p, doc in fleet.read(PLANS) if doc["version"] == again["version"]} == {0, 1}


def test_plans_keep_their_time_and_their_reasons(fresh: str, start: Any, hand: Any, sql: Any) -> None:
    began = time.time_ns() // 1000
    first = start(fresh).ready()
    first.sql(sql())
    settle(first, hand(fresh), 100)
    assert "ALERT hot" in tamis(first, "get", "plans")[1]
    before = {plan["version"]: (plan["made"], plan["why"]) for plan in first.get("plans")}
    assert all(began <= made <= time.time_ns() // 1000 for made, _ in before.values())
    assert ["the registry started"] in [why for _, why in before.values()]
    assert {f"shard {shard} came" for shard in SHARDS} <= {one for _, why in before.values() for one in why}
    first.stop()
    again = {plan["version"]: (plan["made"], plan["why"]) for plan in start(fresh).ready().get("plans")}
    newest = max(again)
    assert again.pop(newest)[1] == ["the registry started"]
    assert before.items() <= again.items()


def test_without_the_statements_the_fleet_keeps_its_plan_until_they_are_applied_again(
    fresh: str, start: Any, hand: Any, sql: Any
) -> None:
    registry, fleet = start(fresh).ready(), hand(fresh)
    registry.sql(sql())
    version = settle(registry, fleet, 5_000_000)
    registry.stop()
    admin = AdminClient({"bootstrap.servers": fresh})
    admin.delete_topics([STATEMENTS])[STATEMENTS].result()
    for _ in range(2):  # a restart is no reason to write a plan either
        registry = start(fresh).ready()
        assert registry.get("alerts") == registry.get("streams") == []
        fleet.ack(SHARDS[0], version, 5_000_000, "active")
        assert [plan["version"] for plan in registry.get("plans") if plan["newest"]] == [version]
        registry.stop()
    registry = start(fresh).ready()
    registry.sql(sql())
    assert registry.plan()["version"] == version + 1
    assert registry.get("alerts/hot")["plan"] == version + 1
    settle(registry, fleet, 6_000_000)
    registry.until(lambda: registry.get("alerts/hot")["state"] == "running")


def test_after_all_streams_were_dropped_a_plan_without_any_is_written_at_a_start(
    fresh: str, start: Any, hand: Any, sql: Any
) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    registry.sql("DROP ALERT hot; DROP STREAM air; DROP STREAM surface;")
    dropped = registry.plan()
    assert dropped["streams"] == []
    registry.stop()
    assert start(fresh).ready().plan() == {**dropped, "version": dropped["version"] + 1}


def test_a_record_that_is_no_plan_stops_no_registry(fresh: str, start: Any, hand: Any, sql: Any) -> None:
    registry, fleet = start(fresh).ready(), hand(fresh)
    registry.sql(sql())
    plan = registry.plan()
    registry.stop()
    (whole, *_) = [record.value for record in fleet.records(PLANS) if record.value is not None]
    ahead = plan["version"] + 40
    cut = whole.replace(b'"version":1,', b'"version":%d,' % ahead, 1)[:100]
    for partition, key, value in (
        (0, b"plan", b"no JSON"),
        (0, b"?", b"\xff"),
        (1, b"plan", cut),  # somebody may have read it whole
        (1, b"!", b'{"version": "x"}'),
        (1, b"plan", b'{"version": 99999999999999999999}'),
        (1, b"plan", b"[]"),
    ):
        fleet.garbage(PLANS, value, key, partition)

    registry = start(fresh, None).ready()
    again = registry.plan()
    assert again["version"] == ahead + 1
    assert {**again, "version": 0} == {**plan, "version": 0}
    assert [row["newest"] for row in registry.get("plans")][:2] == [True, False]
    exposed = registry.call("GET", "/metrics").text
    assert 'tamis_dead_letters_total{reason="undecodable",service="registry"} 6.0' in exposed
    newest: dict[tuple[int, bytes | None], bytes | None] = {}
    for record in fleet.records(PLANS):
        newest[record.partition, record.key] = record.value
    assert newest.keys() == {(0, b"plan"), (1, b"plan"), (0, b"?"), (1, b"!")}
    assert newest[0, b"?"] is newest[1, b"!"] is None  # compaction drops them
    assert newest[0, b"plan"] == newest[1, b"plan"] is not None


def test_a_second_registry_takes_over_and_the_first_stops(fresh: str, start: Any, sql: Any) -> None:
    first = start(fresh).ready()
    first.sql(sql())
    second = start(fresh).ready()
    assert first.ended()
    assert isinstance(first.error, FencedError) and "another registry has taken over" in str(first.error)
    answer = first.call("POST", "/v1/statements", "SHOW ALERTS;")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and answer.json()["retriable"] is True
    assert answer.headers["retry-after"]
    assert first.call("GET", "/readyz").status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert second.sql("DROP ALERT hot;")[0]["result"] == "dropped"


def test_a_registry_that_plans_for_long_is_not_fenced_by_the_first(fresh: str, start: Any, sql: Any) -> None:
    first = start(fresh).ready()
    first.sql(sql())
    second = Store(KafkaSettings(bootstrap=fresh), "second")
    second.take_over(mine=False)
    # It has no plan yet.
    assert first.call("POST", "/v1/statements", "DROP ALERT hot;").status_code != httpx.codes.OK
    assert first.ended(30)
    assert isinstance(first.error, FencedError)
    second.write_statements({b"alert/none": None})
    second.close()


def test_the_partition_count_is_for_ever(fresh: str, start: Any) -> None:
    start(fresh, 3).ready().stop()
    other = start(fresh, 5)
    assert other.ended(30)
    assert isinstance(other.error, InputError)
    assert "TAMIS_PARTITIONS: the fleet has 3 partitions, but TAMIS_PARTITIONS is 5" in str(other.error)


def test_a_foreign_topic_in_the_way_is_named_and_stops_nothing(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    admin = AdminClient({"bootstrap.servers": fresh})
    admin.create_topics([NewTopic(TOPICS[0], 7)])[TOPICS[0]].result()
    answer = registry.call("POST", "/v1/statements", sql())
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert answer.json()["where"] == f"topic {TOPICS[0]}" and "7 partitions" in answer.json()["detail"]
    assert registry.get("streams") == []
    assert registry.sql(sql().partition("CREATE ALERT")[0])[0]["result"] == "created"


def test_a_broker_that_goes_away_and_comes_back(
    empty: EmbeddedKafka, start: Any, hand: Any, sql: Any
) -> None:
    registry = start(empty.bootstrap).ready()
    registry.sql(sql("6 seconds"))
    settle(registry, hand(empty.bootstrap), 5_000_000)
    empty.stop()
    registry.until(lambda: registry.call("GET", "/readyz").status_code == httpx.codes.SERVICE_UNAVAILABLE)
    answer = registry.call("POST", "/v1/statements", "DROP ALERT hot;")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
    empty.start()
    registry.ready()
    # Nobody could be heard for longer than max_stall, and that is no shard's fault.
    assert registry.plan()["since"].keys() == set(SHARDS)
    assert registry.sql("DROP ALERT hot;")[0]["result"] == "dropped"


@contextmanager
def registry_process(bootstrap: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A registry as a process of its own, ready, and its port."""
    (port,) = free_ports(1)
    environment = {**os.environ, "TAMIS_KAFKA_BOOTSTRAP": bootstrap, "TAMIS_PARTITIONS": "2"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tamis.cli", "registry", "--port", str(port)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 40
        while not _ready(port):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        yield process, port
    finally:
        process.kill()
        process.wait()


def test_sigterm_ends_the_process_with_0(fresh: str, hand: Any) -> None:
    with registry_process(fresh) as (process, _):
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 0, said
    assert [doc["partitions"] for _, doc in hand(fresh).read(STATEMENTS)] == [2]


def test_sigterm_ends_a_registry_that_waits_for_a_broker_that_is_gone(broker: EmbeddedKafka) -> None:
    with registry_process(broker.bootstrap) as (process, port), ThreadPoolExecutor(1) as other:
        broker.kill()
        stream = b"CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        answer = other.submit(
            httpx.post, f"http://127.0.0.1:{port}/v1/statements", content=stream, timeout=60
        )
        # The text is planned, and its transaction waits for Kafka, for up to ten seconds.
        with suppress(FutureTimeout):
            assert answer.result(timeout=1.5).status_code == httpx.codes.SERVICE_UNAVAILABLE
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=10)
        with suppress(httpx.TransportError):
            assert answer.result().status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert process.returncode == 0, said


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
