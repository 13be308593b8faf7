"""Plans that replace an alert: readings of before belong to the old definition, all others to the new."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.edge.core.test_shard_run import SHARD, batch, sent, started
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.plan.model import Definition, Input, Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.shard_run import ShardRun


def definition(version: int, stream: str = "air") -> Definition:
    source = Input("a", stream, f"tamis.stream.{stream}.1", "ts", ("station",), None, 0)
    return Definition("hot", version, (source,), (), (), None, ())


def before() -> Plan:
    return replace(plan(air([topic([entry(1000)])]), [SHARD], 1), definitions=(definition(1),))


def after(stream: str = "air") -> Plan:
    """The alert was replaced by plan 2."""
    made = plan(air([topic([entry(1000), entry(500, serves=2)])]), [SHARD], 2)
    return replace(made, definitions=(definition(1, stream), definition(2, stream)), retiring={"hot@1": 2})


def versions(run: ShardRun) -> list[tuple[int, int]]:
    return [(value["ts"], value["_"]["plan"]) for _, _, value in sent(run) if "ts" in value]


def active(commit: Commit | None = None) -> ShardRun:
    """It has read three tuples and holds the last, which two more may bracket."""
    run = started(before(), commit)
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 4.0), ("a", 3, 4.5)), 0)
    return run


def test_what_is_held_goes_out_under_the_plan_before() -> None:
    run = active()
    assert versions(run) == [(1, 1), (2, 1)]
    run.obey(after())
    assert versions(run) == [(3, 1)]
    assert (run.version, run.activation, run.held) == (2, 4, 0)


def test_nothing_is_read_before_all_that_was_read_is_safe_and_the_plan_is_committed() -> None:
    run = active()
    run.obey(after())
    assert run.settling and run.commit() is None
    assert len(versions(run)) == 3  # and they are safe
    commit = run.commit()
    assert commit is not None and (commit.version, commit.done, commit.read) == (2, 3, 3)
    run.committed(0)
    assert (run.settling, run.acknowledged) == (False, (2, 4))


@pytest.mark.parametrize(("found", "held"), [(after("surface"), 1), (replace(after(), retiring={}), 1)])
def test_a_plan_that_replaces_no_alert_of_the_stream_holds_nothing_up(found: Plan, held: int) -> None:
    run = active()
    run.obey(found)
    assert not run.settling and run.held == held


def test_what_a_restart_reads_again_counts_under_its_commit_s_plan_and_goes_out_whole() -> None:
    commit = Commit(0, 2, 1, 0, 7, 4)
    run = started(after(), commit)
    assert (run.version, run.rereading, run.settling) == (1, True, False)
    run.take(batch(0, ("a", 1, 5.0), ("a", 2, 4.0), ("a", 3, 4.5)), 0)
    assert versions(run) == [(1, 1), (2, 1), (3, 1)]
    made = run.commit()
    assert made is not None and (made.version, made.done, made.read) == (1, 3, 4)
    run.committed(0)
    run.take(batch(3, ("a", 4, 4.5)), 0)
    assert versions(run) == [(4, 1)]
    run.obey(after())
    assert (run.version, run.activation, run.settling) == (2, 5, True)
    assert run.commit() is not None
    run.committed(0)
    run.take(batch(4, ("a", 5, 5.0), ("a", 6, 4.0), ("a", 7, 4.5)), 0)
    assert versions(run) == [(5, 2), (6, 2)] and run.held == 1


def test_a_source_that_has_lost_what_was_read_holds_no_plan_up() -> None:
    run = started(after(), Commit(0, 2, 1, 0, 7, 3))
    run.idle(0)
    assert not run.rereading
    run = started(after(), Commit(10, 2, 1, 0, 7, 30))
    run.take(batch(0, ("a", 1, 5.0)), 0)  # it was made anew
    assert not run.rereading


def test_a_shard_that_was_never_read_takes_the_plan_up_at_once() -> None:
    run = started(after())
    assert (run.version, run.rereading, run.settling) == (2, False, True)
    assert run.commit() == Commit(0, -1, 2, 0, 0, 0)
