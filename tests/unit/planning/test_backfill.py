"""Plans of alerts WITH (from = …): streams of their own, and nothing in the plans of other alerts."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from tamis.cli.query.run import command as run
from tamis.cli.query.verify import command as verify
from tamis.declarations.backfill import Backfill
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

STREAMS = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP NOT NULL, v DOUBLE CHECK (v BETWEEN 0 AND 100), "
    "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"
    for name in ("a", "b")
)
JOIN = """SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k
  AND a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '3' SECOND WHERE a.v - b.v > 90;"""
COUNT = (
    "SELECT k, window_start, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '10' SECOND) GROUP BY k, window_start;"
)
START = 1_700_000_000_000_000
BEGIN = START + 100_500_000  # 2023-11-14T22:15:00.5Z


def test_topics_are_shared_with_no_live_alert() -> None:
    live = f"CREATE ALERT x AS {JOIN} CREATE ALERT y AS {COUNT}"
    plan = first_plan(catalog_of(STREAMS, live))
    both = first_plan(
        catalog_of(
            STREAMS,
            live,
            f"CREATE ALERT old WITH (from = 'earliest') AS {JOIN}",
            f"CREATE ALERT since WITH (from = '2023-11-14T22:15:00.5Z') AS {COUNT}",
        )
    )
    assert both.streams[: len(plan.streams)] == plan.streams
    added = {stream.name: stream for stream in both.streams[len(plan.streams) :]}
    names = [Backfill("a", 1).name, Backfill("a", 1, BEGIN).name, Backfill("b", 1).name]
    assert list(added) == names
    assert [stream.origin for stream in added.values()] == ["a", "a", "b"]
    assert [stream.begin for stream in added.values()] == [None, BEGIN, None]
    of = {query.alert: [source.stream for source in query.inputs] for query in both.queries}
    assert of == {"x": ["a", "b"], "y": ["a"], "old": [names[0], names[2]], "since": [names[1]]}
    for query in both.queries:
        for source in query.inputs:
            stream = both.stream(source.stream)
            assert stream is not None and source.topic in {topic.name for topic in stream.topics}
    assert decode_plan(encode_plan(both)) == both
    # Older services read plans without such alerts.
    assert b'"origin"' not in encode_plan(plan) and b'"origin"' in encode_plan(both)


def test_explain_says_what_it_costs() -> None:
    catalog = catalog_of(STREAMS, f"CREATE ALERT q WITH (from = '2023-11-14T22:15:00Z') AS {JOIN}")
    explained = explain(catalog, "q")
    assert "sources of a and b once more" in explained.history
    assert "before 2023-11-14T22:15:00+00:00 are left out" in explained.history
    assert "history" in explained.document()
    assert not explain(catalog_of(STREAMS, f"CREATE ALERT q AS {JOIN}"), "q").history


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Recordings of both streams, and alerts over them from a time."""
    rng = random.Random(2)
    for name in ("a", "b"):
        rows = [f"{rng.randint(0, 2)},{START + at * 500_000},{rng.randint(0, 100)}" for at in range(600)]
        (tmp_path / f"{name}.csv").write_text("\n".join(("k,ts,v", *rows)))
    option = "WITH (from = '2023-11-14T22:15:00.5Z')"
    (tmp_path / "alerts.sql").write_text(
        f"{STREAMS} CREATE ALERT q {option} AS {JOIN} CREATE ALERT n {option} AS {COUNT}"
    )
    return tmp_path


def test_recordings_without_earlier_readings(files: Path) -> None:
    given = ["--input", f"a={files}/a.csv", "--input", f"b={files}/b.csv"]
    found = CliRunner().invoke(verify, [f"{files}/alerts.sql", *given])
    assert found.exit_code == 0, found.output
    rows = CliRunner().invoke(run, [f"{files}/alerts.sql", "--query", "n", *given[:2]]).stdout.splitlines()
    with duckdb.connect() as base:
        wanted = base.execute(
            f"SELECT k, ts // 10000000 * 10000000, count(*) FROM '{files}/a.csv' WHERE ts >= {BEGIN} "
            "GROUP BY ALL"
        ).fetchall()
    assert sorted(rows[1:]) == sorted(",".join(map(str, row)) for row in wanted)
    assert len(wanted) > 50
