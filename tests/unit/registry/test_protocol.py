"""Protocol rules of the registry: shards listed and gone, final records, replaced alerts, restarts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

SECOND = 1_000_000
MAX_STALL = 3600 * SECOND

Q = (
    "CREATE {} q AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN "
    "a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > {};"
)


@pytest.fixture
def running(fleet: Any) -> Any:
    """Alert q over two streams with one shard each, obeyed by all."""
    fleet.sql(Q.format("ALERT", 5))
    for stream in ("air", "surface"):
        fleet.join(stream)
    obey(fleet, 100)
    fleet.frontier(100)
    return fleet


def obey(fleet: Any, activation: int, edges: tuple[str, ...] = ("e1",)) -> None:
    for edge in edges:
        for stream in ("air", "surface"):
            fleet.ack(stream, fleet.version, activation, "active", edge)


def test_shards_that_announce_themselves_come_into_one_plan(fleet: Any) -> None:
    before = fleet.version
    fleet.ack("air", edge="e1")
    fleet.ack("air", edge="e2")
    fleet.tick()
    assert fleet.plan.since == {"e1/air": before + 1, "e2/air": before + 1}
    assert fleet.plan.shard_streams == {"e1/air": "air", "e2/air": "air"}
    assert fleet.tick() is None


def test_a_shard_of_an_unknown_stream_waits_for_it(fleet: Any) -> None:
    fleet.ack("noise")
    assert fleet.tick() is None
    fleet.sql("CREATE STREAM noise (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);")
    assert fleet.plan.since == {"e1/noise": fleet.version}


def test_a_shard_that_has_not_been_heard_of_lately_is_not_listed(fleet: Any) -> None:
    fleet.ack("noise")
    fleet.now += 20 * SECOND
    fleet.sql("CREATE STREAM noise (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);")
    assert fleet.plan.since == {}
    fleet.start()
    assert fleet.tick() is None
    fleet.ack("noise")
    fleet.tick()
    assert fleet.plan.since == {"e1/noise": fleet.version}


def test_a_shard_that_ends_is_delisted_with_final_records(running: Any) -> None:
    running.ack("air", running.version, 100, "final")
    running.tick()
    assert "e1/air" not in running.plan.since
    assert running.finals == [("tamis.stream.air.1", "e1/air", running.version)]
    assert running.tick() is None


def test_a_silent_shard_is_declared_gone_and_comes_back_only_with_a_plan_that_says_so(running: Any) -> None:
    listed = running.version
    running.now += MAX_STALL
    running.ack("surface", listed, 100, "active")
    assert running.tick() is None
    running.now += SECOND
    running.tick()
    gone = running.version
    assert gone == listed + 1 and set(running.plan.since) == {"e1/surface"}
    assert running.finals == [("tamis.stream.air.1", "e1/air", gone)]
    running.ack("air", listed, 0, "waiting")  # doesn't know yet
    assert running.tick() is None
    running.ack("air", gone, 0, "waiting")
    running.tick()
    assert running.plan.since["e1/air"] == running.version == gone + 1
    assert running.registry.state.shards["e1/air"].gone is None


def test_a_shard_whose_source_is_silent_is_gone_until_it_has_something(running: Any) -> None:
    listed = running.version
    running.now += MAX_STALL
    for stream in ("surface", "air"):  # both edges are alive and say so
        running.ack(stream, listed, 100, "active", quiet=MAX_STALL if stream == "air" else 0)
    assert running.tick() is None
    running.now += SECOND
    running.ack("air", listed, 100, "active", quiet=MAX_STALL + SECOND)
    running.tick()
    gone = running.version
    assert gone == listed + 1 and set(running.plan.since) == {"e1/surface"}
    assert running.finals == [("tamis.stream.air.1", "e1/air", gone)]
    running.now += SECOND
    running.ack("air", gone, 0, "waiting", quiet=MAX_STALL + 2 * SECOND)
    assert running.tick() is None  # it would only be declared gone again
    running.ack("air", gone, 0, "waiting", quiet=0)
    running.tick()
    assert running.plan.since["e1/air"] == running.version == gone + 1


def test_a_shard_that_is_gone_comes_back_only_with_a_reading_though_its_edge_restarts(running: Any) -> None:
    listed = running.version
    running.now += MAX_STALL + SECOND
    running.ack("surface", listed, 100, "active")
    running.ack("air", listed, 100, "active", quiet=MAX_STALL + SECOND)
    running.tick()
    gone = running.version
    running.ack("air", gone, unread=False)  # an edge that has restarted doesn't know of the silence
    assert running.tick() is None
    running.start()  # and the registry remembers
    running.ack("air", gone, unread=False)
    assert running.tick() is None
    # A shard that was never listed is listed without a reading: an alert waits for the first shard.
    running.ack("air", gone, edge="e2", unread=False)
    running.tick()
    assert set(running.plan.since) == {"e1/surface", "e2/air"}
    running.ack("air", running.version, unread=True)
    running.tick()
    assert running.plan.since["e1/air"] == running.version


def test_a_shard_that_follows_the_clock_comes_back_without_a_reading(running: Any) -> None:
    """Nothing waits for it, and it should be listed when the rare event comes."""
    running.sql(
        "CREATE STREAM door (id INT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
        " WITH (idle_timeout = '5 seconds', max_stall = '1 minute', rate = '1/s');"
    )
    running.join("door")
    running.now += MAX_STALL + SECOND
    for stream in ("air", "surface"):
        running.ack(stream, running.version, 100, "active")
    running.tick()
    assert set(running.plan.since) == {"e1/air", "e1/surface"}
    running.ack("door", running.version, unread=False)
    running.tick()
    assert set(running.plan.since) == {"e1/air", "e1/surface", "e1/door"}


def test_joins_do_not_wait_for_an_unused_shard_where_readings_come_another_way(fleet: Any) -> None:
    """An HTTP source that takes every stream announces a shard of each."""
    fleet.sql(Q.format("ALERT", 5))
    fleet.ack("air", unread=False, unused=True)
    fleet.tick()
    assert set(fleet.plan.since) == {"e1/air"}  # as long as nobody knows of another source
    fleet.ack("air", fleet.version, 0, "active", unused=True)
    fleet.ack("air", fleet.version, edge="e2", unread=True, unused=False)
    fleet.tick()
    fleet.ack("air", fleet.version, 100, "active", "e2", unused=False)
    fleet.tick()
    assert set(fleet.plan.since) == {"e2/air"}
    fleet.ack("air", fleet.version, unread=False, unused=True)
    fleet.ack("air", fleet.version, edge="e3", unread=False, unused=True)
    assert fleet.tick() is None
    # Its first reading comes after all.
    fleet.ack("air", fleet.version, unread=True, unused=False)
    fleet.tick()
    assert set(fleet.plan.since) == {"e1/air", "e2/air"}


def test_silence_while_nobody_could_be_heard_does_not_count(running: Any) -> None:
    running.now += 2 * MAX_STALL
    running.start()
    assert running.tick() is None
    running.now += 2 * MAX_STALL
    running.registry.listen_anew(running.now)
    assert running.tick() is None
    running.now += MAX_STALL + 1
    assert running.tick() is not None


def test_final_records_are_written_again_after_a_restart(running: Any) -> None:
    running.ack("air", running.version, 100, "final")
    running.tick()
    gone = running.version
    running.start()
    assert running.finals == [("tamis.stream.air.1", "e1/air", gone)] * 2


def test_a_replaced_alert_runs_on_while_tuples_of_older_plans_may_come_or_wait(running: Any) -> None:
    old = running.plan.definitions[0].version
    running.sql(Q.format("OR REPLACE ALERT", 9))
    new = running.version
    assert [(d.alert, d.version) for d in running.plan.definitions] == [("q", old), ("q", new)]
    assert running.plan.retiring == {f"q@{old}": new}
    running.frontier(10**9)
    assert running.tick() is None  # nobody obeys yet
    running.ack("air", new, 5000, "active")
    assert running.tick() is None  # only one obeys
    running.ack("surface", new, 7000, "active")
    running.frontier(None, obeyed=old)
    assert running.tick() is None  # what was sent under the plan before may not be there yet
    running.frontier(None, plan=old)
    assert running.tick() is None  # nor may the joiner know of the new plan
    running.frontier(None, waiting=1)
    assert running.tick() is None
    running.frontier(None)  # no frontier need have passed anything: nothing waits
    running.tick()
    assert [(d.alert, d.version) for d in running.plan.definitions] == [("q", new)]
    assert running.plan.retiring == {} and running.version == new + 1
    assert not any(key.startswith(b"retiring/") for key in running.statements)


def test_one_partition_behind_keeps_the_old_definition(running: Any) -> None:
    running.sql(Q.format("OR REPLACE ALERT", 9))
    obey(running, 7000)
    running.frontier(None, waiting=1)
    behind = running.registry.seen.frontiers[1]
    running.frontier(10**9)
    running.registry.follow(behind)
    assert running.tick() is None


def test_a_joiner_that_does_not_tell_what_waits_is_waited_for(running: Any) -> None:
    """One of an older release."""
    running.sql(Q.format("OR REPLACE ALERT", 9))
    obey(running, 7000)
    running.frontier(10**9)
    for frontier in list(running.registry.seen.frontiers.values()):
        running.registry.follow(replace(frontier, waiting={}))
    assert running.tick() is None


def test_a_shard_listed_later_must_obey_too(running: Any) -> None:
    running.sql(Q.format("OR REPLACE ALERT", 9))
    obey(running, 7000)
    running.ack("air", 0, 0, "waiting", "e2")
    running.frontier(10**9)
    running.tick()  # the old definition has ended first
    assert running.plan.retiring == {}
    running.sql(Q.format("OR REPLACE ALERT", 10))
    assert "e2/air" in running.plan.since
    obey(running, 8000)
    assert running.tick() is None
    running.ack("air", running.version, 10**9, "active", "e2")
    assert running.tick() is None  # the joiner must have heard of it
    running.frontier(10**9)
    running.tick()
    assert running.plan.retiring == {}


def test_a_void_stream_keeps_nothing(running: Any) -> None:
    for stream in ("air", "surface"):
        running.ack(stream, running.version, 100, "final")
    running.tick()
    gone = running.version
    running.sql(Q.format("OR REPLACE ALERT", 9))
    running.frontier(None, void=True, plan=gone - 1)
    assert running.tick() is None  # void before the shards had gone says nothing
    running.frontier(None, void=True)
    running.tick()
    assert running.plan.retiring == {}


def test_what_a_gone_shard_sent_is_waited_for(running: Any) -> None:
    running.sql(Q.format("OR REPLACE ALERT", 9))
    for stream in ("air", "surface"):
        running.ack(stream, running.version, 100, "active")
    running.ack("air", running.version, 100, "final")
    running.tick()
    # The frontiers have passed everything, but the joiner's records of air lag behind its plans.
    running.frontier(60 * SECOND, shards=("e1/air", "e1/surface"))
    assert running.tick() is None and running.plan.retiring
    running.frontier(60 * SECOND, shards=("e1/surface",), plan=running.version - 1)
    assert running.tick() is None and running.plan.retiring
    running.frontier(60 * SECOND, shards=("e1/surface",))
    running.tick()
    assert running.plan.retiring == {}


def test_what_a_gone_shard_sent_may_still_be_joined(running: Any) -> None:
    running.sql(Q.format("OR REPLACE ALERT", 9))
    for stream in ("air", "surface"):
        running.ack(stream, running.version, 100, "active")
    running.ack("air", running.version, 100, "final")
    running.tick()
    running.frontier(60 * SECOND, shards=("e1/surface",), waiting=3)
    assert running.tick() is None and running.plan.retiring
    running.frontier(60 * SECOND, shards=("e1/surface",))
    running.tick()
    assert running.plan.retiring == {}


def test_an_alert_replaced_twice_has_two_old_definitions(running: Any) -> None:
    first = running.plan.definitions[0].version
    running.sql(Q.format("OR REPLACE ALERT", 9))
    second = running.version
    running.sql(Q.format("OR REPLACE ALERT", 11))
    assert running.plan.retiring == {f"q@{first}": second, f"q@{second}": second + 1}
    running.start()
    assert running.plan.retiring == {f"q@{first}": second, f"q@{second}": second + 1}
    running.sql("DROP ALERT q;")
    assert running.plan.definitions == () and running.plan.retiring == {}


def test_final_records_that_the_joiner_has_taken_are_not_written_again(running: Any) -> None:
    running.ack("air", running.version, 100, "final")
    running.tick()
    written = len(running.finals)
    running.frontier(0, shards=("e1/surface",))
    running.start()
    assert len(running.finals) == written


def test_a_restart_goes_on_above_every_partition(running: Any) -> None:
    version = running.version
    _, change = running.registry.apply(Q.format("OR REPLACE ALERT", 9), running.now)
    running.perform(change, steps=3)  # one partition of two has the plan
    assert [log[-1].version for log in running.plans] == [version + 1, version]
    running.start()
    assert [log[-1].version for log in running.plans] == [version + 2, version + 2]


def test_a_crash_before_the_plan_loses_no_statement(running: Any) -> None:
    old = running.plan.definitions[0].version
    _, change = running.registry.apply(Q.format("OR REPLACE ALERT", 9), running.now)
    running.perform(change, steps=1)
    running.start()
    new = change.plan.version
    assert running.plan.retiring == {f"q@{old}": new} and running.plan.version == new + 1
    assert {d.version for d in running.plan.definitions} == {old, new}


def test_a_registry_whose_kafka_is_lost_continues_above_the_plans_that_the_fleet_obeys(
    running: Any, new_fleet: Any
) -> None:
    """Edges and joiner ignore plans that are older than theirs."""
    for _ in range(5):
        running.sql("PAUSE ALERT q;")
        running.sql("RESUME ALERT q;")
    old = running.version
    obey(running, 200)
    empty = new_fleet()
    assert empty.version < old
    for ack in running.registry.seen.acks.values():
        empty.registry.hear(ack, empty.now)
    change = empty.tick()
    assert change is not None and f"the fleet obeys plan {old}" in change.why[0]
    assert empty.version == old + 1
    assert empty.tick() is None or empty.version > old

    # The shards see that they aren't listed, and announce themselves.
    empty.sql(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        + Q.format("ALERT", 5)
    )
    for stream in ("air", "surface"):
        empty.join(stream)
    assert empty.version > old and set(empty.plan.since) == {"e1/air", "e1/surface"}


def test_the_joiners_plan_counts_too_and_impossible_versions_do_not(fleet: Any) -> None:
    fleet.frontier(100, plan=fleet.version + 40)
    wanted = fleet.version + 41
    fleet.tick()
    assert fleet.version == wanted
    fleet.ack("air", plan=2**53, state="active")
    fleet.tick()
    assert fleet.version in (wanted, wanted + 1)
