"""The real cores of edge, registry and joiner under the protocol model's random schedules.

docs/decisions/0003-cores-under-the-model.md says which parts are real and which the model abstracts.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest
from tests.model.schedule import play, quiet
from tests.oracle.random_cases import SEED, cases

# 200 schedules in all unless TAMIS_CASES says otherwise; `make soundness` has 50 times as many. Of the 27
# broken rules in tests/model/test_mutations.py, 23 are caught by one of the first 140 schedules from seed 1,
# and 24 by one of the first 400. The schedules that catch them are played there in every run, with the rule
# and without it.
BLOCKS = 2
SCHEDULES = math.ceil(cases(1 / 120) / BLOCKS)


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize(
    "times",
    [
        # In `make test` it gets what the tests with a broker leave of two cores.
        pytest.param(1, marks=pytest.mark.timeout(1800)),
        pytest.param(50, marks=[pytest.mark.soundness, pytest.mark.timeout(0)]),
    ],
)
def test_no_schedule_misses_or_invents_an_alarm(block: int, times: int) -> None:
    quiet()
    seen: Counter[str] = Counter()
    first = SEED * 1_000_000 + block * SCHEDULES * times
    for seed in range(first, first + SCHEDULES * times):
        broken, happened = play(seed)
        assert not broken, f"replay with: python -m tests.model.schedule --trace --seed {seed}\n" + "\n".join(
            f"{kind} {what}" for kind, what in broken[:5]
        )
        seen += happened
    if SCHEDULES >= 100:  # what never happens proves nothing
        often = "promised", "alarms", "edge crashes", "joiner crashes", "first shards later"
        assert min(seen[what] for what in often) > SCHEDULES // 4
        assert (
            min(seen[what] for what in ("moves", "replaced", "cut off", "registry crashes")) > SCHEDULES // 8
        )
