"""The Compose file, run for real: a fleet of containers that raises alarms, is healthy, and loses nothing.

`make test-containers` runs it. Where images of others can't be pulled, Debian's programs replace them, tagged
with the names in the file. Grafana is left out, since Debian doesn't have it: quick tests check how it is
provisioned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from tests.containers.compose import PORTS, compose, running, until
from tests.unit.repository.test_compose import REPOSITORY, services

from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.verification.compare import alarms_of, compare
from tamis.verification.reference import plain_join

STATEMENTS = REPOSITORY / "deploy/compose/alerts.sql"
PARTITIONS = 2
# The readings around the steam, and the number after which the loop ends: 75 s of replay.
FIRST, LAST = 2250, 2550
REPLAY = {"REPLAY_LOOPS": "1", "REPLAY_FROM": str(FIRST), "REPLAY_TO": str(LAST), "JOINER_HEAP": "768m"}
# The first test waits for the whole fleet to start.
pytestmark = pytest.mark.timeout(1500)
# Alerts that a healthy fleet may show, with the reason.
EXPECTED_ALERTS: dict[str, str] = {}


@pytest.fixture(scope="module")
def fleet() -> Iterator[None]:
    names = [name for name in services() if name != "grafana"]
    with running("docker-compose.yml", names=names, variables=REPLAY):
        yield


def ask_prometheus(path: str, **fields: str) -> Any:
    url = f"http://127.0.0.1:{PORTS['PROMETHEUS_PORT']}/api/v1/{path}?{urlencode(fields)}"
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]


def query(expression: str) -> list[dict[str, Any]]:
    """The series of an expression, each with labels and value."""
    found: list[dict[str, Any]] = ask_prometheus("query", query=expression)["result"]
    return found


def raised() -> list[dict[str, Any]]:
    """The alarms in Kafka, read by `tamis watch` in the service of that name, each once."""
    script = "timeout 12 tamis watch --from-beginning --json || true"
    lines = compose("exec", "-T", "watch", "sh", "-c", script).splitlines()
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    return list({d["id"]: d for d in documents if "tuples" in d}.values())


def sent() -> tuple[int, int] | None:
    """The event time of the first reading, and the number of all; None while the replay goes on."""
    log = compose("logs", "--no-color", "replay")
    start, count = re.search(r"start (\d+)", log), re.search(r"sent (\d+)", log)
    return (int(start[1]), int(count[1])) if start and count else None


def test_services_are_healthy_and_alarms_arrive(fleet: None) -> None:
    until("alarms", lambda: query("sum(tamis_alarms_total) > 0"))
    assert "alarm" in compose("logs", "--no-color", "watch")
    unhealthy = [line for line in compose("ps").splitlines() if "unhealthy" in line or "Restarting" in line]
    assert unhealthy == []


def test_a_restarted_edge_and_a_killed_joiner_lose_nothing(fleet: None, tmp_path: Path) -> None:
    """Every alarm of the plain join of the readings that were sent is raised."""
    compose("restart", "-t", "15", "edge-a")
    compose("kill", "joiner")
    compose("up", "-d", "--no-build", "joiner")
    start, count = until("the end of the replay", sent)
    catalog = catalog_of(STATEMENTS.read_text())
    recording = tmp_path / "readings.csv"
    assert write_recording(recording, start) == count
    recordings = {"readings": read_recording(catalog.streams["readings"], [str(recording)], as_arrived=True)}
    definitions = {d.alert: d for d in first_plan(catalog, partitions=PARTITIONS).definitions}

    def missed() -> dict[str, tuple[int, int, int]]:
        """The alerts with a missed or an extra alarm."""
        found = {}
        alarms = raised()
        for name, alert in catalog.alerts.items():
            tuples = [alarm["tuples"] for alarm in alarms if alarm["alert"] == name]
            verdict = compare(
                name,
                alert.query,
                definition=definitions[name],
                recordings=recordings,
                reference=plain_join(alert.query, recordings),
                alarms=alarms_of(alert.query, recordings, tuples),
                retained=count,
            )
            assert verdict.reference_alarms > 0
            found[name] = (verdict.missed, verdict.extra, verdict.alarms)
        return found

    def complete() -> bool:
        return all(m == 0 for m, _, _ in missed().values())

    until("every alarm of the plain join", complete)
    assert all(extra == 0 for _, extra, _ in missed().values())


def write_recording(file: Path, start: int) -> int:
    """The readings that the replay sends, with their event times; returns their number."""
    from deploy.compose.replay import timed

    source = REPOSITORY / "demo/data/suthaharan-single-hop.csv"
    rows = [r for _, readings in timed(source, 1, FIRST, LAST, start) for r in readings]
    columns = ("indoor", "mote_id", "ts", "humidity", "temperature")
    lines = [",".join(columns), *(",".join(str(row[column]) for column in columns) for row in rows)]
    file.write_text("\n".join(lines) + "\n")
    return len(rows)


def test_prometheus_reaches_every_target_and_no_alert_fires(fleet: None) -> None:
    def down() -> list[str]:
        targets = ask_prometheus("targets")["activeTargets"]
        return [f"{t['labels']['instance']}: {t['lastError']}" for t in targets if t["health"] != "up"]

    until("all targets up", lambda: not down())
    alerts = ask_prometheus("alerts")["alerts"]
    firing = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
    assert firing <= set(EXPECTED_ALERTS)


def test_episodes_reach_alertmanager(fleet: None) -> None:
    until(
        "delivered notifications",
        lambda: query('sum(tamis_notifications_total{sink="alertmanager",outcome="delivered"}) > 0'),
    )
