"""Status of alerts over many shards: the same as by looking at each shard for each alert, and short."""

from __future__ import annotations

import random
from typing import Any

from tamis_registry.core.status import MOST_REASONS, View, alert_state, shard_state

SECOND = 1_000_000
STREAM = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"


def reasons(view: View, alert: Any) -> list[str]:
    """All reasons of an alert over stream air that is not running, found shard by shard."""
    shards = [one for _, one in sorted(view.state.shards.items()) if one.stream == "air"]
    starting = [
        f"shard {one.name} has not taken up plan {alert.version} yet"
        for one in shards
        if one.since is not None
        and one.since <= alert.version
        and view.seen.obeys(one.name, alert.version) is None
    ]
    told = [shard_state(view, one) for one in shards]
    late = ("behind", "waiting") if view.settled else ()
    return starting or [why for state, why in told if state in ("away", "gone", *late)]


def test_the_reasons_are_those_of_each_shard(new_fleet: type[Any]) -> None:
    r, seen = random.Random(1), set()
    for _ in range(12):
        fleet = new_fleet()
        fleet.sql(STREAM)
        edges = [f"e{number}" for number in range(r.choice((3, 12)))]
        for number, edge in enumerate(edges):
            if number % 3 == 0:
                fleet.sql(f"CREATE ALERT q{number} AS SELECT k FROM air WHERE v > {number};")
            fleet.join("air", edge)
        for _ in range(4):
            for edge in edges:
                if r.random() < 0.7:
                    fleet.ack("air", r.randint(fleet.version - 2, fleet.version), 100, "active", edge)
            fleet.frontier(100)
            fleet.now += r.choice((1, 11, 16)) * SECOND
            view = fleet.registry.view(fleet.now)
            for alert in view.state.of_kind("alert"):
                state, why = alert_state(view, alert)
                assert [one for one in why if one.startswith("shard")] == reasons(view, alert)
                assert (state != "running") == bool(why)
                seen.add(state)
    assert seen == {"starting", "running", "degraded"}


def test_a_status_names_some_of_many_shards(fleet: Any) -> None:
    fleet.sql("CREATE ALERT q AS SELECT k FROM air WHERE v > 3;")
    for number in range(MOST_REASONS + 5):
        fleet.join("air", f"e{number:02}")
    fleet.sql("CREATE OR REPLACE ALERT q AS SELECT k FROM air WHERE v > 4;")
    fleet.frontier(100)
    view = fleet.registry.view(fleet.now)
    state, why = alert_state(view, view.state.alert("q"))
    assert state == "starting"
    assert len(why) == MOST_REASONS + 1
    assert why[-1] == "and further shards"
