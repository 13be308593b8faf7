"""Rules for Prometheus: their metrics exist, and each alert has a test and a section in the runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tamis.telemetry.metric_catalogue import CATALOGUE

REPOSITORY = Path(__file__).resolve().parents[3]
PROMETHEUS = REPOSITORY / "deploy" / "prometheus"
# What Prometheus adds to a scrape, and what its client adds to each process.
OTHERS = {"up", "process_start_time_seconds"}
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def _rules(kind: str) -> list[dict[str, Any]]:
    found = []
    for file in sorted((PROMETHEUS / "rules").glob("*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            found += [rule for rule in group["rules"] if kind in rule]
    return found


def _exported() -> set[str]:
    return {metric.name + suffix for metric in CATALOGUE for suffix in SUFFIXES[metric.kind]}


@pytest.mark.parametrize(
    "rule", [*_rules("alert"), *_rules("record")], ids=lambda rule: rule.get("alert", rule.get("record"))
)
def test_every_metric_of_a_rule_exists(rule: dict[str, Any]) -> None:
    known = _exported() | OTHERS | {recorded["record"] for recorded in _rules("record")}
    expression = re.sub(r'"[^"]*"', '""', rule["expr"])
    names = set(re.findall(r"\b(?:\w+:)?(?:tamis|process)_\w+(?::\w+)?|\bup\b", expression))
    assert names and names <= known, names - known


def test_every_alert_has_a_section_in_the_runbook_and_a_severity() -> None:
    headings = re.findall(r"^### (\w+)$", (REPOSITORY / "docs" / "runbook.md").read_text(), re.M)
    alerts = [rule["alert"] for rule in _rules("alert")]
    assert headings == alerts, "the runbook has the alerts in the order of the rules"
    for rule in _rules("alert"):
        assert rule["labels"]["severity"] in {"page", "ticket", "info"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    fired: set[str] = set()
    for file in (PROMETHEUS / "tests").glob("*.yml"):
        for case in yaml.safe_load(file.read_text())["tests"]:
            fired |= {one["alertname"] for one in case["alert_rule_test"] if one.get("exp_alerts")}
    assert {rule["alert"] for rule in _rules("alert")} == fired


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool on the PATH")
def test_the_rules_fire_and_do_not_fire_as_their_tests_say() -> None:
    files = sorted(str(file) for file in (PROMETHEUS / "tests").glob("*.yml"))
    found = subprocess.run(["promtool", "test", "rules", *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
