"""The comparison of alarms behind `tamis verify`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.verification.compare import Alarms, alarms_of, compare
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


WITHIN = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, t DOUBLE, WATERMARK FOR ts AS ts);
CREATE ALERT hot WITH (within = '10 seconds') AS SELECT k, ts, t FROM air WHERE t > 20;
"""


@pytest.mark.parametrize(
    ("raised", "missed"),
    [
        ([0, 10, 20, 30], 0),  # a span of 10 s without an alarm would be shorter
        ([0, 10, 20], 10),  # the span from 21 to 31 has none
        ([0, 9, 20, 30], 10),  # so has that from 9.5 to 19.5
        ([10, 20, 30], 10),
        ([0, 15, 30], 28),
        ([15], 30),
        ([], 31),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_each_span_needs_an_alarm(raised: list[int], missed: int, late: bool, tmp_path: Path) -> None:
    """Without the option there is an alarm each second from 0 to 30."""
    start = 1_767_225_600
    lines = [f"m,{(start + at) * 1_000_000},30" for at in range(31)]
    if late:
        lines.insert(0, f"other,{(start + 100) * 1_000_000},0")
    (tmp_path / "air.csv").write_text("\n".join(["k,ts,t", *lines, ""]))
    catalog = catalog_of(WITHIN)
    recordings = {"air": read_recording(catalog.streams["air"], [str(tmp_path / "air.csv")], as_arrived=True)}
    query = catalog.alerts["hot"].query
    (definition,) = first_plan(catalog, partitions=1).definitions
    verdict = compare(
        "hot",
        query,
        definition=definition,
        recordings=recordings,
        reference=plain_join(query, recordings),
        alarms=Alarms({query.sources[0].alias: np.array([at + late for at in raised], np.int64)}),
        retained=31,
    )
    assert (verdict.reference_alarms, verdict.missed, verdict.extra) == (31, missed, 0), verdict
