"""Dashboards: the JSON that is kept is the code's, and each query reads metrics that exist."""

from __future__ import annotations

import re

import pytest
from deploy.grafana.dashboards.__main__ import DASHBOARDS, FOLDER, text

from tamis.telemetry.metric_catalogue import CATALOGUE


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_kept_json_is_made_by_the_code(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == text(name), "run python -m deploy.grafana.dashboards"


def test_every_metric_is_on_a_dashboard_or_has_a_reason_not_to_be() -> None:
    shown = set(re.findall(r"\btamis_\w+", " ".join(text(name) for name in DASHBOARDS)))
    shown = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    without = {metric.name for metric in CATALOGUE} - shown
    assert without == WITHOUT_A_PANEL.keys()


WITHOUT_A_PANEL = {
    "tamis_build_info": "the version, for a look at /metrics",
    "tamis_edge_watermark_seconds": "its lag is shown",
    "tamis_joiner_frontier_seconds": "its lag is shown; a rule reads it",
    "tamis_edge_spool_records": "its bytes are shown",
    "tamis_alarms_total": "shown by a recording rule",
    "tamis_alerts_partitions": "for a look at /metrics",
    "tamis_registry_history_start_seconds": "a time that seldom changes; `tamis get alerts` shows it",
}
