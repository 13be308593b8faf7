"""The model of the protocol of cuts under thousands of random schedules; tests/model/cuts has the rules."""

from __future__ import annotations

import math

import pytest
from tests.model.cuts.search import series
from tests.oracle.random_cases import SEED, also_long, cases


@pytest.mark.parametrize("times", also_long(40))
def test_no_schedule_breaks_a_promise_of_cuts(times: int) -> None:
    found = series(math.ceil(cases(1 / 16)) * times, SEED + 100 * times)
    replay = "replay with: python -m tests.model.cuts --trace SEED"
    assert not found.violated, (replay, dict(list(found.violated.items())[:3]))
    assert found.seen["went back"] == 0
