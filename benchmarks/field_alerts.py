"""Records that edges send for the alerts of ten fields: readings, or partial aggregates in place of them.

The alerts are those of `tests/fixtures/sql/fields`, over recordings with three keys. Each alert is alone in
its fleet, so nothing is shared.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.unit.answers.field_alerts import explanation_of, fields, recordings_of

from benchmarks.harness import Cell, Goal, Result, Say
from tamis.errors import InputError
from tamis.operators.windows.partials import partials
from tamis.planning.explanations.measured import measured, partial_topic
from tamis.planning.explanations.transfer import transfer

NAME = "field_alerts"
READINGS = 1_000  # of each key
COLUMNS = ("what", "alerts", "readings that pass", "rows", "records", "rows / readings", "records / readings")
MOST = 0.1


@dataclass(frozen=True)
class Sent:
    """Records that edges send for one alert: `form`, and the readings that pass its filter or are retained.
    `rows` and `records` are those of partial aggregates, or the readings.
    """

    form: str
    readings: int
    rows: int
    records: int
    reason: str = ""


# Forms of partial aggregates, and the reason that EXPLAIN says of joins elsewhere.
SUMS, SEPARATE = "sums and extremes", "each value with its count: median, percentiles, count(DISTINCT)"
JOIN = "a join by time, of which edges omit readings"


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    sent: list[Sent] = []
    for number, (field, streams, alerts) in enumerate(fields()):
        if quick and number:
            break
        say(field)
        accepted = [alert.sql for alert in alerts if alert.kind != "refused"]
        with tempfile.TemporaryDirectory(prefix="tamis-bench-fields-") as directory:
            some = accepted[:12] if quick else accepted
            sent += _sent(field, streams, some, Path(directory), 80 if quick else READINGS)
    partial = [one for one in sent if not one.reason]
    rows = [
        _row(f"partial aggregates: {form}", [one for one in partial if one.form == form])
        for form in (SUMS, SEPARATE)
    ]
    rows.append(_row("partial aggregates", partial))
    reasons = Counter(one.reason for one in sent if one.reason)
    for reason, _ in reasons.most_common():
        rows.append(_row(f"readings: {reason}", [one for one in sent if one.reason == reason]))
    rows.append(_row("all", sent))
    share = sum(one.rows for one in partial) / max(sum(one.readings for one in partial), 1)
    return Result(
        NAME,
        "Records for the alerts of ten fields",
        COLUMNS,
        rows,
        {"readings": READINGS, "quick": quick},
        (
            f"{len(sent)} accepted alerts, each alone in a fleet, over a recording of three keys with"
            f" {80 if quick else READINGS:,} readings each at the declared rate of its stream",
            "readings that pass: those that edges would send one by one",
            "rows and records of partial aggregates by the policy of cuts, also of panes open at the end",
        ),
        (Goal("window aggregates: rows in place of readings", share, "of the readings", most=MOST),),
    )


def _sent(field: str, streams: str, alerts: list[str], directory: Path, readings: int) -> Iterator[Sent]:
    for sql in alerts:
        try:
            catalog, explained = explanation_of(streams, sql)
        except InputError:
            continue
        recordings = recordings_of(field, catalog, explained, directory, readings)
        (alert,) = catalog.alerts.values()
        found = measured(alert, catalog, recordings).values()
        passing = sum(one.tuples - one.dropped for one in found)
        said = transfer(alert, catalog, alert.query.sources[0].stream)
        topic = partial_topic(alert, catalog)
        if topic is None or topic.partials is None:
            why = JOIN if said is None else said.reason or "representatives"
            yield Sent("readings", passing, passing, passing, why)
            continue
        separate = any(one.each for one in partials(topic.partials.grouping.aggregates))
        rows, records = (sum(getattr(one, of) or 0 for one in found) for of in ("rows", "records"))
        yield Sent(SEPARATE if separate else SUMS, passing, rows, records)


def _row(what: str, sent: list[Sent]) -> dict[str, Cell]:
    readings, rows, records = (
        sum(getattr(one, of) for one in sent) for of in ("readings", "rows", "records")
    )
    least = max(readings, 1)
    return dict(
        zip(COLUMNS, (what, len(sent), readings, rows, records, rows / least, records / least), strict=True)
    )
