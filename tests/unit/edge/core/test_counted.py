"""Streams of a standing query that counts: positions rise, plans are committed first, nothing is shed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.unit.edge.core.test_shard_run import SHARD, batch, durable, sent
from tests.unit.edge.plans import TEMP, air, compare, entry, plan, topic

from tamis.plan.model import Plan, StreamPlan
from tamis_edge.core.commit import Commit
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder

NOW = 1_700_000_000_000_000


def counted(version: int = 1, *, timeless: bool = False) -> Plan:
    """A plan whose topic has an entry that omits, and one that a standing query reads."""
    every = entry(0, filter=compare(">", TEMP, 0))
    both = topic([every] if timeless else [entry(1_000), every], counted=True)
    stream: StreamPlan = air([both], delay=5)
    return plan(replace(stream, time=None) if timeless else stream, [SHARD], version)


def started(found: Plan, commit: Commit | None = None, shedder: Shedder | None = None) -> ShardRun:
    run = ShardRun(SHARD, "air", commit or Commit(), found, shedder, now=NOW)
    durable(run)
    sent(run)
    return run


def places(run: ShardRun) -> list[tuple[int, bool]]:
    """Of what passes the filter of what counts: whatever else omission publishes has its own order."""
    return [
        (value["_"]["place"] - NOW, "late" in value["_"])
        for _, _, value in sent(run)
        if value.get("temp", 0) > 0
    ]


def test_late_tuples_go_out_in_their_place() -> None:
    run = started(counted())
    run.take(batch(0, ("a", 10, 1.0), ("a", 2, 2.0), ("a", 11, 3.0), ("a", 12, -1.0), ("a", 1, 4.0)), 0)
    assert places(run) == [(0, False), (1, True), (2, False), (4, True)]


def test_places_begin_where_the_shard_was_born_and_go_on_from_its_commit() -> None:
    run = started(counted(timeless=True))
    run.take(batch(0, ("a", 10, 1.0), ("a", 2, 2.0)), 0)
    assert places(run) == [(0, False), (1, False)]
    commit = durable(run)
    assert (commit.done, commit.born, commit.high) == (2, NOW, NOW + 1)
    told = [value["_"] for _, _, value in sent(run)]
    assert {mark["place"] for mark in told} == {NOW + 2}
    assert all("event_time" not in mark for mark in told)
    again = ShardRun(SHARD, "air", commit, counted(timeless=True), now=NOW + 10**9)
    again.take(batch(2, ("a", 10, 1.0)), 0)
    assert places(again) == [(2, False)]


def test_a_source_that_was_made_anew_is_no_double() -> None:
    run = started(counted(timeless=True))
    run.take(batch(7, ("a", 10, 1.0)), 0)
    run.take(batch(0, ("a", 10, 1.0)), NOW + 99)
    assert places(run) == [(7, False), (99, False)]


def test_nothing_is_read_before_the_plan_is_committed() -> None:
    run = ShardRun(SHARD, "air", Commit(), counted(timeless=True), now=NOW)
    told = [run.settling]
    durable(run)
    told.append(run.settling)
    run.obey(counted(2, timeless=True))
    run.commit()
    told.append(run.settling)
    run.committed(0)
    told.append(run.settling)
    assert told == [True, False, True, False]
    assert not ShardRun(SHARD, "air", Commit(), plan(air([topic([entry(1_000)])]), [SHARD])).settling


def test_nothing_that_is_counted_is_shed() -> None:
    shedder = Shedder(np.random.default_rng(1))
    shedder.share = 1.0
    run = started(counted(), shedder=shedder)
    run.take(batch(0, ("a", 10, 1.0), ("a", 11, 2.0)), 0)
    assert places(run) == [(0, False), (1, False)]
    assert run.take_counts().shed == 0
