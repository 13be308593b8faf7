"""The alerts of the demo through the whole fleet: killed processes do not change the alarms.

`test_secure_demo` runs it to its end without kills.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tamis.local.demo import Outcome, Progress, check, run
from tamis.local.fleet import Fleet

# Slow enough that all services can be killed and come back before the recordings end (56 s of them).
SLOW = 450.0
# Readings through the edges at which each service is killed: spread over the recordings. The joiner is first,
# since it must be back before they end: it publishes the frontiers of a batch with alarms in a later batch,
# and there is no later one if one batch reads all the rest.
KILLS = {"joiner": 2_500, "indoors": 5_000, "registry": 7_500, "alerts": 10_000, "outdoors": 13_000}


def assert_same(outcome: Outcome) -> None:
    verdicts = check(outcome)
    assert {v.query for v in verdicts} == {"condensation", "heat_stress", "runaway"}
    for verdict in verdicts:
        assert (verdict.missed, verdict.extra) == (0, 0), verdict
        assert verdict.reference_alarms > 100, "the recordings must have something to raise"
        assert 0 < verdict.alarms <= verdict.reference_alarms
        assert outcome.episodes[verdict.query] >= 1


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_every_service_may_be_killed_in_mid_stream(tmp_path: Path) -> None:
    left = dict(KILLS)
    most = 0

    def watch(fleet: Fleet, progress: Progress) -> None:
        nonlocal most
        most = max(most, progress.tuples)  # counters of a restarted edge begin anew
        for name, at in list(left.items()):
            if most >= at:
                del left[name]
                fleet.processes[name].kill()
                fleet.processes[name].start()
                break

    outcome = run(tmp_path, lambda _: None, watch, threading.Event(), speed=SLOW)
    assert not left, "every kill happened"
    assert_same(outcome)
