"""Every query of every dashboard and rule, run by a real Prometheus that scrapes a real fleet."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from tests.e2e.feeder import Feeder, close_alert
from tests.e2e.one_fleet.conftest import OneFleet

from tamis.local.fleet import Fleet
from tamis.local.service_process import free_ports

REPOSITORY = Path(__file__).resolve().parents[3]
PROMETHEUS = shutil.which("prometheus")
JOBS = {
    "registry": "tamis-registry",
    "edge": "tamis-edge",
    "joiner": "tamis-joiner",
    "alerts": "tamis-alerts",
}
SECONDS = 180.0
# What has no series in a healthy fleet of one edge without such trouble, and why.
WITHOUT_DATA = {
    "tamis_dead_letters_total": "no reading was refused",
    "tamis_http_refused_requests_total": "no request was refused",
    'decision="late"': "no reading is late",
    "tamis_edge_ahead_seconds": "no reading is ahead of the clock",
    "tamis_edge_shed_tuples_total": "shedding is off",
    "tamis_edge_refused_records_total": "Kafka refused no record",
    "tamis_edge_lost_readings_total": "no source in Kafka",
    "tamis_query_late_total": "no query in application time",
    "tamis_edge_doubtful_times_total": "all event times are likely",
    "tamis_edge_saved_calls_total": "no alert over one stream calls a Python function",
    "tamis_edge_series": "no alert compares with patterns",
    "tamis_edge_waiting_tuples": "no alert compares with patterns",
    "tamis_edge_read_again": "no alert compares with patterns or counts in windows",
    "tamis_edge_partial": "no alert counts in windows",
    "tamis_edge_open_pane": "no alert counts in windows",
    "tamis_registry_partial_bound": "no alert counts in windows",
    "tamis_query_disordered_cuts_total": "no cut is disordered",
    "tamis_edge_pattern_matches_total": "no alert compares with patterns",
    "tamis_edge_watched_tuples_total": "no alert compares with patterns",
    "tamis_notifications_held": "the log has no silences",
    "tamis_registry_times_begun_anew_total": "no time was ahead of the clock",
    "tamis_registry_leases": "no consumer outside the fleet",
    "tamis_registry_unproven_streams": "all omission is proved",
    "tamis_registry_unproven_queries": "all queries are proved to be bounded",
}


def queries() -> dict[str, str]:
    """Each PromQL expression of the dashboards by where it stands."""
    found = {}
    for file in sorted((REPOSITORY / "deploy" / "grafana" / "json").glob("*.json")):
        for panel in orjson.loads(file.read_bytes())["panels"]:
            for target in panel.get("targets", []):
                text = target["expr"].replace("$__rate_interval", "1m")
                found[f"{file.stem}: {panel['title']}: {target['legendFormat']}"] = re.sub(
                    r'"\$\w+"', '".+"', text
                )
    return found


def alert_parts() -> dict[str, str]:
    """The selectors of each alerting rule: data to compare, whether or not the rule fires."""
    found = {}
    for group in yaml.safe_load((REPOSITORY / "deploy/prometheus/rules/alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            expression = re.sub(r"\{[^}]*\}", "", rule["expr"])
            for metric in dict.fromkeys(
                re.findall(r"(?:\w+:)?(?:tamis|process)_\w+(?::\w+)?|\bup\b", expression)
            ):
                found[f"{rule['alert']}: {metric}"] = metric
    return found


def configure(folder: Path, fleet: Fleet) -> Path:
    """The scrape configuration for this fleet, with the repository's rules at a shorter interval."""
    (folder / "rules").mkdir()
    for file in (REPOSITORY / "deploy" / "prometheus" / "rules").glob("*.yml"):
        shutil.copy(file, folder / "rules")
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [fleet.telemetry[name].removeprefix("http://")]}]}
        for name, job in JOBS.items()
    ]
    text = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": ["rules/*.yml"],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(text))
    return folder / "prometheus.yml"


def result(url: str, query: str) -> list[Any]:
    answer = httpx.get(f"{url}/api/v1/query", params={"query": query}, timeout=10).json()
    assert answer["status"] == "success", (query, answer)
    found: list[Any] = answer["data"]["result"]
    return found


@pytest.mark.skipif(PROMETHEUS is None, reason="needs Prometheus on the PATH")
@pytest.mark.timeout(900)
def test_every_query_of_every_dashboard_and_rule_has_data(tmp_path: Path, one_fleet: OneFleet) -> None:
    fleet = one_fleet.fleet
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert PROMETHEUS is not None
    one_fleet.apply(close_alert("warmer", 5.0))
    (tmp_path / "prometheus").mkdir()
    scraper = subprocess.Popen(
        [
            PROMETHEUS,
            f"--config.file={configure(tmp_path / 'prometheus', fleet)}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address={url.removeprefix('http://')}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    feeder = Feeder(seed=3)
    try:
        feeder.url = one_fleet.url
        asked = queries() | alert_parts()
        deadline = time.monotonic() + SECONDS
        missing = set(asked)
        firing: list[Any] = []
        # A stream stalls until the frontier has moved once: the feeder's readings are from 1970.
        while (missing or firing) and time.monotonic() < deadline:
            feeder.until(feeder.second + 20, pause=0.1)
            try:
                missing = {where for where in missing if not result(url, asked[where])}
                alerts = httpx.get(f"{url}/api/v1/alerts", timeout=10).json()["data"]["alerts"]
            except httpx.TransportError:
                continue  # it isn't up yet
            missing = {where for where in missing if not any(name in asked[where] for name in WITHOUT_DATA)}
            firing = [one["labels"] for one in alerts if one["state"] == "firing"]
        assert not missing, "\n".join(f"{where}: {asked[where]}" for where in sorted(missing))
        assert not firing
    finally:
        feeder.end()
        scraper.terminate()
        scraper.wait(30)
