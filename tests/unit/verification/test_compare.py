"""The comparison of alarms behind `tamis verify`."""

from __future__ import annotations

from pathlib import Path

from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.verification.compare import alarms_of, compare
from tamis.verification.reference import plain_join

SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 1, rate = '1/s');
CREATE STREAM wall (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 1, rate = '1/s');
CREATE ALERT damp AS SELECT a.k, a.t - w.t AS d
FROM TUMBLE(air, ts, INTERVAL '20' SECOND) a JOIN TUMBLE(wall, ts, INTERVAL '20' SECOND) w
  ON a.k = w.k AND a.window_start = w.window_start
WHERE a.t - w.t > 10;
"""


def test_tuples_that_differ_in_time_alone_are_told_apart(tmp_path: Path) -> None:
    """The query doesn't read their time, but which alarm stands for which depends on it."""
    second = 1_000_000
    (tmp_path / "air.csv").write_text(f"k,ts,t\nm,{3 * second},0\nm,{43 * second},30\nm,{44 * second},29\n")
    (tmp_path / "wall.csv").write_text(f"k,ts,t\nm,{1 * second},1\nm,{41 * second},1\n")
    catalog = catalog_of(SQL)
    recordings = {
        name: read_recording(stream, [str(tmp_path / f"{name}.csv")])
        for name, stream in catalog.streams.items()
    }
    query = catalog.alerts["damp"].query
    raised = [
        {"a": {"k": "m", "ts": 43 * second, "t": 30.0}, "w": {"k": "m", "ts": 41 * second, "t": 1.0}},
    ]
    (definition,) = first_plan(catalog, partitions=1).definitions
    verdict = compare(
        "damp",
        query,
        definition=definition,
        recordings=recordings,
        reference=plain_join(query, recordings),
        alarms=alarms_of(query, recordings, raised, [40 * second]),
        retained=4,
    )
    assert (verdict.reference_alarms, verdict.missed, verdict.extra) == (2, 0, 0)
