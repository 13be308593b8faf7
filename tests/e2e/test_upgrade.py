"""Rolling upgrade: the services of an earlier commit are replaced one by one while readings arrive.

Afterwards they are replaced back in the same order, so that each service meets older and newer ones.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import Feeder, close_alert, hot_alert, swell_alert
from tests.e2e.release_tree import NoCommitError, release_tree

from tamis.messaging.topics import EPISODES

# The commit before the images, Compose and Helm: docs/upgrade.md promises upgrades from it, and back to it.
BASE = "f229998"
# The order of docs/upgrade.md.
ORDER = ("registry", "joiner", "alerts", "edge")


class PatientFeeder(Feeder):
    """A feeder that posts readings again while the edge is away."""

    def post_lines(self, stream: str, lines: list[bytes]) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                super().post_lines(stream, lines)
                return
            except (httpx.TransportError, httpx.HTTPStatusError):
                assert time.monotonic() < deadline
                time.sleep(0.1)


@contextmanager
def feeding(feeder: Feeder) -> Iterator[None]:
    """Readings in the background, some fifteen event seconds a second."""
    stopping = threading.Event()

    def feed() -> None:
        while not stopping.is_set():
            feeder.until(feeder.second + 1, pause=0.06)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(150)
        assert not thread.is_alive()


def replace(fed: FedFleet, name: str, environment: Mapping[str, str]) -> None:
    """Stop a service, and start it with other code."""
    process = fed.fleet.processes[name]
    assert process.stop() == 0, f"{name} did not stop cleanly"
    for variable in ("PYTHONPATH", "TAMIS_JARS"):
        process.environment.pop(variable, None)
    process.environment.update(environment)
    process.start()
    process.wait_ready(200)


@pytest.mark.upgrade
@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_services_are_replaced_one_by_one_and_no_alarm_is_missed(tmp_path: Path) -> None:
    try:
        old = release_tree(BASE)
    except NoCommitError as error:
        pytest.skip(f"there is no commit {BASE} to upgrade from: {error}")
    fed = FedFleet(tmp_path / "fleet", old)
    feeder = PatientFeeder(seed=11)
    alerts = close_alert("warm", 9.0) + swell_alert("swell", 10.0) + hot_alert("hot", 3.0)
    added: dict[str, Mapping[str, int]] = {}
    try:
        feeder.url = fed.start(alerts)
        with feeding(feeder):
            for code, environment in (("new", {}), ("old", old)):
                for name in ORDER:
                    replace(fed, name, environment)
                    if name == "registry":
                        # A plan of this registry reaches services of the other code.
                        fed.apply(close_alert(f"for_{code}", 7.0))
                        added[f"for_{code}"] = fed.running(f"for_{code}")
        end = feeder.second
        feeder.close(end + 4_000)
        until(lambda: fed.passed(end + 3_900), 90)
        alarms = fed.alarms()
        until(lambda: Counter(events(fed))["opened"] == Counter(events(fed))["closed"], 60)
        episodes = [orjson.loads(value) for value in fed.records(EPISODES)]
        assert fed.fleet.ended() is None
    finally:
        feeder.end()
        codes = fed.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    recordings = feeder.recordings(tmp_path)

    for name, sql in (("warm", close_alert("warm", 9.0)), ("swell", swell_alert("swell", 10.0))):
        found = judge(sql, name, recordings, alarms[name], lambda a, _: np.ones(len(a), np.bool_))
        assert found.extra == 0, found
    for name, since in added.items():
        found = judge(
            close_alert(name, 7.0),
            name,
            recordings,
            alarms[name],
            lambda a, s, since=since: (a >= since["air"]) & (s >= since["surface"]),  # type: ignore[misc]
        )
        assert found.extra == 0, found
    wanted = {(row["station"], row["ts"]) for row in feeder.posted["air"] if row["temp"] > 3.0}
    assert {(alarm["row"]["station"], alarm["row"]["ts"]) for alarm in alarms["hot"]} == wanted

    for name, raised in alarms.items():
        several = [same for same, ids in Counter(map(combination, raised)).items() if ids > 1]
        assert not several, f"{name}: {several} have several ids"
    for event in ("opened", "closed"):
        once = Counter(one["episode"] for one in episodes if one["event"] == event)
        assert once and max(once.values()) == 1, f"{event} is notified once for each episode"


def events(fed: FedFleet) -> list[str]:
    """The kinds of all events of episodes so far."""
    return [orjson.loads(value)["event"] for value in fed.records(EPISODES)]


def combination(alarm: Mapping[str, Any]) -> bytes:
    """The tuples and the window of an alarm, which say what it is."""
    return orjson.dumps([alarm["tuples"], alarm.get("window")], option=orjson.OPT_SORT_KEYS)
