"""Explanations of what edges send to Kafka: partial aggregates with their bound, or readings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text as shown
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, n INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ({options});
CREATE STREAM wind (k VARCHAR KEY, ts TIMESTAMP, y DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
CREATE STREAM doors (k VARCHAR KEY, open BOOLEAN);
CREATE FUNCTION hot(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'hot';
"""
DECLARED = "keys = 100, rate = '10/s'"
MINUTE = "FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)"
EACH = "GROUP BY window_end, k"


def explained(select: str, options: str = DECLARED, alert: str = "") -> Any:
    catalog = catalog_of(STREAMS.format(options=options), f"CREATE ALERT q {alert} AS {select}")
    return explain(catalog, "q")


def text(select: str, options: str = DECLARED, alert: str = "") -> str:
    return re.sub(r"\s+", " ", shown(explained(select, options, alert)))


def test_partial_aggregates_are_described_with_their_numbers() -> None:
    found = text(
        "SELECT window_end, k, avg(x) AS mean, median(x + 1) AS middle, arg_max(n, ts) AS latest"
        f" FROM HOP(air, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE) {EACH}"
    )
    assert (
        "sent to Kafka: partial aggregates, for each k and pane of 10 s a row with the count of readings,"
        " count and sum of x, n at the greatest ts, each value of x + 1 with its count"
    ) in found
    # 6 boundaries, and 15 s of open panes in 10 minutes; 2 + 7 cuts; 7 ended and 2 open panes.
    assert "a shard sends about 24.4 records with 615 rows a minute, at most" in found
    assert "with 900 rows (4 partitions), in place of up to 60,000 readings" in found
    assert "for 300 open rows" in found


def test_all_readings_together_go_to_one_partition() -> None:
    (source,) = explained(f"SELECT window_end, count(*) AS n {MINUTE} GROUP BY window_end").streams
    sent = source.document()["sent"]
    assert sent["form"] == "partial aggregates"
    assert sent["most_a_minute"] == {"records": 4, "rows": 4}
    assert sent["expected_a_minute"] == {"records": 1.1, "rows": 1.1}
    assert (sent["cuts_a_minute"], sent["readings_a_minute"], sent["open_rows"]) == (4, 60_000, 2)
    assert sent["text"][0].endswith("for each pane of 60 s a row with the count of readings")


@pytest.mark.parametrize(
    ("keys", "rate", "raw"),
    [(100, "1/20s", False), (100, "1/60s", False), (10, "1/60s", True), (10, "1/20s", False)],
)
def test_readings_are_sent_where_they_take_fewer_bytes(keys: int, rate: str, raw: bool) -> None:
    found = text(f"SELECT window_end, k, max(x) AS most {MINUTE} {EACH}", f"keys = {keys}, rate = '{rate}'")
    assert ("sent to Kafka: readings one by one, since they take fewer bytes: about" in found) is raw


@pytest.mark.parametrize(
    ("options", "known", "why"),
    [
        ("keys = 100", True, ""),
        ("keys = 100, rate = '1/60s'", True, ""),
        ("rate = '1/60s'", False, "stream air doesn't declare keys"),
        ("max_stall = '10 minutes'", False, "stream air declares neither keys nor rate"),
    ],
)
def test_what_is_not_declared_is_named(options: str, known: bool, why: str) -> None:
    select = f"SELECT window_end, k, max(x) AS most {MINUTE} {EACH}"
    found = text(select, options)
    assert ("memory at the edge" in found) is known
    assert (f"nothing limits the rows: {why}" in found) is not known
    (source,) = explained(select, options).streams
    assert (source.document()["sent"]["most_a_minute"] is None) is not known


def test_there_are_never_more_rows_than_readings() -> None:
    (source,) = explained(
        f"SELECT window_end, k, max(x) AS most FROM TUMBLE(air, ts, INTERVAL '1' SECOND) {EACH}",
        "keys = 10000, rate = '1/60s'",
    ).streams
    sent = source.document()["sent"]
    # Of the groups of 60 panes; and of the readings of 1 + 60 + 2 * 5 + 2 s, in which each key has two.
    assert sent["expected_a_minute"]["rows"] == 10_000
    assert sent["most_a_minute"]["rows"] == 20_000


