"""Functions over frames have the results of the command line over the same readings as CSV."""

from __future__ import annotations

import csv
import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from tests.oracle.random_alerts import START, RandomFile, Row
from tests.oracle.random_cases import SEED, also_long

import tamis
from tamis.cli import main
from tamis.frames.arrow_tables import Frame
from tamis.omission import Sides

UNITS = ("ms", "us", "ns")


def arrow(rows: list[Row], names: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in names.items()})


def pandas(table: pa.Table, r: random.Random) -> pd.DataFrame:
    """As pandas has it: its own types, where whole numbers with NULL are DOUBLEs, or Arrow's."""
    if r.random() < 0.5:
        stored: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
        return stored
    frame: pd.DataFrame = table.to_pandas()
    zone = r.choice((None, "UTC", "Europe/Vienna"))
    if zone is not None:
        frame["ts"] = frame["ts"].dt.tz_localize("UTC").dt.tz_convert(zone)
    return frame.set_index("ts") if r.random() < 0.5 else frame


def polars(table: pa.Table, r: random.Random) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    if r.random() < 0.5:
        frame = frame.with_columns(
            pl.col("ts").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        )
    return frame.with_columns(pl.col("w").cast(pl.Categorical)) if r.random() < 0.5 else frame


def forms(table: pa.Table, r: random.Random) -> dict[str, Frame]:
    return {"arrow": table, "pandas": pandas(table, r), "polars": polars(table, r)}


def write(rows: list[Row], names: list[str], path: Path) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            writer.writerow("" if (value := row[name]) is None else _cell(value) for name in names)
    return str(path)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value).lower() if isinstance(value, bool) else str(value)


def comparable(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, with times as instants: text of the command line, and timestamps of any unit and zone."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if name.startswith("ts"):
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.timestamp("us"))
            else:
                column = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
        columns[name] = column
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def outcome(call: Callable[[], pa.Table]) -> list[dict[str, Any]] | str:
    """The rows, or the class of the error."""
    try:
        return comparable(call())
    except tamis.TamisError as error:
        return type(error).__name__


@pytest.mark.parametrize("many", also_long(200))
def test_run_verify_and_explain_are_those_of_the_command_line(many: int, tmp_path: Path) -> None:
    rows_seen = 0
    for seed in range(SEED * 1_000, SEED * 1_000 + many):
        case, r = RandomFile(seed), random.Random(seed)
        sql = tmp_path / "alerts.sql"
        sql.write_text(case.sql)
        frames: dict[str, dict[str, Frame]] = {"arrow": {}, "pandas": {}, "polars": {}}
        inputs: list[str] = []
        read = {case.derived.get(s, s) for s in _read(case)}
        for name in sorted(read):
            rows = [_readable(row) for row in case.rows[name]]
            kinds = {
                "k": pa.string() if case.key_type == "VARCHAR" else pa.int32(),
                "ts": pa.timestamp(r.choice(UNITS[1:])),
                **dict.fromkeys("xyz", pa.float64()),
                **dict.fromkeys("nm", pa.int64()),
                "ok": pa.bool_(),
                "w": pa.string(),
            }
            for library, frame in forms(arrow(rows, kinds), r).items():
                frames[library][name] = frame
            inputs += ["--input", f"{name}={write(rows, list(kinds), tmp_path / f'{name}.csv')}"]
        for query in [line.split()[2] for line in case.alerts]:
            output = tmp_path / "rows.parquet"
            result = _command("run", str(sql), "--query", query, *inputs, "-o", str(output))
            expected = comparable(pyarrow.parquet.read_table(output)) if result.exit_code == 0 else None
            for library, given in frames.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", tamis.TamisWarning)
                    found = outcome(partial(tamis.run, sql, given, query=query))
                if expected is None:
                    assert found == "NotAcceptedError", (seed, query, library, result.output)
                else:
                    assert found == expected, (seed, query, library)
            rows_seen += len(expected or ())
        _same_documents(case, sql, inputs, frames, r)
    assert rows_seen > 20 or many == 1


def _same_documents(
    case: RandomFile, sql: Path, inputs: list[str], frames: dict[str, dict[str, Frame]], r: random.Random
) -> None:
    """The documents of verify and explain are the same, for one of the libraries."""
    library = r.choice(sorted(frames))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tamis.TamisWarning)
        shown = _command("explain", str(sql), *inputs, "--json")
        assert tamis.explain(sql, frames[library]).document() == orjson.loads(shown.stdout)
        shown = _command("verify", str(sql), *inputs, "--json")
        if shown.exit_code == 2 or not shown.stdout:
            with pytest.raises(tamis.TamisError):
                tamis.verify(sql, frames[library])
            return
        found = tamis.verify(sql, frames[library])
    documents = orjson.loads(shown.stdout)
    for one in documents:
        one.pop("lateness", None)  # it names files
    assert [{k: v for k, v in one.items() if k != "lateness"} for one in found.document()] == documents
    assert [{k: v for k, v in one.items() if v is not None} for one in found.table.to_pylist()] == documents


def _read(case: RandomFile) -> set[str]:
    from tamis.query.parse import catalog_of

    alerts = catalog_of(case.sql).alerts.values()
    return {source.stream for alert in alerts for source in alert.query.sources}


def _readable(row: Row) -> Row:
    """CSV doesn't tell empty text from NULL."""
    named = {name: "empty" if value == "" else value for name, value in row.items()}
    ts = row["ts"]
    return {**named, "ts": None if ts is None else (START + timedelta(microseconds=ts)).replace(tzinfo=None)}


def _command(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("many", also_long(200))
def test_omit_is_that_of_the_command_line(many: int, tmp_path: Path) -> None:
    r = random.Random(SEED)
    dropped = 0
    for _ in range(10 * many):
        count, unit = r.choice((0, 1, 40, 40, 40)), r.choice(UNITS)
        tick = timedelta(milliseconds=1) if unit == "ms" else timedelta(microseconds=r.choice((1, 250_000)))
        rows: list[Row] = [
            {
                "row": number,
                "w": r.choice(("a", "b")),
                "ts": START.replace(tzinfo=None) + r.randrange(60) * tick,
                "v": float(r.randint(0, 9)),
            }
            for number in range(count)
        ]
        kinds = {"row": pa.int64(), "w": pa.string(), "ts": pa.timestamp(unit), "v": pa.float64()}
        span = r.choice((0, 10, 30)) * tick
        sides: Sides = r.choice(("both", "above", "below"))
        strict = r.random() < 0.5
        delay = r.choice((None, None, None, 0 * tick, 20 * tick))
        arguments = ["--interval", _micros(span), "--sides", sides, "--key", "w"]
        arguments += ["--strict"] if strict else []
        arguments += [] if delay is None else ["--max-delay", _micros(delay)]
        output = tmp_path / "kept.parquet"
        path = write(rows, list(kinds), tmp_path / "rows.csv")
        result = _command("omit", *arguments, path, "-o", str(output))
        assert result.exit_code == 0, result.output
        expected = [int(row) for row in pyarrow.parquet.read_table(output)["row"].to_pylist()]
        for library, frame in forms(arrow(rows, kinds), r).items():
            kept = tamis.omit(
                frame,
                r.choice((_micros(span), span, np.timedelta64(span))),
                value="v",
                key="w",
                sides=sides,
                max_delay=delay,
                ties="strict" if strict else "fewest",
            )
            assert kept["row"].to_pylist() == expected, (library, rows, arguments)
        dropped += count - len(expected)
    assert dropped > 10


def _micros(span: timedelta) -> str:
    return f"{span // timedelta(microseconds=1)}us"
