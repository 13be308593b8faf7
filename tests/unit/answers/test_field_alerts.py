"""Alerts of ten fields: each has the outcome that is written behind it, and none is silently wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.answers.field_alerts import FIELDS, JUDGEMENTS, FieldAlert, fields, outcome_of, readme

ALL = list(fields())
ALERTS = [alert for _, _, alerts in ALL for alert in alerts]


@pytest.mark.parametrize(("field", "streams", "alerts"), ALL, ids=[one[0] for one in ALL])
def test_each_alert_of_a_field_has_its_outcome(
    field: str, streams: str, alerts: list[FieldAlert], tmp_path: Path
) -> None:
    found = {alert.title: outcome_of(field, streams, alert.sql, tmp_path) for alert in alerts}
    assert found == {alert.title: alert.outcome for alert in alerts}


def test_the_page_has_the_counts_of_all_fields() -> None:
    assert (FIELDS / "README.md").read_text(encoding="utf-8") == readme()


def test_no_alert_is_silently_wrong() -> None:
    accepted = [alert.outcome for alert in ALERTS if alert.kind != "refused"]
    assert all(outcome.endswith("the same as the plain join") for outcome in accepted)


def test_each_refusal_is_judged_and_each_mistake_is_answered() -> None:
    assert all(alert.judged in ("", *JUDGEMENTS) for alert in ALERTS)
    unjudged = [alert.title for alert in ALERTS if alert.kind == "refused" and not alert.judged]
    assert not unjudged
    assert not [alert.title for alert in ALERTS if alert.judged == "mistake" and alert.kind == "accepted"]


def test_fewer_than_one_alert_in_twenty_needs_help() -> None:
    needing = [alert.title for alert in ALERTS if alert.judged == "needs help"]
    assert len(needing) * 20 < len(ALERTS), needing
