"""The model of the protocol of cuts keeps its promises with every rule, and breaks them without one."""

from __future__ import annotations

import pytest
from tests.model.cuts.joiner import Joiner
from tests.model.cuts.rules import RULES
from tests.model.cuts.schedule import play
from tests.model.cuts.search import series
from tests.model.cuts.terms import INF, Plan, Query, Reading, Record, Shard

# The kind of violation and the seed of a schedule in which it happens without the rule.
BROKEN_IN = {
    "commit_first": ("LOST", 1_000_009),
    "one_pending": ("LOST", 1_000_035),
    "done_back": ("LOST", 1_000_011),
    "skip_sent": ("DOUBLE", 1_000_156),
    "same_cut": ("LOST", 1_000_009),
    "replay_first": ("DOUBLE", 1_000_035),
    "floor_W": ("DOUBLE", 1_000_156),
    "number": ("LOST", 1_000_096),
    "fixed_parts": ("DOUBLE", 1_000_046),
    "part_order": ("LOST", 1_000_008),
    "progress_cut": ("LOST", 1_000_011),
    "progress_behind": ("MISS", 1_000_008),
    "spool_first": ("LOST", 1_000_015),
    "spool_uncommitted": ("LOST", 1_000_596),
    "fenced": ("LOST", 1_000_012),
    "full_at_change": ("DOUBLE", 1_000_022),
    "version_of_cut": ("EXTRA", 1_000_022),
    "takeover_plan": ("EXTRA", 1_000_169),
    "drop_taken": ("DOUBLE", 1_000_004),
    "one_checkpoint": ("DOUBLE", 1_000_004),
    "park": ("LOST", 1_000_014),
    "own_done": ("DOUBLE", 1_000_022),
    "change_waits": ("LOST", 1_000_106),
    "begins_caught_up": ("DOUBLE", 1_000_050),
    "full_before_raw": ("LOST", 1_000_026),
    "gap_builds": ("LOST", 1_000_009),
    "anew_c": ("LOST", 1_000_265),
    "anew_cut": ("LOST", 1_000_027),
    "begin_settled": ("LOST", 2_001_819),
    "unknown_ends": ("LOST", 2_000_512),
    "raw_fence": ("DOUBLE", 2_002_380),
    "anew_place": ("DOUBLE", 2_000_361),
    "cut_after_replay": ("DOUBLE", 2_001_815),
    "final_versioned": ("MISS", 2_000_034),
}


def test_no_rule_is_broken_by_any_schedule() -> None:
    found = series(300, 1)
    assert not found.violated
    assert found.seen["went back"] == 0
    often = "crashes", "moves", "topics changed", "deleted readings", "sources made anew", "windows due"
    assert min(found.seen[name] for name in often) > 50


@pytest.mark.parametrize("rule", BROKEN_IN)
def test_without_a_rule_a_promise_is_broken(rule: str) -> None:
    kind, seed = BROKEN_IN[rule]
    assert rule in RULES
    assert not play(seed)[0]
    assert kind in {violation.kind for violation in play(seed, [rule])[0]}


@pytest.mark.parametrize(("off", "taken"), [((), 0), (("fence_at_arrival",), 1)])
def test_a_raw_tuple_behind_a_fence_is_dropped_though_the_fence_waits_for_its_plan(
    off: tuple[str, ...], taken: int
) -> None:
    shard = Shard("s0k", movable=True)
    query = Query("q", topic=0, version=1, slide=4, width=1, offset=0)
    joiner = Joiner(frozenset(off), partition=0)
    joiner.obey(Plan(1, {query: INF}, 0, {shard: 1}, frozenset()))
    joiner.arrive(Record("fence", shard, 0, version=2, form=2, epoch=0, fence=1))
    reading = Reading(shard, 0, 0, 0, time=1, group=0, passes=(True,))
    joiner.arrive(Record("raw", shard, 0, version=1, form=1, epoch=0, place=(0, 0), reading=reading))
    assert joiner.takes.total() == taken
