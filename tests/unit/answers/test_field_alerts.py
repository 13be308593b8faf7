"""Alerts of ten fields: each has the outcome that is written behind it, and none is silently wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.answers.field_alerts import fields, kind, outcome_of

FIELDS = list(fields())
# A refusal names the construct or the condition that never holds, or shows the query rewritten.
NAMED = ("not supported", "; write SELECT", "is never true for values of the declared domains")


@pytest.mark.parametrize(("field", "streams", "alerts"), FIELDS, ids=[one[0] for one in FIELDS])
def test_each_alert_of_a_field_has_its_outcome(
    field: str, streams: str, alerts: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    found = {title: outcome_of(field, streams, sql, tmp_path) for title, sql, _ in alerts}
    assert found == {title: outcome for title, _, outcome in alerts}


def test_there_are_ten_fields_with_ten_alerts_each() -> None:
    assert [len(alerts) for _, _, alerts in FIELDS] == [10] * 10


def test_no_alert_is_silently_wrong_and_each_refusal_names_its_construct() -> None:
    outcomes = [outcome for _, _, alerts in FIELDS for _, _, outcome in alerts]
    accepted = [one for one in outcomes if kind(one) != "refused"]
    assert all(one.endswith("the same as the plain join") for one in accepted)
    refused = [one for one in outcomes if kind(one) == "refused"]
    assert all(any(part in one for part in NAMED) for one in refused), refused
    # Fewer than one alert in five is refused; they wait for absence, ASOF, sessions, lag and quantiles.
    assert len(refused) < 20
