"""Fault 2: the broker is suspended for a minute and killed three times, or stops while services start."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.faults.loaded_fleet import loaded_fleet

SUSPENDED_SECONDS, AWAY_SECONDS = 60, 10
TURNS = 24
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


def test_broker_comes_and_goes_while_services_start(tmp_path: Path) -> None:
    """A service that starts asks Kafka more than one that runs."""
    with loaded_fleet(tmp_path, seed=15) as fed:
        broker = fed.fleet.broker
        fed.begin()
        with fed.load.running(pause=0.3):
            for turn in range(TURNS):
                fed.kill(("edge", "alerts", "registry")[turn % 3])
                time.sleep(turn % 4)
                broker.stop()
                time.sleep(2)
                broker.start()
                time.sleep(2)
                fed.revive()
            reached = fed.load.second
            fed.wait("the joiner", lambda: fed.passed(reached))
        fed.said(f"broker stopped {TURNS} times, each time beside a start of a service", fed.check())
