"""The model of the protocol of cuts keeps its promises with every rule, and breaks them without one."""

from __future__ import annotations

import pytest
from tests.model.cuts.rules import RULES
from tests.model.cuts.schedule import play
from tests.model.cuts.search import series

# The kind of violation and the seed of a schedule in which it happens without the rule.
BROKEN_IN = {
    "commit_first": ("TAKEN", 1_000_031),
    "one_pending": ("LOST", 1_000_006),
    "done_back": ("LOST", 1_000_006),
    "skip_sent": ("TAKEN", 1_000_074),
    "same_cut": ("LOST", 1_000_041),
    "replay_first": ("LOST", 1_000_006),
    "cut_after_replay": ("TAKEN", 1_000_156),
    "floor_W": ("TAKEN", 1_000_074),
    "number": ("LOST", 1_000_032),
    "fixed_parts": ("TAKEN", 1_000_107),
    "part_order": ("LOST", 1_000_006),
    "progress_cut": ("LOST", 1_000_008),
    "progress_behind": ("MISS", 1_000_004),
    "spool_first": ("LOST", 1_000_015),
    "spool_uncommitted": ("LOST", 1_000_626),
    "fenced": ("DOUBLE", 1_000_187),
    "unknown_ends": ("LOST", 1_000_300),
    "full_at_change": ("LOST", 1_000_008),
    "version_of_cut": ("EXTRA", 1_000_008),
    "drop_taken": ("DOUBLE", 1_000_007),
    "one_checkpoint": ("DOUBLE", 1_000_029),
    "park": ("LOST", 1_000_034),
    "final_versioned": ("MISS", 1_000_033),
    "own_done": ("DOUBLE", 1_000_022),
    "change_waits": ("STUCK", 1_000_074),
    "begins_caught_up": ("DOUBLE", 1_000_023),
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
