"""One rule for the field of a column: an edge and a recording read the same value, in every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.unit.edge.plans import air

import tamis
from tamis.expressions.nodes import Type
from tamis.plan.model import StreamColumn, StreamPlan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis_edge.decode.decoder import Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources import file_rows
from tamis_edge.sources.base import Payloads, RawColumns

NOW = 1_700_000_000_000_000
# Each reading has the value 5 where the column's name says; 7 stands where another rule would look.
READINGS: list[tuple[str, dict[str, Any]]] = [
    ("1-0:16.7.0", {"1-0:16.7.0": 5.0}),
    ("1-0:16.7.0", {"1-0:16.7.0": 5.0, "1-0:16": {"7": {"0": 7.0}}}),
    ('["1-0:16.7.0"]', {"1-0:16.7.0": 5.0, "1-0:16": {"7": {"0": 7.0}}}),
    ("$['1-0:16.7.0']", {"1-0:16.7.0": 5.0}),
    ("data.temp", {"data": {"temp": 5.0}}),
    ("$.data.temp", {"data": {"temp": 5.0}, "data.temp": 7.0}),
    ('data["a.b"]', {"data": {"a.b": 5.0, "a": {"b": 7.0}}}),
    ("a.b.c", {"a": {"b": {"c": 5.0}}}),
    ("temp [C]", {"temp [C]": 5.0}),
    ("values[0]", {"values[0]": 5.0}),
]


def plan(name: str) -> StreamPlan:
    columns = [("k", Type.VARCHAR), ("ts", Type.TIMESTAMP), (name, Type.DOUBLE)]
    parts = tuple(StreamColumn(column, type_, False, None) for column, type_ in columns)
    return replace(air([]), name="m", columns=parts, time="ts")


def at_the_edge(decoder: Decoder, path: Path, name: str) -> list[object]:
    types = {one: column.type for column in decoder.stream.columns for one in decoder.path(column.name).names}
    found: list[object] = []
    for block in file_rows.read(path, path.suffix[1:], types, 0):
        if isinstance(block, RawColumns):
            decoded = decoder.columns(block.columns, len(block.offsets), NOW)
        else:
            assert isinstance(block, Payloads)
            decoded = decoder.payloads(block.payloads, NOW)
        assert not decoded.offences
        found += decoded.columns[name].to_list()
    return found


def write(folder: Path, reading: Mapping[str, Any], form: str) -> Path:
    path = folder / f"m.{form}"
    row = {"k": "a", "ts": NOW, **reading}
    if form == "ndjson":
        path.write_bytes(orjson.dumps(row) + b"\n")
    elif form == "parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist([row]), path)
    else:
        path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    return path


def _cases() -> Iterator[tuple[str, dict[str, Any], str]]:
    for name, reading in READINGS:
        yield name, reading, "ndjson"
        yield name, reading, "parquet"
        cells = {field: value for field, value in reading.items() if not isinstance(value, dict)}
        if 5.0 in cells.values():  # a cell of CSV has no fields
            yield name, cells, "csv"


@pytest.mark.parametrize(("name", "reading", "form"), list(_cases()))
def test_an_edge_and_a_recording_read_the_same(
    tmp_path: Path, name: str, reading: dict[str, Any], form: str
) -> None:
    path = write(tmp_path, reading, form)
    quoted = name.replace('"', '""')
    stream = catalog_of(
        f'CREATE STREAM m (k VARCHAR KEY, ts TIMESTAMP, "{quoted}" DOUBLE,'
        " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
    ).streams["m"]
    found = read_recording(stream, [str(path)], absent_is_null=True)
    assert found.absent == ()
    assert found.columns[name].to_list() == [5.0]
    assert at_the_edge(Decoder(plan(name), FieldMap()), path, name) == [5.0]
    try:
        mapped = Decoder(plan("power"), FieldMap({"power": name}))
    except ValueError:
        mapped = Decoder(plan("power"), FieldMap({"power": f'["{name}"]'}))
    assert at_the_edge(mapped, path, "power") == [5.0]


def test_a_reading_without_the_field_is_null_at_both(tmp_path: Path) -> None:
    path = write(tmp_path, {"1-0:16": {"7": 5.0}, "data": 3}, "ndjson")
    for name in ("1-0:16.7.0", '["1-0:16.7"]', "data.temp"):
        assert at_the_edge(Decoder(plan(name), FieldMap()), path, name) == [None]


def test_frames_have_paths_too() -> None:
    frame = pa.table({"k": ["a"], "ts": pa.array([NOW], pa.timestamp("us")), "data": [{"a.b": 5.0}]})
    sql = """CREATE STREAM m (k VARCHAR KEY, ts TIMESTAMP, "data[""a.b""]" DOUBLE,
      WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
    CREATE ALERT high AS SELECT k, "data[""a.b""]" AS x FROM m WHERE "data[""a.b""]" > 4;"""
    assert tamis.run(sql, {"m": frame})["x"].to_pylist() == [5.0]


def test_times_and_decimals_within_objects_are_read(tmp_path: Path) -> None:
    kind = pa.struct([("at", pa.timestamp("ms")), ("v", pa.decimal128(5, 1))])
    table = pa.table({"k": ["a", "b"], "ts": [NOW, NOW], "o": pa.array([{"at": 5, "v": 5}, None], kind)})
    pyarrow.parquet.write_table(table, tmp_path / "m.parquet")
    assert at_the_edge(Decoder(plan("o.v"), FieldMap()), tmp_path / "m.parquet", "o.v") == [5.0, None]
    (block,) = file_rows.read(tmp_path / "m.parquet", "parquet", {}, 0)
    assert isinstance(block, RawColumns)
    assert block.columns["o"][0]["at"] == "1970-01-01 00:00:00.005000"
    assert np.array_equal(block.offsets, [0, 1])