@pytest.mark.parametrize(
    ("select", "alert", "why"),
    [
        (f"SELECT window_end, k, max(x) AS most {MINUTE} {EACH}", "WITH (edge = 'raw')", "edge = 'raw'"),
        (f"SELECT window_end, k, max(x) AS most {MINUTE} {EACH}", "WITH (from = 'earliest')", "before"),
        (f"SELECT window_end, k, count(*) AS n {MINUTE} WHERE hot(x) > 1 {EACH}", "", "functions of Python"),
        ("SELECT a.k FROM air a ASOF JOIN wind w ON a.k = w.k AND w.ts <= a.ts", "", "can be the latest"),
        ("SELECT open, count(*) AS n FROM doors GROUP BY open", "", "may give a row at once"),
        (
            "SELECT k, max(x) AS most FROM SESSION(air PARTITION BY k, ts, INTERVAL '1' MINUTE)"
            " GROUP BY window_start, window_end, k",
            "",
            "a session in parts",
        ),
    ],
)
def test_readings_that_go_one_by_one_have_a_reason(select: str, alert: str, why: str) -> None:
    found = explained(select, alert=alert)
    assert found.accepted, found.reason
    for source in found.streams:
        assert source.transfer is not None
        (line,) = source.transfer.lines()
        assert line.startswith("sent to Kafka: readings one by one, since ")
        assert why in line


def test_a_recording_measures_records_and_rows(tmp_path: Path) -> None:
    file = tmp_path / "air.csv"
    # Two keys, each with a reading in each second of two minutes.
    lines = (f"k{second % 2},{second // 2 * 1_000_000},{second % 50},1" for second in range(240))
    file.write_text("\n".join(("k,ts,x,n", *lines)))
    sql = tmp_path / "alerts.sql"
    select = f"SELECT window_end, k, max(x) AS most {MINUTE}"
    for where, told in (
        ("", "sent for the 240 tuples of the recording: 4 rows (1.67 %) in"),
        (
            "WHERE x < 10",
            "sent for 50 that pass the filter, of the 240 tuples of the recording: 4 rows (8 %) in",
        ),
    ):
        streams = STREAMS.format(options=DECLARED)
        sql.write_text(f"{streams}CREATE ALERT q AS {select} {where} {EACH};")
        result = CliRunner().invoke(main, ["explain", str(sql), "--input", f"air={file}"])
        assert result.exit_code == 0, result.output
        assert told in re.sub(r"\s+", " ", result.output)


def test_the_omission_of_a_join_by_time_says_what_is_sent() -> None:
    near = "a.ts - w.ts BETWEEN INTERVAL '-5' SECOND AND INTERVAL '5' SECOND"
    found = explained(f"SELECT a.k FROM air a JOIN wind w ON a.k = w.k AND {near} WHERE a.x > w.y")
    assert [source.transfer for source in found.streams] == [None, None]


def test_alerts_of_a_file_that_share_a_topic_are_explained_together(tmp_path: Path) -> None:
    sql = tmp_path / "alerts.sql"
    rows = (
        "SELECT window_end, k, {} AS y FROM TUMBLE(air, ts, INTERVAL '{}' SECOND) {} GROUP BY window_end, k"
    )
    alerts = (
        ("ten", rows.format("avg(x)", 10, "")),
        ("fifteen", rows.format("max(n)", 15, "")),
        ("filtered", rows.format("max(n)", 15, "WHERE x > 1")),
    )
    made = "".join(f"CREATE ALERT {name} AS {select};" for name, select in alerts)
    sql.write_text(STREAMS.format(options=DECLARED) + made)
    result = CliRunner().invoke(main, ["explain", str(sql), "--json"])
    assert result.exit_code == 0, result.output
    ten, fifteen, filtered = (one["streams"][0]["sent"] for one in json.loads(result.output)["queries"])
    assert (ten["others"], fifteen["others"]) == (["fifteen"], ["ten"])
    assert "multiples of 10 s and 15 s" in ten["text"][0]
    assert ten["text"][1].startswith("in a topic shared with alert fifteen: a pane ends")
    # The boundaries of both in 60 + 5 + 2 s, and the panes that may be open.
    assert ten["most_a_minute"]["rows"] == fifteen["most_a_minute"]["rows"] == (7 + 5 + 1 + 2) * 100
    # Another filter is another topic; outside a fleet nobody knows its name.
    assert "others" not in filtered
    assert filtered["most_a_minute"]["rows"] == (5 + 1 + 1) * 100
    assert all("topic" not in one for one in (ten, fifteen, filtered))
