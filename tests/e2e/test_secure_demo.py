"""The demo on a secure Kafka, with exactly the rights that the services need, and with rights taken away."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.e2e.test_demo import SLOW, assert_same

from tamis.local.demo import Progress, run, total
from tamis.local.fleet import Fleet
from tamis.local.fleet_logins import grant, revoke
from tamis.messaging.rights import RIGHTS, Right
from tamis.messaging.topics import ALARMS, EPISODES, STATEMENTS, STREAM_PREFIX

# Readings through the edges at which a right is taken away until the service says so; the joiner is first as
# in `test_demo`.
TAKEN = {
    1_000: ("joiner", "joiner", "Read", STREAM_PREFIX),
    4_000: ("joiner", "joiner", "Write", ALARMS),
    7_000: ("alerts", "alerts", "Write", EPISODES),
    9_000: ("indoors", "edge", "Write", STREAM_PREFIX),
    12_000: ("registry", "registry", "Read", STATEMENTS),
}
SAYS_SO_SECONDS = 40


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_the_demo_misses_nothing_on_a_secure_kafka_and_stops_cleanly(tmp_path: Path) -> None:
    left = dict(TAKEN)
    fleets: list[Fleet] = []
    most = 0

    def watch(fleet: Fleet, progress: Progress) -> None:
        nonlocal most
        fleets[:] = [fleet]
        most = max(most, progress.tuples)
        for at, (service, *right) in list(left.items()):
            if most >= at:
                del left[at]
                take_away(fleet, service, _right(*right))
                break

    outcome = run(tmp_path, lambda _: None, watch, threading.Event(), speed=SLOW, secure=True)
    assert not left, "every right was taken away"
    assert_same(outcome)
    assert outcome.tuples == total()
    assert 0 < outcome.published < total() / 2, "omission must keep most readings off Kafka"
    for alert, live in outcome.live_peak.items():
        assert 0 < live <= outcome.bounds[alert]
    codes = {name: process.exit_code() for name, process in fleets[0].processes.items()}
    assert codes == dict.fromkeys(codes, 0), "SIGTERM ends every service with exit code 0 within its time"
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    for password in (tmp_path / "logins" / "passwords").iterdir():
        assert password.read_text() not in logs


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
