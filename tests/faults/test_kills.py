"""Fault 1: each service is killed ten times while readings come in."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.faults.load import PER_SECOND
from tests.faults.loaded_fleet import MARGIN, LoadedFleet, loaded_fleet
from tests.faults.size import READINGS

KILLS = 10
SERVICES = ("edge", "registry", "joiner", "alerts")
pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]


def test_ten_kills_of_each_service(tmp_path: Path) -> None:
    random_ = random.Random(1)
    with loaded_fleet(tmp_path, seed=1) as fed:
        fed.begin()
        for round_ in range(1, KILLS + 1):
            _one_round(fed, random_, READINGS // PER_SECOND * round_ // KILLS)
        found = fed.check()
        fed.said(f"{KILLS} kills of each of {', '.join(SERVICES)}", found)
        assert found.repeated > 0, "a joiner that was killed writes alarms again"


def _one_round(fed: LoadedFleet, random_: random.Random, second: int) -> None:
    """Kill each service once, in random order and at random times, while readings are posted up to an event
    second. In every other round Spark gets no time to be ready before the next kill.
    """
    with fed.load.running(pause=0.2, last=second):
        for name in random_.sample(SERVICES, len(SERVICES)):
            time.sleep(random_.uniform(0.5, 4))
            fed.kill(name)
        reached = fed.load.second
        if random_.random() < 0.5:
            fed.wait("the joiner goes on", lambda: fed.passed(reached - MARGIN))
    fed.load.until(second)
