"""Each rule of the protocol that is broken in the real cores is caught by a schedule: the check sees.

The seeds are of the first schedule that catches the mutation. Where the schedules' draws change, seek new
ones: `play` every seed from 1 on under `broken(name)` until it reports something.
"""

from __future__ import annotations

import pytest
from tests.model.mutations import broken
from tests.model.schedule import play, quiet


@pytest.mark.parametrize(
    ("mutation", "seed", "kind"),
    [
        ("activation_at_once", 1, "MISS"),
        ("high_forgotten", 3, "MISS"),
        ("nothing_parked", 3, "MISS"),
        ("marks_before_tuples", 1, "MISS"),
        ("listed_by_any_record", 6, "STUCK"),
        ("replaced_at_once", 13, "MISS"),
        ("ended_at_acknowledgement", 20, "MISS"),
        ("stale_version", 3, "PLAN"),
    ],
)
def test_a_broken_rule_is_caught(mutation: str, seed: int, kind: str) -> None:
    quiet()
    with broken(mutation):
        found, _ = play(seed)
    assert kind in {what for what, _ in found}
    whole, _ = play(seed)
    assert not whole, "with the rule the same schedule keeps every promise"
