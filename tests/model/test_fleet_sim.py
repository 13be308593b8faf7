"""The protocol's model keeps its promises with every rule, and breaks them without one."""

from __future__ import annotations

import pytest
from tests.model import fleet_sim


def test_no_rule_is_broken_by_any_schedule() -> None:
    runs, violated, kinds, first, seen = fleet_sim.series(300, 1, (), ())
    assert (runs, violated) == (300, 0), (kinds, first)
    assert min(seen[name] for name in ("promised", "edge crashes", "joiner crashes", "moves", "listed")) > 100


# Rare ones need thousands of schedules (`--table`): the seeds are of the first that is broken.
@pytest.mark.parametrize(
    ("rule", "seed", "kind"),
    [
        ("park", 1_000_006, "MISS"),
        ("progress_behind", 1_000_176, "MISS"),
        ("greatest_version", 1_000_009, "MISS"),
        ("final_versioned", 1_000_038, "STUCK"),
        ("finals_taken", 9_001_890, "MISS"),
    ],
)
def test_without_a_rule_a_promise_is_broken(rule: str, seed: int, kind: str) -> None:
    assert not fleet_sim.Sim(seed).run()
    assert kind in {what for what, *_ in fleet_sim.Sim(seed, [rule]).run()}
