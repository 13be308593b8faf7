"""Sums in the reference of `tamis verify` are exact where DuckDB's rounded ones aren't."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.cli.common.recordings import read_recordings
from tamis.offline.verify import verify
from tamis.query.parse import catalog_of

STREAM = "CREATE STREAM r (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, i BIGINT, WATERMARK FOR ts AS ts);"
TIMELESS = "CREATE STREAM r (k VARCHAR KEY, ts BIGINT, x DOUBLE, i BIGINT) WITH (keys = 3);"
WINDOWS = "FROM TUMBLE(r, ts, INTERVAL '1' MINUTE) GROUP BY k, window_end"
START = 1_767_225_600_000_000  # 2026
VALUES = ([1.0, -1e16, 1e16], [1e100, 1e100, -1e100, 0.5], [1e16, 3.0, -1e16, 2e-300], [0.1] * 10)
CALLS = ("sum(x)", "avg(x)", "var_pop(x)", "stddev_samp(x)", "sum(x * 2)", "avg(i)", "var_samp(i)")
SHOWN = ", ".join(f"{one} AS v{i}" for i, one in enumerate(CALLS))
FRAME = "OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
OVER = ", ".join(f"{one} {FRAME} AS v{i}" for i, one in enumerate(CALLS))
QUERIES = {
    "windows": f"SELECT k, window_end, {SHOWN} {WINDOWS}",
    "having": f"SELECT k, window_end, {SHOWN} {WINDOWS} HAVING sum(x) > 0.5 AND avg(x) < 1e300",
    "session": f"SELECT k, window_end, {SHOWN} FROM SESSION(r, ts, INTERVAL '1' MINUTE)"
    " GROUP BY k, window_end",
    "nested": f"SELECT n.k, n.v0 FROM (SELECT k, window_end AS ts, {SHOWN} {WINDOWS}) n WHERE n.v0 > -1",
    "timeless": f"SELECT k, {SHOWN} FROM r GROUP BY k",
    "over": f"SELECT k, ts, v0 FROM (SELECT k, ts, {OVER} FROM r) WHERE v0 > 0.25 AND (v1 < 1 OR v3 > 0)",
}


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("kind", QUERIES)
def test_a_right_sum_is_neither_missed_nor_extra(kind: str, values: list[float], tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    rows = [f"a,{START + at * 1_000_000},{value!r},{2**62 - at}" for at, value in enumerate(values)]
    file.write_text("\n".join(["k,ts,x,i", *rows, ""]))
    stream = TIMELESS if kind == "timeless" else STREAM
    catalog = catalog_of(f"{stream} CREATE ALERT q WITH (allow_unbounded = true) AS {QUERIES[kind]};")
    recordings = read_recordings(catalog, list(catalog.alerts.values()), {"r": [str(file)]}, None)
    (found,) = verify(catalog, recordings)
    assert found.same, found
    assert found.alarms or kind == "having"
