"""Plans that are kept, and the times at which plans are written."""

from __future__ import annotations

from tests.unit.registry.conftest import Fleet

from tamis.plan.document import PlanDocument
from tamis.plan.model import Plan
from tamis_registry.core.plan.change import Change
from tamis_registry.plans.history import BYTES, VERSIONS, History
from tamis_registry.plans.pending import LONGEST, RATE, SMALL, PendingPlan


def test_the_newest_plans_are_kept_whatever_their_order_and_size() -> None:
    history = History()
    assert history.greatest == 0
    for version in (5, 3, *range(100, 6, -1)):
        history.add(version, b"%d" % version)
    assert history.greatest == 100 and history.get(100) == b"100" and history.get(3) is None
    asked = []

    def size(plan: bytes) -> dict[str, int]:
        asked.append(plan)
        return {"size": len(plan), "number": int(plan[:3].strip(b"\0") or 0)}

    for _ in range(2):
        newest = [summary["number"] for summary in history.summaries(size)]
        assert newest == list(range(100, 100 - VERSIONS, -1))
    assert len(asked) == VERSIONS  # once for each
    history.add(101, bytes(BYTES // 2))
    history.add(102, bytes(BYTES // 2 + 1))
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
