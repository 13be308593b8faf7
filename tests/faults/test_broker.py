"""Fault 2: the broker is suspended for a minute, and then killed and started again three times."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.faults.loaded_fleet import loaded_fleet

SUSPENDED_SECONDS, AWAY_SECONDS = 60, 10
pytestmark = [pytest.mark.faults, pytest.mark.timeout(2400)]


def test_broker_suspended_and_killed(tmp_path: Path) -> None:
    with loaded_fleet(tmp_path, seed=2) as fed:
        broker = fed.fleet.broker
        fed.begin()
        with fed.load.running(pause=0.3):
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                time.sleep(SUSPENDED_SECONDS)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            reached = fed.load.second
            fed.wait("the joiner after SIGCONT", lambda: fed.passed(reached))
            for _ in range(3):
                broker.kill()
                time.sleep(AWAY_SECONDS)
                broker.start()
                time.sleep(AWAY_SECONDS)
            reached = fed.load.second
            fed.wait("the joiner after SIGKILL", lambda: fed.passed(reached))
        assert fed.load.repeated == 0, "the edge accepts readings all the time"
        fed.said(f"broker suspended for {SUSPENDED_SECONDS} s, killed 3 times", fed.check())
