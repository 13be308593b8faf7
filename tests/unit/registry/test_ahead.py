"""A fleet that took a reading from the future returns to the present without help."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, InProcessRegistry

from tamis.messaging.records import Ack
from tamis.plan.model import Plan
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.records import records, recover

SECOND = 1_000_000
NOW = 1_760_000_000 * SECOND
FAR = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * SECOND
STREAM = (
    "CREATE STREAM {0} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
    " WITH (max_stall = '5 minutes'{1});"
)
SQL = (
    STREAM.format("a", "")
    + STREAM.format("b", "")
    + "CREATE ALERT hot AS SELECT a.k, a.v + b.v AS sum FROM a JOIN b ON a.k = b.k"
    " AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND WHERE a.v + b.v > 10;"
    "CREATE ALERT often AS SELECT window_end, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '10' SECOND)"
    " GROUP BY window_end;"
)


def pairs(fleet: InProcessFleet, first: int, last: int) -> None:
    """A pair of readings that raises an alarm every 20 seconds."""
    for i in range(first, last):
        at = NOW + i * 20 * SECOND
        for stream in "ab":
            fleet.send(stream, [{"k": "x", "ts": at, "v": 6.0}], at)


def without_limit(plan: Plan) -> Plan:
    """The plan as releases made it that knew no limit."""
    return replace(plan, streams=tuple(replace(stream, max_ahead=None) for stream in plan.streams))


def swallowed() -> tuple[InProcessRegistry, InProcessFleet]:
    """A fleet that was without the limit as a reading of 2100 came on each stream."""
    service = InProcessRegistry(SQL, NOW)
    service.list_shards("ab", NOW)
    fleet = InProcessFleet(without_limit(service.plan))
    pairs(fleet, 0, 10)
    for stream in "ab":
        fleet.send(stream, [{"k": "x", "ts": FAR, "v": 1.0}], NOW + 200 * SECOND)
    pairs(fleet, 11, 21)
    return service, fleet


@pytest.mark.parametrize("restarted", [False, True])
def test_a_fleet_that_swallowed_the_future_comes_back(restarted: bool) -> None:
    service, fleet = swallowed()
    raised = len(fleet.alarms["hot"])
    assert raised <= 11
    assert fleet.frontier("tamis.stream.a.1") > FAR - 3 * SECOND
    # Registry and edges are upgraded: the plan is written again, with the limit.
    now = NOW + 21 * 20 * SECOND
    if restarted:
        fleet.restart()
    service.begin(now)
    fleet.obey(service.plan, now)
    for stream in "ab":
        fleet.settle(stream, now)
    assert max(ack.reached or 0 for ack in fleet.acks(now)) > FAR - 3 * SECOND
    service.hear(fleet, now)
    change = service.tick(now)
    assert change is not None
    assert change.anew == ("a", "b")
    topics = [topic.name for stream in service.plan.streams for topic in stream.topics]
    assert topics == ["tamis.stream.a.3", "tamis.stream.a.4", "tamis.stream.b.2"]
    fleet.obey(service.plan, now)
    pairs(fleet, 22, 52)
    assert len(fleet.alarms["hot"]) == raised + 30
    assert fleet.alarms["often"]
    assert all(run.high < FAR for run in fleet.runs.values())
    # Once is enough.
    service.hear(fleet, NOW + 52 * 20 * SECOND)
    assert service.tick(NOW + 52 * 20 * SECOND) is None


def test_it_is_remembered_which_version_began_anew() -> None:
    service, fleet = swallowed()
    now = NOW + 500 * SECOND
    service.hear(fleet, now)
    registry = service.registry
    for shard in "ab":
        registry.hear(said(shard, FAR, now, registry.plan.version), now)
    assert service.tick(now) is not None
    again = recover(records(registry.state))
    assert again is not None
    assert again.topics["a"].anew == registry.plan.version
    started = Registry(PLANNER, again.draft(), again, registry.plan.version, now)
    change = started.begin(now)
    assert change.plan is not None
    assert [stream.anew for stream in change.plan.streams] == [registry.plan.version] * 2


def said(stream: str, reached: int | None, time: int, plan: int) -> Ack:
    return Ack(f"{stream}:e/http", stream, "e", plan, 0, "active", time, reached=reached)


def service_of(a: str, acks: list[tuple[int | None, int]]) -> InProcessRegistry:
    """A registry that has heard what stream a reached, by which clock of its edge."""
    service = InProcessRegistry(SQL.replace(STREAM.format("a", ""), STREAM.format("a", a)), NOW)
    service.list_shards("ab", NOW)
    for reached, time in acks:
        service.registry.hear(said("a", reached, time, service.plan.version), NOW)
    return service


@pytest.mark.parametrize(
    ("option", "reached", "clock"),
    [
        ("", NOW + 600 * SECOND, NOW),  # as far as readings may be ahead
        ("", None, NOW),  # a recording that is replayed, or an edge from before
        ("", NOW, NOW - 10**9 * SECOND),  # an edge whose clock is behind
        ("", NOW + 10**9 * SECOND, NOW + 10**9 * SECOND),  # a registry whose clock is behind
        (", max_ahead = '1 second'", NOW + 60 * SECOND, NOW),  # a clock that was set back a little
        (", max_ahead = 'unlimited'", FAR, NOW),
    ],
)
def test_no_stream_begins_anew_without_need(option: str, reached: int | None, clock: int) -> None:
    assert service_of(option, [(reached, clock)]).tick(NOW) is None


def test_what_a_shard_that_has_gone_left_ahead_is_seen_by_the_frontier() -> None:
    service, fleet = swallowed()
    # Another edge has the streams now, and is in the present.
    assert fleet.last_frontier is not None
    service.registry.follow(fleet.last_frontier)
    version = service.plan.version
    service.registry.hear(said("a", NOW, NOW, version), NOW)
    service.registry.hear(said("b", None, NOW, version), NOW)
    change = service.tick(NOW)
    assert change is not None
    assert change.anew == ("a",)
