"""The demo on a secure Kafka, with exactly the rights that the services need: its alarms stay the same.

Each service loses a right in mid stream, and services are killed.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest

from tamis.local.demo import Outcome, Progress, check, run
from tamis.local.demo_check import STREAM
from tamis.local.fleet import Fleet
from tamis.local.fleet_logins import grant, revoke
from tamis.messaging.rights import RIGHTS, Right
from tamis.messaging.topics import ALARMS, EPISODES, STATEMENTS, STREAM_PREFIX

# Slow enough that all services can come back before the recordings end (56 s of them).
SLOW = 450.0
# Readings through the edges at which a right is taken away until the service says so, and the service that is
# killed after that. They are spread over the recordings. The joiner is first, since it must be back before
# they end: it publishes the frontiers of a batch with alarms in a later batch, and there is no later one if
# one batch reads all the rest. The counters of an edge that isn't killed go on.
FAULTS = {
    1_000: ("joiner", ("joiner", "Read", STREAM_PREFIX), None),
    4_000: ("joiner", ("joiner", "Write", ALARMS), "joiner"),
    7_000: ("alerts", ("alerts", "Write", EPISODES), "alerts"),
    9_000: ("indoors", ("edge", "Write", STREAM_PREFIX), "outdoors"),
    12_000: ("registry", ("registry", "Read", STATEMENTS), "registry"),
}
SAYS_SO_SECONDS = 40


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_every_service_may_lose_a_right_and_be_killed_in_mid_stream(tmp_path: Path) -> None:
    left = dict(FAULTS)
    fleets: list[Fleet] = []
    most = 0

    def watch(fleet: Fleet, progress: Progress) -> None:
        nonlocal most
        fleets[:] = [fleet]
        most = max(most, progress.tuples)  # counters of a restarted edge begin anew
        for at, (service, right, killed) in list(left.items()):
            if most >= at:
                del left[at]
                take_away(fleet, service, _right(*right))
                if killed is not None:
                    fleet.processes[killed].kill()
                    fleet.processes[killed].start()
                break

    outcome = run(tmp_path, lambda _: None, watch, threading.Event(), speed=SLOW, secure=True)
    assert not left, "every right was taken away, and every kill happened"
    assert_same(outcome)
    (indoors,) = (place for place in outcome.plain_joins.places if place.name == "indoors")
    counts = outcome.decisions[STREAM, "indoors"]
    assert sum(counts.values()) == indoors.tuples
    assert 0 < counts["published"] < indoors.tuples / 2, "omission must keep most readings off Kafka"
    for alert, live in outcome.live_peak.items():
        assert 0 < live <= outcome.bounds[alert]
    codes = {name: process.exit_code() for name, process in fleets[0].processes.items()}
    assert codes == dict.fromkeys(codes, 0), "SIGTERM ends every service with exit code 0 within its time"
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    for password in (tmp_path / "logins" / "passwords").iterdir():
        assert password.read_text() not in logs


def assert_same(outcome: Outcome) -> None:
    """The alarms are those of the plain join."""
    verdicts = check(outcome)
    assert {v.query for v in verdicts} == {"condensation", "heat_stress", "runaway"}
    for verdict in verdicts:
        assert (verdict.missed, verdict.extra) == (0, 0), verdict
        assert verdict.reference_alarms > 100, "the recordings must have something to raise"
        assert 0 < verdict.alarms <= verdict.reference_alarms
        assert outcome.episodes[verdict.query] >= 1


def take_away(fleet: Fleet, service: str, right: Right) -> None:
    """Take a right away until the service's readiness says so; a service that has ended is started again."""
    name = f"not authorized: User:{right.principal}: "
    wanted = f"no {right.operation} on {right.resource} {right.name}"
    revoke(fleet.broker, [right])
    process, deadline, said = fleet.processes[service], time.monotonic() + SAYS_SO_SECONDS, ""
    while not (name in said and wanted in said):
        assert time.monotonic() < deadline, f"{service} doesn't say {wanted!r}, but {said!r}"
        if process.exit_code() is not None:
            process.start()
        try:
            said = httpx.get(f"{fleet.telemetry[service]}/readyz", timeout=2).text
        except httpx.TransportError:
            said = ""
        time.sleep(0.2)
    grant(fleet.broker, [right])
    assert wanted in Path(process.log_path).read_text(), "the log says so, too"
    if process.exit_code() is not None:
        process.start()


def _right(principal: str, operation: str, name: str) -> Right:
    (found,) = (r for r in RIGHTS if (r.principal, r.operation, r.name) == (principal, operation, name))
    return found
