"""The protocol's model keeps its promises with every rule, and breaks them without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.model import fleet_sim
from tests.model.cuts.rules import RULES as RULES_OF_CUTS
from tests.model.representatives.mutations import RULES as RULES_OF_REPRESENTATIVES


def test_no_rule_is_broken_by_any_schedule() -> None:
    runs, violated, kinds, first, seen = fleet_sim.series(300, 1, (), ())
    assert (runs, violated) == (300, 0), (kinds, first)
    assert min(seen[name] for name in ("promised", "edge crashes", "joiner crashes", "moves", "listed")) > 100


# Rare ones need thousands of schedules (`--table`): the seeds are of the first that is broken.
@pytest.mark.parametrize(
    ("rule", "seed", "kind"),
    [
        ("park", 1_000_003, "MISS"),
        ("progress_behind", 1_000_176, "MISS"),
        ("greatest_version", 1_000_012, "MISS"),
        ("final_versioned", 1_000_038, "STUCK"),
        ("first_waits", 1_000_532, "MISS"),
        ("least_version", 1_000_006, "OLD"),
        ("publish_held", 1_000_218, "MISS"),
        ("settled_first", 1_000_018, "MISS"),
        ("replay_version", 1_002_916, "MISS"),
        ("all_told", 1_000_475, "MISS"),
        ("none_waits", 1_000_012, "MISS"),
        ("finals_taken", 1_005_108, "MISS"),
        ("max_ahead", 1_000_052, "MISS"),
        ("fetch_kept", 1_000_007, "STUCK"),
        ("refused_stays", 1_000_184, "MISS"),
        ("reserve", 1_000_037, "STUCK"),
    ],
)
def test_without_a_rule_a_promise_is_broken(rule: str, seed: int, kind: str) -> None:
    assert not fleet_sim.Sim(seed).run()
    assert kind in {what for what, *_ in fleet_sim.Sim(seed, [rule]).run()}


def test_the_page_of_the_protocol_names_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    # Rules of cuts are those of docs/cuts.md, which the page only mentions.
    others = RULES_OF_CUTS.keys() | RULES_OF_REPRESENTATIVES.keys()
    named = set(re.findall(r"`([a-z_]+)`", page)) - (others - fleet_sim.RULES.keys())
    # The streams of the model are never altered, and its shards may come back at any time: the cores have
    # these rules, and `mutations` breaks them.
    assert named == set(fleet_sim.RULES) | {"former_columns", "former_domains", "back_with_reading"}
