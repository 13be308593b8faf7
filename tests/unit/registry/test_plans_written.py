"""Plans that are kept, and the times at which plans are written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.registry.conftest import Fleet

from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import PLANS
from tamis.plan.document import PlanDocument
from tamis.plan.model import Plan
from tamis_registry.core.plan.change import Change
from tamis_registry.kafka.store import OVERHEAD
from tamis_registry.plans import (
    BYTES,
    HEADER,
    LONGEST,
    MOST_BYTES,
    RATE,
    SMALL,
    VERSIONS,
    History,
    Origin,
    PendingPlan,
)


def test_the_newest_plans_are_kept_whatever_their_order_and_size() -> None:
    history = History()
    assert history.greatest == 0
    for version in (5, 3, *range(100, 6, -1)):
        history.add(version, b"%d" % version, Origin(0))
    assert history.greatest == 100 and history.get(100) == b"100" and history.get(3) is None
    asked = []

    def size(plan: bytes) -> dict[str, int]:
        asked.append(plan)
        return {"size": len(plan), "number": int(plan[:3].strip(b"\0") or 0)}

    for _ in range(2):
        newest = [summary["number"] for summary in history.summaries(size)]
        assert newest == list(range(100, 100 - VERSIONS, -1))
    assert len(asked) == VERSIONS  # once for each
    history.add(101, bytes(BYTES // 2), Origin(0))
    history.add(102, bytes(BYTES // 2 + 1), Origin(0))
    assert [summary["size"] for summary in history.summaries(size)] == [BYTES // 2 + 1]


def plan_of(size: int) -> PlanDocument:
    """A plan of so many bytes."""
    empty = PlanDocument(Plan(1, 1, shard_streams={"": ""})).size
    found = PlanDocument(Plan(1, 1, shard_streams={"": "x" * (size - empty)}))
    assert found.size == size == len(found.json)
    return found


def test_a_small_plan_is_written_at_once_and_a_large_one_after_a_while() -> None:
    new = PendingPlan(1, plan_of(SMALL // 4), written=100.0)
    assert new.due(100.0, 4) and not new.due(100.0, 5)
    assert new.due(100.0 + 5 * (SMALL // 4) / RATE, 5)
    new = PendingPlan(1, plan_of(SMALL), written=100.0)
    assert not new.due(100.0 + LONGEST - 1, 1000) and new.due(100.0 + LONGEST, 1000)
    assert PendingPlan(1, plan_of(SMALL)).due(0.0, 1000)


def test_the_newest_plan_goes_out_with_the_final_records_of_all() -> None:
    fleet = Fleet()
    changes: list[Change] = []
    for text in (
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);",
        "DROP STREAM air;",
    ):
        changes.append(fleet.registry.apply(text, fleet.now)[1])
        fleet.registry.done(changes[-1], fleet.now)
    new = PendingPlan()
    for change in changes:
        new.take(change)
    assert (new.version, new.plan) == (changes[-1].state.version, changes[-1].written)
    assert new.why == [why for change in changes for why in change.why]
    assert new.finals == [final for change in changes for final in change.finals]


STREAM = "CREATE STREAM air (\n  k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
HOT = "CREATE ALERT hot AS\n  SELECT k FROM air WHERE v > 30;"


LONG = f"CREATE ALERT {'a' * 90} AS SELECT k FROM air WHERE v > 30;"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HOT, ["CREATE ALERT hot AS"]),
        # What changes nothing is no reason.
        (f"{STREAM} {HOT} SHOW ALERTS; EXPLAIN hot;", ["CREATE ALERT hot AS"]),
        ("ALTER STREAM air SET (max_stall = '5 minutes');", ["ALTER STREAM air"]),
        ("CREATE STREAM other (k VARCHAR);", ["CREATE STREAM other (k VARCHAR)"]),
        (LONG, [f"{LONG[:119]}…"]),
    ],
)
def test_a_plan_has_the_first_lines_of_its_statements(text: str, why: list[str]) -> None:
    fleet = Fleet()
    fleet.sql(STREAM)
    _, change = fleet.registry.apply(text, fleet.now)
    assert list(change.why) == why


def test_a_plan_says_which_shards_came_and_went() -> None:
    fleet = Fleet()
    fleet.sql(STREAM + HOT)
    fleet.ack("air", fleet.version)
    assert (came := fleet.tick()) and came.why == ("shard e1/air came",)
    fleet.ack("air", fleet.version, 100, "final")
    assert (ended := fleet.tick()) and ended.why == ("shard e1/air has ended",)
    assert fleet.registry.apply("PAUSE ALERT hot;", 0)[1].why == ("PAUSE ALERT hot",)
    assert fleet.registry.apply("DROP ALERT hot;", 0)[1].why == ("DROP ALERT hot",)
    fleet.start(finish=False)
    assert fleet.registry.begin(0).why == ("the registry started",)


def test_the_origin_is_a_header_and_earlier_plans_have_the_time_of_their_record() -> None:
    made = Origin.now(1_700_000_000_000_000, ["CREATE ALERT hot AS", "shard ü came", "shard ü came"])
    assert made.why == ("CREATE ALERT hot AS", "shard ü came")
    record = Record(PLANS, 0, 0, b"plan", b"{}", 5, (("traceparent", b"?"), made.header))
    assert Origin.of(record) == made
    assert Origin.of(replace(record, headers=())) == Origin(5_000)
    assert Origin.of(replace(record, headers=((HEADER, b"[1]"),))) == Origin(5_000)  # of a later release
    later = b'{"time":7,"why":["x"],"by":"me"}'
    assert Origin.of(replace(record, headers=((HEADER, later),))) == Origin(7, ("x",))


def test_many_reasons_fit_into_a_header() -> None:
    made = Origin.now(0, (f"shard é{n} came" for n in range(10_000)))
    *some, more = made.why
    assert sum(len(one.encode()) for one in some) <= MOST_BYTES < 2 * len(some) * 20
    assert more == f"{10_000 - len(some)} more"
    assert len(made.header[1]) < OVERHEAD - 1024
