"""Files to typed columns: formats, times, refused rows and errors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.query.parse import catalog_of
from tamis.recordings.files import read_rows, write_table
from tamis.recordings.typed import Recording, read_recording

SQL = """CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10), n INT, b BIGINT,
ok BOOLEAN, w VARCHAR NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"""
HEADER = "k,ts,x,n,b,ok,w"


def stream() -> StreamDef:
    catalog = catalog_of(SQL)
    return catalog.streams["s"]


def read(folder: Path, *lines: str, name: str = "s.csv") -> Recording:
    path = folder / name
    path.write_text("\n".join((HEADER, *lines) if name.endswith(".csv") else lines) + "\n")
    return read_recording(stream(), [str(path)])


def values(recording: Recording, name: str) -> list[Any]:
    return recording.columns[name].to_list()


def test_csv_cells_have_the_declared_types(tmp_path: Path) -> None:
    found = read(tmp_path, "007,1000000,1.5,5,5.0,true,x", ",2000000,,,,,y")
    assert [values(found, c) for c in ("k", "ts", "x", "n", "b", "ok", "w")] == [
        ["007", None],
        [1_000_000, 2_000_000],
        [1.5, None],
        [5, None],
        [5, None],
        [True, None],
        ["x", "y"],
    ]
    assert found.given["ts"].to_pylist() == [1_000_000, 2_000_000]


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T02:00:01.25+02:00", 1_250_000),
        ("1969-12-31T23:59:59.999999", -1),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00.0000019Z", 1),
        ("2200-01-01T00:00:00Z", 7_258_118_400_000_000),
    ],
)
def test_iso_times(tmp_path: Path, text: str, micros: int) -> None:
    found = read(tmp_path, f"a,{text},1,1,1,true,x")
    assert values(found, "ts") == [micros]
    assert found.given["ts"].to_pylist() == [text]


def test_ways_of_writing_times_may_change_within_a_file(tmp_path: Path) -> None:
    times = ["1970-01-01T00:00:01Z", "1970-01-01 00:00:02", "3000000", "1970-01-01T00:00:04.123456789+00:00"]
    found = read(tmp_path, *(f"a,{time},1,1,1,true,x" for time in times))
    assert values(found, "ts") == [1_000_000, 2_000_000, 3_000_000, 4_123_456]


def test_what_an_edge_would_refuse_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "good,1,1,1,1,true,x",
        "domain,1,11,1,1,true,x",
        "nan,1,nan,1,1,true,x",
        "infinite,1,inf,1,1,true,x",
        "null,1,1,1,1,true,",
        "no time,,1,1,1,true,x",
        "int,1,1,3000000000,1,true,x",
        "time,9007199254740992,1,1,1,true,x",
        "good,2,,,,,x",
    )
    assert values(found, "k") == ["good", "good"]
    assert (found.refused, len(found), found.given["ts"].to_pylist()) == (7, 2, [1, 2])


@pytest.mark.parametrize(
    ("line", "column", "shown"),
    [
        ("a,1,warm,1,1,true,x", "x", "'warm' is not of type DOUBLE"),
        ("a,1,1,1.5,1,true,x", "n", "'1.5' is not of type INT"),
        ("a,1,1,1,x,true,x", "b", "'x' is not of type BIGINT"),
        ("a,1,1,1,1,maybe,x", "ok", "'maybe' is not of type BOOLEAN"),
        ("a,yesterday,1,1,1,true,x", "ts", "'yesterday' is not a time"),
        ("a,1.5,1,1,1,true,x", "ts", "'1.5' is not a time"),
    ],
)
def test_a_wrong_type_is_named_with_row_and_column(
    tmp_path: Path, line: str, column: str, shown: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, "a,1,1,1,1,true,x", line, "a,2,1,1,1,true,x")
    assert caught.value.where == f"{tmp_path}/s.csv, column {column}, row 2"
    assert caught.value.what == shown


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ('"x": "1"', "x"),
        ('"n": 1.5', "n"),
        ('"k": 5', "k"),
        ('"ok": 1', "ok"),
        ('"ts": true', "ts"),
        ('"ts": 1.5', "ts"),
        ('"ts": "1"', "ts"),
        ('"ts": [1]', "ts"),
    ],
)
def test_json_types_are_not_converted(tmp_path: Path, field: str, column: str) -> None:
    good = {"k": '"a"', "ts": "1", "x": "1", "n": "1", "b": "1", "ok": "true", "w": '"x"'}
    fields = ", ".join(field if name == column else f'"{name}": {value}' for name, value in good.items())
    with pytest.raises(InputError, match=f"line 2, field {column}: "):
        read(tmp_path, "", f"{{{fields}}}", name="s.ndjson")


def test_json_of_several_types_in_one_field(tmp_path: Path) -> None:
    rest = '"k": "a", "ts": 1, "n": 1, "b": 1, "ok": null, "w": "x"'
    with pytest.raises(InputError, match="line 3, field x: '1' is not of type DOUBLE"):
        read(tmp_path, f'{{{rest}, "x": 1}}', "", f'{{{rest}, "x": "1"}}', name="s.ndjson")


def test_times_of_json_may_be_text_and_numbers_in_one_file(tmp_path: Path) -> None:
    rest = '"k": "a", "x": 1, "n": 1, "b": 1, "ok": null, "w": "x"'
    times = (
        '"1970-01-01T00:00:01Z"',
        "2000000",
        "3e6",
        '"1970-01-01 02:00:04+02:00"',
        '"0000-01-01"',
        "1e300",
    )
    found = read(tmp_path, *(f'{{{rest}, "ts": {time}}}' for time in times), name="s.ndjson")
    assert values(found, "ts") == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert found.refused == 2
    assert found.given["ts"].to_pylist()[1:3] == ["1970-01-01T00:00:02Z", "1970-01-01T00:00:03Z"]
    with pytest.raises(InputError, match="line 2, field ts: 'noon' is not a time; write ISO 8601, or whole"):
        read(tmp_path, f'{{{rest}, "ts": 1}}', f'{{{rest}, "ts": "noon"}}', name="s.ndjson")


def test_cells_mean_the_same_beside_any_others(tmp_path: Path) -> None:
    """20260101 is a number of microseconds, as an edge takes it, not a date."""
    for others in ([], ["1970-01-01"], ["0000-01-01T00Z"]):
        lines = [f"a,{time},1,1,1,true,x" for time in ["20260101", "5.0", *others]]
        found = values(read(tmp_path, *lines), "ts")
        assert {5, 20_260_101} <= set(found)


def test_json_lines_are_objects(tmp_path: Path) -> None:
    for line, message in (("[1]", "line 3: not a JSON object"), ("{", "line 3: not JSON")):
        with pytest.raises(InputError, match=message):
            read(tmp_path, '{"k": "a"}', "", line, name="s.ndjson")


def test_parquet_times_keep_their_type(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    row = {"k": "a", "ts": moment, "x": 1.0, "n": 1, "b": 2, "ok": True, "w": "x"}
    pyarrow.parquet.write_table(pa.Table.from_pylist([row]), path)
    found = read_recording(stream(), [str(path)])
    assert values(found, "ts") == [1_704_067_200_000_000]
    assert found.given["ts"].to_pylist() == [moment]


def test_each_file_has_a_watermark_of_its_own(tmp_path: Path) -> None:
    lines = ["a,10000000,1,1,1,true,x", "a,8000000,1,1,1,true,x", "a,7999999,1,1,1,true,x"]
    read(tmp_path, *lines)
    found = read_recording(stream(), [str(tmp_path / "s.csv")] * 2, as_arrived=True)
    assert found.late.tolist() == [False, False, True] * 2


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_rows_of_each_file_are_in_order_of_event_time(tmp_path: Path, form: str) -> None:
    times = [5, 3, 5, 1, 3]
    table = pa.table(
        {"k": ["a"] * 5, "ts": times, "x": [0.0, 1.0, 2.0, 3.0, 4.0], "n": [1] * 5, "b": [2] * 5}
        | {"ok": [True] * 5, "w": ["x"] * 5, "_order": [9, 8, 7, 6, 5]}
    )
    path = str(tmp_path / f"s.{form}")
    write_table(table, path)
    found = read_recording(stream(), [path, path])
    assert values(found, "ts") == [1, 3, 3, 5, 5] * 2
    assert values(found, "x") == [3.0, 1.0, 4.0, 0.0, 2.0] * 2  # equal times are in the order of the file
    assert [int(one) for one in found.given["ts"].to_pylist()] == [1, 3, 3, 5, 5] * 2
    assert found.order is not None
    assert found.order.tolist() == [6, 8, 5, 9, 7] * 2
    assert not found.late.any()
    assert values(read_recording(stream(), [path], as_arrived=True), "ts") == times


def test_files_that_write_times_differently_are_shown_in_iso(tmp_path: Path) -> None:
    read(tmp_path, "a,1500000,1,1,1,true,x")
    read(tmp_path, "a,1970-01-01T00:00:02Z,1,1,1,true,x", name="t.csv")
    found = read_recording(stream(), [str(tmp_path / name) for name in ("s.csv", "t.csv")])
    assert found.given["ts"].to_pylist() == ["1970-01-01T00:00:01.5Z", "1970-01-01T00:00:02Z"]


def test_files_without_rows(tmp_path: Path) -> None:
    assert len(read(tmp_path)) == 0
    assert len(read(tmp_path, name="s.ndjson")) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Empty CSV"),
        ("k,ts\na,1\n", "no column x; it has k, ts"),
        ("k,ts\na\n", "Row #2"),
        (f"{HEADER},k\na,1,1,1,1,true,x,b\n", "two columns k"),
    ],
)
def test_a_broken_csv_says_why(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_recording(stream(), [str(path)])


def test_a_file_must_exist_and_say_its_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_rows(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="--format"):
        read_rows(str(tmp_path / "none.txt"))


def test_csv_quotes_only_what_it_must(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_table(pa.table({"a": ["x", None], "b": [1.5, None]}), str(path))
    assert path.read_text() == "a,b\nx,1.5\n,\n"
    write_table(pa.table({"a": ["x", 'y,"z"'], "b": [1.5, None]}), str(path))
    assert path.read_text() == 'a,b\nx,1.5\n"y,""z""",\n'
    write_table(pa.table({"a": ["x", None]}), str(path))
    assert path.read_text() == 'a\nx\n""\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", "k,ts,w\na,1970-01-01T00:00:01Z,x\nb,1970-01-01T00:00:02Z,y\n"),
        ("s.ndjson", '{"k": "a", "ts": 1000000, "w": "x"}\n{"k": "b", "ts": 2000000, "w": "y"}\n'),
    ],
)
def test_columns_that_a_file_lacks_are_null_as_at_an_edge(tmp_path: Path, name: str, content: str) -> None:
    path, full = tmp_path / name, tmp_path / "full.csv"
    path.write_text(content)
    full.write_text(f"{HEADER},at\na,3000000,1,1,1,true,z,1970-01-01T00:00:05Z\n")
    timed = catalog_of(SQL.replace("ok BOOLEAN", "ok BOOLEAN, at TIMESTAMP")).streams["s"]
    found = read_recording(timed, [str(path), str(full)], absent_is_null=True)
    assert [values(found, c) for c in ("k", "x", "n", "b", "ok", "w", "at")] == [
        ["a", "b", "a"],
        [None, None, 1.0],
        [None, None, 1],
        [None, None, 1],
        [None, None, True],
        ["x", "y", "z"],
        [None, None, 5_000_000],
    ]
    assert found.given["at"].to_pylist() == [None, None, "1970-01-01T00:00:05Z"]
    assert len(found.absent) == 5 and found.refused == 0
    assert (
        found.absent[0]
        == f"{path} has no column x, which is NULL in its readings, as at an edge; it has k, ts, w"
    )


def test_a_misspelt_column_that_may_be_null_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(HEADER.replace(",ok", ",okay") + "\na,3000000,1,1,1,true,z\n")
    found = read_recording(catalog_of(SQL).streams["s"], [str(path)], absent_is_null=True)
    (said,) = found.absent
    assert said == (
        f"{path} has no column ok, which is NULL in its readings, as at an edge; did you mean 'okay'?"
    )


def test_a_decimal_comma_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f'{HEADER}\na,3000000,"1,5",1,1,true,z\n')
    with pytest.raises(InputError, match=r"'1,5' is not of type DOUBLE; write a decimal point: 1\.5"):
        read_recording(catalog_of(SQL).streams["s"], [str(path)])


@pytest.mark.parametrize(("header", "lacks"), [("ts,x,w", "k"), ("k,x,w", "ts"), ("k,ts,x", "w")])
def test_keys_times_and_not_null_columns_can_not_be_absent(tmp_path: Path, header: str, lacks: str) -> None:
    (tmp_path / "s.csv").write_text(f"{header}\n1,2,3\n")
    with pytest.raises(InputError, match=f"no column {lacks}; it has {header.replace(',', ', ')}"):
        read_recording(stream(), [str(tmp_path / "s.csv")], absent_is_null=True)
