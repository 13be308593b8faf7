"""Representatives at edges: the alerts that have them, how they are shared, and what EXPLAIN says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM s (k INT KEY, x INT NOT NULL, y INT NOT NULL) WITH (keys = 5);
CREATE STREAM t (k INT KEY, x INT NOT NULL, y INT NOT NULL) WITH (keys = 5);
CREATE STREAM e (k INT KEY, x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE FUNCTION hot(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'hot';
"""
SUM = "SELECT DISTINCT s.k FROM s, t WHERE s.k = t.k AND s.x + t.x > 150"


def planned(*alerts: str) -> Plan:
    named = (f"CREATE ALERT q{at} {alert};" for at, alert in enumerate(alerts))
    return first_plan(catalog_of(STREAMS, *named))


def most(plan: Plan, stream: str) -> list[int | None]:
    """The most tuples of the representation of each entry; None without one."""
    found = [
        e.representation for one in plan.streams if one.name == stream for t in one.topics for e in t.entries
    ]
    return [None if one is None else one.most for one in found]


@pytest.mark.parametrize(
    ("alert", "entries"),
    [
        (f"AS {SUM}", [5]),
        ("AS SELECT DISTINCT k FROM s WHERE x > 50", [5]),
        ("AS SELECT DISTINCT s.k FROM s, t WHERE s.k = t.k AND abs(s.x - t.x) > 5", [10]),
        ("AS SELECT DISTINCT s.k FROM s, t WHERE s.k = t.k AND s.x != t.x AND s.y != t.y", [20]),
        # Both occurrences of the stream.
        ("AS SELECT DISTINCT a.k FROM s a, s b WHERE a.k = b.k AND a.x + b.y > 150", [10]),
        (
            "AS SELECT DISTINCT s.k FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND s.x + t.x > 9)",
            [5],
        ),
        # Each reading counts.
        (f"WITH (edge = 'raw') AS {SUM}", [None]),
        ("AS SELECT DISTINCT k FROM s WHERE hot(x) > 50", [None]),
        ("AS SELECT k, count(*) AS n FROM s GROUP BY k", [None]),
        ("WITH (allow_unbounded = true) AS SELECT DISTINCT x FROM s", [None]),
        ("AS SELECT k FROM s WHERE x < 2 UNION SELECT k FROM s WHERE x > 9", [None]),
    ],
)
def test_queries_of_which_few_readings_are_enough(alert: str, entries: list[int | None]) -> None:
    assert most(planned(alert), "s") == entries


def test_alerts_share_what_is_the_same_and_a_wider_one_that_needs_all_serves_them() -> None:
    other = SUM.replace("150", "170")
    assert most(planned(f"AS {SUM}", f"AS {other}"), "s") == [5]
    least = SUM.replace("s.x + t.x > 150", "s.x + t.x < 150")
    assert most(planned(f"AS {SUM}", f"AS {least}"), "s") == [5, 5]
    every = "AS SELECT k, count(*) AS n FROM s GROUP BY k"
    assert most(planned(f"AS {SUM}", every), "s") == [None]
    some = "AS SELECT k, count(*) AS n FROM s WHERE x > 3 GROUP BY k"
    assert most(planned(f"AS {SUM}", some), "s") == [5, None]


def test_edges_apply_conditions_without_columns() -> None:
    windows = "FROM TUMBLE(e, ts, INTERVAL '1' SECOND) WHERE 1 > 2 GROUP BY window_end"
    plan = planned(f"AS SELECT window_end, count(*) AS n {windows}")
    (topic,) = (topic for stream in plan.streams for topic in stream.topics)
    assert [entry.filter is None for entry in topic.entries] == [False]


def test_explain_says_what_is_kept_and_sent() -> None:
    catalog = catalog_of(STREAMS, f"CREATE ALERT q AS {SUM};")
    found = explain(catalog, "q")
    shown = re.sub(r"\s+", " ", text(found))
    what = "sent to Kafka: readings that change what an edge keeps of their shard, the greatest x for each k"
    assert shown.count(what) == 2
    assert "of n readings in random order it sends about 5 * (ln(n / 5) + 0.6)" in shown
    assert [one.document()["sent"]["form"] for one in found.streams] == ["representatives"] * 2


def test_a_recording_shows_what_edges_would_drop(tmp_path: Path) -> None:
    sql, readings = tmp_path / "q.sql", tmp_path / "s.csv"
    sql.write_text(
        f"{STREAMS} CREATE ALERT q AS SELECT DISTINCT s.k FROM s, t WHERE s.k = t.k AND s.x + t.x > 9;"
    )
    rows = [(1, 3), (1, 2), (2, 1), (1, 4), (1, 4), (2, 0), (2, 1)]
    readings.write_text("k,x,y\n" + "".join(f"{k},{x},0\n" for k, x in rows))
    result = CliRunner().invoke(main, ["explain", str(sql), "--input", f"s={readings}"])
    # The first of each key, and the 4.
    assert "dropped at the edge: 4 of the 7 tuples of the recording" in result.output, result.output
