"""The schedules see: a core with a rule broken breaks a promise, and the core as it is does not."""

from __future__ import annotations

import pytest
from tests.model.mutations import broken
from tests.model.schedule import play, quiet


# The seed is of the first schedule that catches it.
@pytest.mark.parametrize(
    ("rule", "seed", "kind"),
    [
        ("activation_at_once", 3, "MISS"),
        ("back_at_restart", 23, "LISTED"),
        ("counted_from_before", 25, "EXTRA"),
        ("counted_on", 3, "OLD"),
        ("changed_with_open_panes", 40, "EXTRA"),
        ("open_panes_done", 373, "MISS"),
        ("domains_forgotten", 80, "EXTRA"),
        ("doubles_counted", 117, "DOUBLED"),
        ("ended_at_acknowledgement", 15, "MISS"),
        ("ends_on_a_full_disk", 136, "ERROR"),
        ("fetched_again", 1459, "STUCK"),
        ("first_at_once", 96, "MISS"),
        ("future_taken", 1, "ANEW"),
        ("gone_stand_still", 376, "STUCK"),
        ("high_forgotten", 3, "MISS"),
        ("listed_by_any_record", 45, "MISS"),
        ("marks_before_tuples", 5, "MISS"),
        ("marks_before_tuples", 85, "MISS"),  # of rows of windows
        ("never_anew", 7, "STUCK"),
        ("no_final", 8, "MISS"),
        ("nothing_parked", 10, "MISS"),
        ("older_cut", 15, "EXTRA"),
        ("progress_ahead", 32, "MISS"),
        ("read_before_commit", 581, "DOUBLED"),
        ("replaced_at_once", 3, "MISS"),
        ("seeks_while_fetching", 51, "STUCK"),
        ("stale_version", 2, "PLAN"),
        ("taken_though_the_disk_is_full", 785, "MISS"),
        ("waiting_forgotten", 60, "MISS"),
        ("watermark_kept", 7, "STUCK"),
    ],
)
def test_a_broken_rule_is_caught(rule: str, seed: int, kind: str) -> None:
    quiet()
    found, _ = play(seed)
    assert not found
    with broken(rule):
        found, _ = play(seed)
    assert kind in {what for what, _ in found}
