"""Window alerts over partial aggregates, through crashes, unanswered commits and changes of plans."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from tests.oracle.fleet.cut_runs import CutRuns
from tests.oracle.random_cases import SEED, also_long, cases


@pytest.mark.parametrize("times", also_long(80))
def test_each_reading_is_counted_once_in_each_of_its_windows(times: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + math.ceil(cases(1 / 80)) * times):
        runs = CutRuns(seed)
        assert not runs.play(), f"seed {seed}"
        seen += runs.seen
    assert min(seen[kind] for kind in ("cut", "tuple", "crash", "counted", "old tuple", "part")) > 50, seen
    assert seen["fence"] > 20, seen
