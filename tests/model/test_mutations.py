"""The schedules see: a core with a rule broken breaks a promise, and the core as it is does not."""

from __future__ import annotations

import pytest
from tests.model.mutations import broken
from tests.model.schedule import play, quiet


# The seed is of the first schedule that catches it.
@pytest.mark.parametrize(
    ("rule", "seed", "kind"),
    [
        ("activation_at_once", 2, "MISS"),
        ("counted_from_before", 9, "EXTRA"),
        ("doubles_counted", 77, "DOUBLED"),
        ("ended_at_acknowledgement", 20, "MISS"),
        ("gone_forgotten", 1_000_066, "MISS"),
        ("gone_stand_still", 376, "STUCK"),
        ("high_forgotten", 3, "MISS"),
        ("listed_by_any_record", 30, "MISS"),
        ("marks_before_tuples", 3, "MISS"),
        ("no_final", 324, "MISS"),
        ("nothing_parked", 3, "MISS"),
        ("progress_ahead", 318, "MISS"),
        ("read_before_commit", 1001, "DOUBLED"),
        ("replaced_at_once", 20, "MISS"),
        ("spooled_goes_ahead", 3261, "LOST"),
        ("stale_version", 3, "PLAN"),
    ],
)
def test_a_broken_rule_is_caught(rule: str, seed: int, kind: str) -> None:
    quiet()
    found, _ = play(seed)
    assert not found
    with broken(rule):
        found, _ = play(seed)
    assert kind in {what for what, _ in found}
