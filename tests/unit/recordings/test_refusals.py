"""Rows that an edge would refuse: each with its value, its place and the true reason."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording

STREAM = """
CREATE STREAM s (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE NOT NULL CHECK (y > 0 AND y <> 7),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
"""
GOOD = "1,2024-01-01T00:00:00Z,1,1"


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ("1,2024-01-01T00:00:00Z,1e150,1", "x", "1e150 is larger than 1e+100, the greatest size of a DOUBLE"),
        ("1,2024-01-01T00:00:00Z,-1e101,1", "x", "-1e101 is larger than 1e+100"),
        ("1,2024-01-01T00:00:00Z,1,1e120", "y", "1e120 is larger than 1e+100"),
        ("1,1600-01-01T00:00:00Z,1,1", "ts", "1600-01-01T00:00:00Z is outside of the times"),
        ("1,2300-01-01T00:00:00Z,1,1", "ts", "1684-07-28 to 2255-06-05"),
        ("1,2024-01-01T00:00:00Z,1,-2", "y", "-2 is outside of CHECK (y > 0"),
        ("1,2024-01-01T00:00:00Z,1,7", "y", "7 is outside of CHECK (y > 0"),
        ("1,2024-01-01T00:00:00Z,1,", "y", "NULL in a NOT NULL column"),
        ("1,,1,1", "ts", "NULL in the event time"),
        ("1,2024-01-01T00:00:00Z,nan,1", "x", "nan is not a finite number"),
        (
            "3000000000,2024-01-01T00:00:00Z,1,1",
            "k",
            "3000000000 is outside of INT, -2147483648 to 2147483647",
        ),
    ],
)
def test_the_reason_is_the_true_one(tmp_path: Path, row: str, column: str, reason: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"k,ts,x,y\n{GOOD}\n{row}\n{GOOD}\n{row}\n")
    found = read_recording(catalog_of(STREAM).streams["s"], [str(path)])
    assert (len(found), found.refused) == (2, 2)
    (refusal,) = found.refusals
    assert refusal.rows == 2
    assert refusal.where == f"{path}, column {column}, row 2"
    assert reason in refusal.reason


def test_values_of_json_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "s.ndjson"
    lines = ['{"k": 1, "ts": 1, "x": 1e200, "y": 2}', '{"k": 1, "ts": 1e17, "x": 1, "y": 2}']
    path.write_text("\n".join(lines) + "\n")
    found = read_recording(catalog_of(STREAM).streams["s"], [str(path)])
    assert len(found) == 0
    time, x = found.refusals
    assert time.where == f"{path}, line 2, field ts" and "1e+17 is outside of the times" in time.reason
    assert x.where == f"{path}, line 1, field x" and "1e+200 is larger than 1e+100" in x.reason


def test_a_row_counts_for_one_reason(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("k,ts,x,y\n1,,1e150,-1\n1,2024-01-01T00:00:00Z,1e150,-1\n")
    found = read_recording(catalog_of(STREAM).streams["s"], [str(path)])
    assert [one.rows for one in found.refusals] == [1, 1]
    assert found.refused == 2


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("number", ["NaN", "inf", "-Infinity"])
def test_numbers_that_are_not_finite_are_refused_alone_in_every_type_and_format(
    tmp_path: Path, form: str, number: str
) -> None:
    """As at an edge. In a column that the stream doesn't have they are ignored."""
    good = {"k": "1", "ts": "2", "x": "1", "y": "2", "ok": "true", "other": "1"}
    rows = [good, *(good | {name: number} for name in ("k", "ts", "x", "y", "other")), good]
    path = tmp_path / f"s.{form}"
    if form == "csv":
        lines = [",".join(good), *(",".join(row.values()) for row in rows)]
    else:
        lines = ["{" + ", ".join(f'"{name}": {text}' for name, text in row.items()) + "}" for row in rows]
    path.write_text("\n".join(lines))
    if form == "parquet":
        columns = {name: [float(row[name]) for row in rows] for name in good if name != "ok"}
        pyarrow.parquet.write_table(pa.table(columns | {"ok": [True] * len(rows)}), path)
    found = read_recording(catalog_of(STREAM).streams["s"], [str(path)])
    assert (len(found), found.refused) == (3, 4)
    assert [one.reason.split(" is ")[1] for one in found.refusals] == ["not a finite number"] * 4
    assert [one.rows for one in found.refusals] == [1] * 4


@pytest.mark.parametrize("text", ["1e999", "-1E+400", "9" * 400, " nan", "+inf"])
def test_numbers_that_no_double_reaches_are_refused_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(
        f"k,ts,x,y\n{GOOD}\n1,2024-01-01T00:00:00Z,{text},1\n{text},2024-01-01T00:00:00Z,1,1\n{GOOD}\n"
    )
    found = read_recording(catalog_of(STREAM).streams["s"], [str(path)])
    assert (len(found), [one.rows for one in found.refusals]) == (2, [1, 1])
    assert {one.reason.split(" is ")[1] for one in found.refusals} == {"not a finite number"}
