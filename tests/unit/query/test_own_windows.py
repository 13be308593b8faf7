"""Rows of aggregates can be grouped by the end of their own windows, as in plain SQL."""

from __future__ import annotations

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from tests.operators import run_query

from tamis.errors import InputError
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording

STREAM = "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x INT, WATERMARK FOR ts AS ts);"
INNER = "SELECT k, window_end{}, sum(x) AS total FROM {} GROUP BY k, window_start, window_end"
# Windows with the seconds of their step, size and offset; for CUMULATE the size counts from multiples of it.
WINDOWS = (
    ("TUMBLE(s, ts, INTERVAL '20' SECOND)", 20, 20, 0, False),
    ("TUMBLE(s, ts, INTERVAL '20' SECOND, INTERVAL '-7' SECOND)", 20, 20, 13, False),
    ("HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '40' SECOND)", 10, 40, 0, False),
    ("HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '40' SECOND, INTERVAL '3' SECOND)", 10, 40, 3, False),
    ("CUMULATE(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)", 10, 60, 0, True),
)


@pytest.mark.parametrize("name", ["window_end", "ended"])
@pytest.mark.parametrize("case", WINDOWS)
def test_rows_are_grouped_by_their_own_window_end(
    case: tuple[str, int, int, int, bool], name: str, tmp_path: Path
) -> None:
    window, step, size, offset, grows = case
    random_ = random.Random(3)
    readings = sorted(
        (random_.randrange(300), random_.choice("abc"), random_.randrange(100)) for _ in range(150)
    )
    inner = INNER.format(f" AS {name}", window)
    query = f"SELECT {name}, max(total) AS most, count(*) AS n FROM ({inner}) GROUP BY {name}"
    catalog = catalog_of(f"{STREAM}CREATE ALERT q AS {query};")
    file = tmp_path / "s.csv"
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows(
            [
                ["k", "ts", "x"],
                *([k, (start + timedelta(seconds=at)).isoformat(), x] for at, k, x in readings),
            ]
        )
    recording = read_recording(catalog.streams["s"], [str(file)])
    rows = run_query(catalog.alerts["q"].query, catalog, {"s": recording}).rows
    found = list(zip(*(column.to_list() for column in rows.columns.values()), strict=True))
    first = int(start.timestamp()) * 1_000_000
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE s (sec INT, k VARCHAR, x INT)")
        connection.executemany("INSERT INTO s VALUES (?, ?, ?)", readings)
        begins = f"e - CASE WHEN (e - {offset}) % {size} = 0 THEN {size} ELSE (e - {offset}) % {size} END"
        begins = begins if grows else f"e - {size}"
        wanted = connection.execute(
            "SELECT e, max(total), count(*) FROM (SELECT k, e, sum(x) AS total FROM s,"
            f" (SELECT {offset} + unnest(range(0, 1000, {step})) AS e) WHERE sec >= {begins} AND sec < e"
            " GROUP BY k, e) GROUP BY e ORDER BY e"
        ).fetchall()
    assert found == [(first + end * 1_000_000, most, n) for end, most, n in wanted]
    assert len(found) > 10


@pytest.mark.parametrize(
    "query",
    [
        # The start of a hopping window isn't that of the windows of its rows.
        f"SELECT max(total) FROM ({INNER.format(', window_start', WINDOWS[2][0])}) GROUP BY window_start",
        f"SELECT k, max(total) FROM ({INNER.format('', WINDOWS[0][0])}) GROUP BY k",
    ],
)
def test_other_groups_need_windows(query: str) -> None:
    with pytest.raises(InputError, match="group by the window_end of its rows"):
        catalog_of(f"{STREAM}CREATE ALERT q AS {query};")
