"""Variances and standard deviations of expressions in the reference of `tamis verify`."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from tamis.cli.common.recordings import read_recordings
from tamis.offline.verify import verify
from tamis.query.parse import catalog_of

STREAM = """CREATE STREAM r (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, i INT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"""


@pytest.mark.parametrize(
    "aggregate",
    [
        "var_pop(x + i)",
        "stddev(x * 2)",
        "var_samp(abs(x))",
        "stddev_pop(i + 1)",
        "variance(x) FILTER (WHERE i > 2)",
    ],
)
def test_a_spread_of_an_expression_is_the_same_in_the_reference(aggregate: str, tmp_path: Path) -> None:
    chance, file = random.Random(aggregate), tmp_path / "r.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(("k", "ts", "x", "i"))
        for at in range(300):
            rows.writerow((chance.choice("ab"), at * 1_000_000, chance.gauss(0, 9), chance.randint(0, 5)))
    select = f"SELECT k, window_start, {aggregate} AS v FROM TUMBLE(r, ts, INTERVAL '1' MINUTE)"
    having = f"GROUP BY k, window_start HAVING {aggregate} > 0.1"
    catalog = catalog_of(f"{STREAM} CREATE ALERT q AS {select} {having};")
    recordings = read_recordings(catalog, list(catalog.alerts.values()), {"r": [str(file)]}, None)
    (found,) = verify(catalog, recordings)
    assert found.same and found.reference_alarms == found.alarms == 10
