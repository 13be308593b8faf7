"""Mistakes in files of readings: each message says what would be right, in every format and at an edge."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from tests.unit.edge.plans import air, entry, topic

import tamis
from tamis.cli import main
from tamis.errors import InputError
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording
from tamis_edge.decode.decoder import Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources import file_rows
from tamis_edge.sources.http import split

SQL = """CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, n INT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"""
HEADER = "k,ts,temp,n"
GOOD = "a,2026-01-01T00:00:00Z,1,2"
NOW = 1_700_000_000_000_000


def read(folder: Path, text: str | bytes, name: str = "s.csv", sql: str = SQL) -> Recording:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_recording(catalog_of(sql).streams["s"], [str(path)], absent_is_null=True)


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("column", ["temp", "n"])
def test_a_number_with_a_comma_may_be_two_numbers(tmp_path: Path, form: str, column: str) -> None:
    row = {"k": "a", "ts": 1_767_225_600_000_000, "temp": 1, "n": 2, column: "1,234"}
    if form == "csv":
        cells = ",".join(f'"{value}"' for value in row.values())
        data = f"{HEADER}\n{cells}\n".encode()
    elif form == "ndjson":
        data = orjson.dumps(row)
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "p")
        data = (tmp_path / "p").read_bytes()
    with pytest.raises(
        InputError, match=r"write 1\.234 if the comma is a decimal comma, and 1234 if it separates"
    ):
        read(tmp_path, data, f"s.{form}")


def test_an_edge_gives_the_same_hint() -> None:
    decoder = Decoder(air([topic([entry(0)])]), FieldMap())
    for sent, hint in (
        ("1,234", "write 1.234 if the comma is a decimal comma, and 1234 if it separates thousands"),
        ("21,5", "write a decimal point: 21.5"),
        ("21.5", "send the number without quotes"),
    ):
        reading = {"station": "a", "ts": NOW, "temp": sent}
        (offence,) = decoder.payloads([orjson.dumps(reading)], NOW).offences
        assert offence.error == f'temp: "{sent}" is not of type DOUBLE; {hint}'
    cells: dict[str, list[object]] = {"station": ["a"], "ts": [NOW], "temp": ["1,234"]}
    (offence,) = decoder.columns(cells, 1, NOW).offences
    assert "write 1.234 if the comma is a decimal comma" in offence.error


@pytest.mark.parametrize(("between", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
def test_other_separators_are_named(tmp_path: Path, between: str, name: str) -> None:
    text = f"{HEADER}\n{GOOD}\n".replace(",", between)
    with pytest.raises(InputError, match=f"no column k; its columns are separated by {name}; write commas"):
        read(tmp_path, text)
    path = tmp_path / "s.csv"
    with pytest.raises(InputError, match=f"its columns are separated by {name}; write commas"):
        file_rows.check(path, "csv", "rec")
    with pytest.raises(InputError, match=f"its columns are separated by {name}"):
        catalog_of(f"CREATE PATTERN p FROM '{path}' WITH (value = 'temp');")
    result = CliRunner().invoke(main, ["omit", str(path), "--interval", "5s", "--value", "temp"])
    with pytest.raises(InputError, match=f"its columns are separated by {name}"):
        read(tmp_path, text.replace(f"{between}1{between}", f"{between}1,5{between}"))  # a decimal comma
    assert f"its columns are separated by {name}" in result.stderr


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_wide_text_is_named(tmp_path: Path, encoding: str, form: str) -> None:
    wide = encoding.upper()[:6]
    text = f"{HEADER}\n{GOOD}\n" if form == "csv" else '{"k": "a", "ts": 1, "temp": 1, "n": 2}\n'
    with pytest.raises(
        InputError, match=f"it is {wide}, and not UTF-8; save it as UTF-8, .* iconv -f {wide}"
    ):
        read(tmp_path, text.encode(encoding), f"s.{form}")
    with pytest.raises(InputError, match=f"it is {wide}, and not UTF-8"):
        file_rows.check(tmp_path / f"s.{form}", form, "rec")
    with pytest.raises(ValueError, match=f"not JSON: {wide}, and not UTF-8; send it in UTF-8"):
        split(text.encode(encoding), "application/x-ndjson")
    (offence,) = Decoder(air([topic([entry(0)])]), FieldMap()).payloads([text.encode(encoding)], NOW).offences
    assert offence.error == f"not JSON: {wide}, and not UTF-8; send it in UTF-8"
    (tmp_path / "p.csv").write_bytes("1\n2\n3\n".encode(encoding))
    with pytest.raises(tamis.SqlErrors, match=f"it is {wide}, and not UTF-8"):
        catalog_of(f"CREATE PATTERN p FROM '{tmp_path}/p.csv';")


def test_other_bytes_than_utf8_are_named(tmp_path: Path) -> None:
    for text, name in (
        (f"{HEADER}\n{GOOD}\nk\xe9,1,1,1\n", "s.csv"),
        ('{"k": "a"}\n\n{"k": "\xe9"}', "s.ndjson"),
    ):
        with pytest.raises(
            InputError, match=r"it is not UTF-8: byte .*, in line 3; .* iconv -f WINDOWS-1252"
        ):
            read(tmp_path, text.encode("latin-1"), name)
    (tmp_path / "q.sql").write_bytes(SQL.encode("utf-16"))
    result = CliRunner().invoke(main, ["explain", str(tmp_path / "q.sql")])
    assert (
        "is not UTF-8 at byte 0; save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8" in result.stderr
    )


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("k,ts,Temp,n", 'write "Temp" with its double quotes: names without quotes are folded to lower case'),
        ("k,ts,te-mp,n", 'write "te-mp" with its double quotes: only letters, digits and _ need no quotes'),
        ("k,ts,tmp,n", "did you mean 'tmp'?"),
    ],
)
def test_a_name_that_must_be_quoted_is_shown_in_quotes(tmp_path: Path, header: str, hint: str) -> None:
    found = read(tmp_path, f"{header}\n{GOOD}\n")
    assert found.absent == (
        f"{tmp_path}/s.csv has no column temp, which is NULL in its readings, as at an edge; {hint}",
    )
    keyed = SQL.replace("temp DOUBLE", "temp DOUBLE NOT NULL")
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"{header}\n{GOOD}\n", sql=keyed)
    assert str(caught.value) == f"{tmp_path}/s.csv: no column temp; {hint}"


def test_a_condition_on_a_name_that_must_be_quoted_is_told_so() -> None:
    stream = SQL.replace("temp", '"Temp"')
    for condition in ("Temp > 5", "s.Temp > 5"):
        with pytest.raises(tamis.SqlErrors, match='write "Temp" with its double quotes'):
            catalog_of(f"{stream} CREATE ALERT a AS SELECT k FROM s WHERE {condition};")


@pytest.mark.parametrize(
    ("time", "unit"), [("1.66e12", "ms"), ("1660000000000.0", "ms"), ("1.66e9", "s"), ("1660000000", "s")]
)
def test_a_time_in_another_unit_names_the_unit(tmp_path: Path, time: str, unit: str) -> None:
    for others in ("", f"{GOOD}\n"):
        found = read(tmp_path, f"{HEADER}\na,{time},1,2\n{others}")
        (said,) = found.implausible_times
        assert "numbers are read as microseconds" in said
        assert f"({unit}) it would be 2022-08-0" in said


@pytest.mark.parametrize("time", ["1660000000.25", "1660000000000.5"])
def test_a_time_with_a_fraction_names_the_unit(tmp_path: Path, time: str) -> None:
    unit = "s" if len(time) < 14 else "ms"
    words = (
        f"is not a time; numbers are read as whole microseconds; in {unit} it would be 2022-08-0.*Z: set the"
    )
    for text, name in (
        (f"{HEADER}\na,{time},1,2\n", "s.csv"),
        (f'{{"k": "a", "ts": {time}, "temp": 1, "n": 2}}', "s.ndjson"),
    ):
        with pytest.raises(InputError, match=words):
            read(tmp_path, text, name)


@pytest.mark.parametrize(
    ("seconds", "zone"),
    [(7199.412, "+02:00"), (7200.0, "+02:00"), (3600 * 5.75 - 30, "+05:45"), (3600 * 14 + 5, "+14:00")],
)
def test_a_distance_of_a_time_zone_names_the_zone(seconds: float, zone: str) -> None:
    decoder = Decoder(air([topic([entry(0)])], max_ahead=60_000_000), FieldMap())
    reading = {"station": "a", "ts": NOW + int(seconds * 1e6), "temp": 1.0}
    (offence,) = decoder.payloads([orjson.dumps(reading)], NOW).offences
    assert f"{seconds:.3f} s ({seconds / 60:,.1f} minutes) ahead of this edge's clock" in offence.error
    assert (
        f"probably the local time of a zone that is {zone} ahead of UTC: send times in UTC" in offence.error
    )


@pytest.mark.parametrize("seconds", [61.0, 300.0, 780.0, 3600 + 90, 3600 * 15, 86_400 * 365.0])
def test_other_distances_name_no_zone(seconds: float) -> None:
    decoder = Decoder(air([topic([entry(0)])], max_ahead=60_000_000), FieldMap())
    reading = {"station": "a", "ts": NOW + int(seconds * 1e6), "temp": 1.0}
    (offence,) = decoder.payloads([orjson.dumps(reading)], NOW).offences
    assert "zone" not in offence.error


@pytest.mark.parametrize(
    ("pack", "message"),
    [
        (gzip.compress, "it is compressed by gzip, and no text; unpack it first with gunzip"),
        (bz2.compress, "it is compressed by bzip2, and no text; unpack it first with bunzip2"),
        (lzma.compress, "it is compressed by xz, and no text; unpack it first with unxz"),
        (lambda text: b"PK\x03\x04" + text, "it is a ZIP archive or a workbook, and no text"),
        (lambda text: b"PAR1" + text, "it is Parquet, and no text; give it a name that ends in .parquet"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_file_that_is_no_text_is_named(
    tmp_path: Path, form: str, pack: Callable[[bytes], bytes], message: str
) -> None:
    data = pack(f"{HEADER}\n{GOOD}\n".encode())
    with pytest.raises(InputError, match=message):
        read(tmp_path, data, f"s.{form}")
    with pytest.raises(InputError, match=message):
        file_rows.check(tmp_path / f"s.{form}", form, "recording")


def test_the_ending_of_a_packed_file_says_how_to_unpack_it(tmp_path: Path) -> None:
    for name, tool in (("s.csv.gz", "gunzip"), ("s.ndjson.zst", "unzstd"), ("s.csv.zip", "unzip")):
        with pytest.raises(InputError, match=f"unpack it first with {tool}"):
            read(tmp_path, "", name)
