"""Functions over frames: results, the types of columns, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE NOT NULL CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10, rate = '10/s');
CREATE ALERT hot AS SELECT station, ts, temp FROM air WHERE temp > 30;
"""
TIMES = [datetime(2024, 1, 1, 0, 0, second) for second in range(4)]
AIR: dict[str, list[Any]] = {"station": ["n", "n", "s", "s"], "ts": TIMES, "temp": [31.0, 20.0, 32.0, 33.0]}


def air(**columns: Any) -> pa.Table:
    return pa.table({**AIR, **columns})


def test_results_are_arrow_tables_with_the_times_of_the_frame() -> None:
    zone = pd.DataFrame(AIR).assign(ts=pd.Series(TIMES).dt.tz_localize("Europe/Vienna"))
    rows = tamis.run(SQL, {"air": zone})
    assert rows.schema.field("ts").type == pa.timestamp("ns", "Europe/Vienna")
    assert rows.to_pandas()["ts"].tolist() == zone["ts"][[0, 2, 3]].tolist()
    assert tamis.run(SQL, {"AIR": air()})["station"].to_pylist() == ["n", "s", "s"]


def test_a_time_without_a_zone_is_in_utc() -> None:
    daily = SQL.replace("temp > 30", "extract(hour FROM ts) = 23")
    vienna = pd.Series(TIMES).dt.tz_localize("Europe/Vienna")  # 23:00 of the day before in UTC
    assert tamis.run(daily, {"air": pd.DataFrame(AIR).assign(ts=vienna)}).num_rows == 4
    assert tamis.run(daily, {"air": air()}).num_rows == 0


def test_text_of_any_type_and_days_are_read() -> None:
    for station in (
        pa.array(AIR["station"], pa.large_string()),
        pa.array(AIR["station"], pa.string_view()),
        pa.array(AIR["station"]).dictionary_encode(),
        pa.array(pl.Series(AIR["station"], dtype=pl.Enum(["n", "s"])).to_arrow()),
    ):
        assert tamis.run(SQL, {"air": air(station=station)})["station"].to_pylist() == ["n", "s", "s"]
    days = [date(2024, 1, day) for day in range(1, 5)]
    assert tamis.run(SQL, {"air": air(ts=days)})["ts"].to_pylist()[1] == datetime(2024, 1, 3)


def test_several_frames_of_a_stream_are_separate_sources() -> None:
    parts = [air().slice(2), air().slice(0, 2)]  # as one source, the second would be late
    assert [one.late for one in tamis.verify(SQL, {"air": parts}, as_arrived=True)] == [0]


def test_rows_are_in_order_of_event_time_or_as_they_arrived() -> None:
    table = pa.concat_tables([air().slice(2), air(ts=[t - timedelta(hours=1) for t in TIMES])])
    assert tamis.verify(SQL, {"air": table}).table["late"].to_pylist() == [0]
    times = tamis.run(SQL, {"air": table})["ts"].to_pylist()
    assert times == sorted(times)
    with pytest.warns(tamis.TamisWarning, match="4 of 6 readings are late: .*\n  frame air, column ts, row"):
        late = tamis.verify(SQL, {"air": table}, as_arrived=True)
    assert late.table["late"].to_pylist() == [3]


def test_sql_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hot.sql"
    path.write_text(SQL)
    assert tamis.run(path, {"air": air()}).num_rows == 3
    with pytest.raises(tamis.InputError, match=r"none\.sql: can't be read"):
        tamis.run(tmp_path / "none.sql", {})


def test_verifications_are_tables_and_text() -> None:
    found = tamis.verify(SQL, {"air": air()})
    assert found.same and len(found) == 1
    assert str(found) == (
        "hot  4 tuples, 3 retained (75.0 %), 3 alarms in the plain join, 3 with Tamis: missed 0, extra 0"
    )
    assert pl.DataFrame(found)["alarms"].to_list() == [3]


def test_explanations_say_how_many_readings_max_delay_keeps() -> None:
    # Readings 5 s apart: a second after each, its successor isn't there yet.
    columns = "(k VARCHAR KEY, ts TIMESTAMP, v DOUBLE NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
    sql = (
        f"CREATE STREAM a {columns}; CREATE STREAM b {columns};"
        + """
    CREATE ALERT q {} AS SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k
      AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v > b.v + 1;"""
    )
    seconds = [0, 5, 10, 15, 20]
    frame = pa.table({
        "k": ["x"] * len(seconds),
        "ts": [f"2026-01-01T00:00:{second:02}Z" for second in seconds],
        "v": [9.0, 1.0, 2.0, 1.0, 9.0],
    })  # fmt: skip
    told = str(tamis.explain(sql.format("WITH (max_delay = '1 second')"), {"a": frame}))
    assert "dropped at the edge: 0 of the 5 tuples of the recording (0 %)" in told
    assert "without max_delay it would be 3 (60 %)" in told
    assert "dropped at the edge: 3 of the 5" in str(tamis.explain(sql.format(""), {"a": frame}))
    told = str(tamis.explain(sql.format("WITH (max_delay = '0')"), {"a": frame}))
    assert "a: no omission: with max_delay = '0' edges publish each tuple at once" in told
    assert "dropped at the edge: 0 of the 5" in told and "without max_delay it would be 3 (60 %)" in told
    assert "share omitted" not in told
    for options in ("", "WITH (max_delay = '1 hour')"):
        assert "without max_delay" not in str(tamis.explain(sql.format(options), {"a": frame}))


def test_explanations_measure_what_edges_drop() -> None:
    assert "dropped at the edge: 1 of the 4 tuples" in str(tamis.explain(SQL, {"air": air()}))
    found = tamis.explain(SQL, query="hot")
    assert found.accepted and [one.name for one in found] == ["hot"]
    assert "measured" not in found.document()["queries"][0]["streams"][0]
    refused = tamis.explain(
        "CREATE STREAM s (a INT, b INT); CREATE STREAM t (a INT, b INT);"
        "CREATE ALERT q AS SELECT s.a FROM s, t WHERE s.a = t.a"
    )
    assert not refused.accepted and str(refused).startswith("alert q: REFUSED")


def test_a_row_that_an_edge_refuses_is_left_out_with_a_warning() -> None:
    with pytest.warns(tamis.TamisWarning) as caught:
        found = tamis.run(SQL, {"air": air(temp=[99.0, None, 31.0, 32.0])})
    assert [str(one.message) for one in caught] == [
        "stream air: 2 rows left out; an edge would send them to the dead letters\n"
        "  frame air, column temp, row 1 (from 0): NULL in a NOT NULL column\n"
        "  frame air, column temp, row 0 (from 0): 99.0 is outside of CHECK (temp >= -60 AND temp <= 70)"
    ]
    assert caught[0].filename == __file__
    assert found["temp"].to_pylist() == [31.0, 32.0]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ({}, 'frames: no recording of stream air, which hot reads; add "air": frame'),
        ({"air": air(), "water": air()}, "frame water: there is no stream water; give air"),
        ({"air": air(), "Air": air()}, "frames: stream air is there twice; give a list of frames"),
        ({"air": []}, "frame air: the list of frames is empty; give a frame"),
        (
            {"air": {"temp": [1]}},
            "frame air: builtins.dict has no Arrow stream (__arrow_c_stream__); give a "
            "frame of pandas 2.2 or Polars 1.3 or newer, or an Arrow table",
        ),
        ({"air": air().drop_columns("ts")}, "frame air: no column ts; it has station, temp"),
        (
            {"air": [air(), air(temp=["a"] * 4)]},
            "frame air[1], column temp, row 0 (from 0): 'a' is not of type "
            "DOUBLE; correct it or leave the row out",
        ),
        (
            {"air": air(station=[1, 2, 3, 4])},
            "frame air, column station, row 0 (from 0): 1 is not of type "
            "VARCHAR; correct it or leave the row out",
        ),
        (
            {"air": air(ts=[1, 2, 3, 4])},
            "frame air, column ts: the times are numbers (int64) of an unknown unit; "
            "give the argument time_unit ('s', 'ms', 'us' or 'ns'), declare time_unit in CREATE STREAM, or "
            "give datetimes",
        ),
        (
            {"air": pd.DataFrame({**AIR, "temp": [1, "a", 2, 3]})},
            "frame air, column temp: Could not convert 'a' with type str: tried to convert to int64; give "
            "each column one type that Arrow has, or cast it",
        ),
        (
            {"air": pd.DataFrame({**AIR, "temp": [2**70, 1, 2, 3]})},
            "frame air, column temp: a whole number has more than 64 bits; give numbers of at most 64 bits, "
            "or floats",
        ),
        (
            {"air": pl.DataFrame({**AIR, "id": pl.Series([1, 2, 3, 4], dtype=pl.Int128)})},
            "frame air, column id: Invalid or unsupported format string: '_pli128'; give each column one "
            "type that Arrow has, or cast it",
        ),
        (
            {"air": pd.DataFrame(AIR).set_axis(["station", "ts", "ts"], axis=1)},
            "frame air: two columns ts; rename one of them",
        ),
        ({"air": pd.DataFrame()}, "frame air: no column station; it has no columns"),
        (
            {"air": pl.LazyFrame(AIR)},
            "frame air: polars.lazyframe.frame.LazyFrame has no Arrow stream (__arrow_c_stream__); evaluate "
            "it first, with .collect()",
        ),
        (
            {"air": air(ts=[time(hour) for hour in range(4)])},
            "frame air, column ts, row 0 (from 0): datetime.time(0, 0) is not a time; add its date",
        ),
        (
            {"air": air(ts=[timedelta(0)] * 4)},
            "frame air, column ts, row 0 (from 0): datetime.timedelta(0) is not a time; add it to the time "
            "that it counts from",
        ),
        (
            {"air": air(ts=[True] * 4)},
            "frame air, column ts, row 0 (from 0): True is not a time; write ISO 8601, or whole microseconds "
            "since 1970",
        ),
        (
            pd.DataFrame(AIR),
            'frames: DataFrame is no mapping; give a mapping from streams to frames: {"STREAM": frame}',
        ),
        ({1: air()}, "frames: 1 is no name of a stream; give its name as text"),
    ],
)
def test_wrong_frames_are_refused_with_their_place(frames: Any, message: str) -> None:
    for function in (tamis.run, tamis.verify, tamis.explain):
        if not len(frames) and function is tamis.explain:  # it needs no frames
            continue
        with pytest.raises(tamis.InputError) as caught:
            function(SQL, frames)
        assert str(caught.value) == message


@pytest.mark.parametrize("sql", [None, 3, b"CREATE"])
def test_sql_is_text_or_a_path(sql: Any) -> None:
    with pytest.raises(
        tamis.InputError, match=r"^sql: .* is no SQL; give text, or a pathlib\.Path of a file$"
    ):
        tamis.run(sql, {"air": air()})


def test_names_of_queries_are_text() -> None:
    wrong: Any = 3
    message = r"^query: 3 is no name of a query; give its name as text$"
    with pytest.raises(tamis.InputError, match=message):
        tamis.run(SQL, {"air": air()}, query=wrong)
    with pytest.raises(tamis.InputError, match=message):
        tamis.explain(SQL, query=wrong)


def test_columns_without_values_may_have_any_type() -> None:
    """Libraries give a column of NULLs, and one without rows, any type."""
    empty = pl.DataFrame(AIR).clear().with_columns(temp=pl.lit(None).cast(pl.String))
    assert tamis.run(SQL, {"air": empty}).num_rows == 0
    nothing = air(station=pa.nulls(4, pa.list_(pa.int64())))
    assert tamis.run(SQL, {"air": nothing})["station"].to_pylist() == [None] * 3


def test_run_end_encoded_columns_are_their_values() -> None:
    def runs(values: pa.Array) -> pa.Array:
        return pa.RunEndEncodedArray.from_arrays([4], values)

    frame = air(station=runs(pa.array(["n"])), temp=runs(pa.array([31.0])), ts=pa.array(TIMES))
    assert tamis.run(SQL, {"air": frame}).num_rows == 4
    kept = tamis.omit(frame, "30s", value="temp", key="station")
    assert kept.column("station").to_pylist() == ["n", "n"]


def test_decimals_are_compared_by_all_of_their_digits() -> None:
    """As DOUBLEs all four are equal, and the greatest one would be left out."""
    values = [Decimal(f"1{'0' * 28}{last}") for last in "1231"]
    kept = tamis.omit(pa.table({"ts": TIMES, "v": values}), "30s", value="v", sides="above")
    assert kept["v"].to_pylist() == values
    kept = tamis.omit(pa.table({"ts": TIMES, "v": values}), "30s", value="v", sides="below")
    assert kept["v"].to_pylist() == [values[0], values[-1]]


def test_numbers_are_times_with_a_unit() -> None:
    seconds = [int(one.timestamp()) for one in pd.Series(TIMES)]
    for unit, factor in (("s", 1), ("ns", 10**9)):
        frame = air(ts=[one * factor for one in seconds])
        assert tamis.run(SQL, {"air": frame}, time_unit=unit)["ts"].to_pylist() == [  # type: ignore[arg-type]
            seconds[row] * factor for row in (0, 2, 3)
        ]
    declared = SQL.replace("rate =", "time_unit = 's', rate =")
    assert tamis.run(declared, {"air": air(ts=seconds)}).num_rows == 3
    with pytest.raises(tamis.InputError, match="time_unit: unknown unit 'h'; give s, ms, us, ns"):
        tamis.run(SQL, {"air": air()}, time_unit="h")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["demo/first/alerts.sql", " ALERTS.SQL\n"])
def test_text_that_is_a_path_is_told_apart_from_sql(path: str) -> None:
    with pytest.raises(tamis.InputError, match=r"the path of a file, .*; give pathlib\.Path\('.*'\)"):
        tamis.run(path, {})


def test_a_shell_shows_explanations_and_verifications_as_text() -> None:
    sql = SQL
    explanations = tamis.explain(sql)
    assert repr(explanations) == str(explanations) and ": accepted" in repr(explanations)
    found = tamis.verify(sql, {"air": air()})
    assert repr(found) == str(found) and "missed 0" in repr(found)


def test_mistakes_in_sql_have_positions() -> None:
    with pytest.raises(tamis.SqlErrors, match=r"^line 4, column 61: .*tmep"):
        tamis.run(SQL.replace("WHERE temp", "WHERE tmep"), {"air": air()})
    with pytest.raises(
        tamis.InputError, match="sql: several queries; choose one with the argument query: hot, b"
    ):
        tamis.run(SQL + SQL.splitlines()[3].replace("hot", "b"), {"air": air()})


def test_omission_of_datetimes_counts_in_their_own_unit() -> None:
    values = [3.0, 1.0, 2.0, 3.0]
    for unit in ("s", "ms", "us", "ns"):
        frame = pa.table({"ts": pa.array(TIMES, pa.timestamp(unit)), "v": values})
        for span in ("3s", timedelta(seconds=3), np.timedelta64(3, "s"), pd.Timedelta("3s")):
            kept = tamis.omit(frame, span, value="v", sides="above")
            assert kept["v"].to_pylist() == [3.0, 3.0] and kept.schema == frame.schema
            assert tamis.omit(frame, "2999999us", value="v", sides="above").num_rows == 3
    near = pa.table({"ts": pa.array([0, 1, 2, 1_003], pa.timestamp("ns")), "v": [2.0, 1.0, 2.0, 2.0]})
    for nanoseconds, rows in ((1, 4), (2, 3)):
        with pytest.warns(tamis.TamisWarning, match="frame: all times lie before 2000"):
            kept = tamis.omit(near, np.timedelta64(nanoseconds, "ns"), value="v", sides="above")
        assert kept.num_rows == rows


def test_omission_of_numbers_needs_their_unit_for_durations() -> None:
    frame = pa.table({"ts": [0, 1_000, 2_000], "v": [2.0, 1.0, 2.0]})
    assert tamis.omit(frame, 2_000, value="v", sides="above").num_rows == 2
    assert tamis.omit(frame, 1_999.5, value="v", sides="above").num_rows == 3
    with pytest.warns(tamis.TamisWarning, match="all times lie before 2000"):
        assert tamis.omit(frame, "2s", value="v", sides="above", time_unit="ms").num_rows == 2
    with pytest.raises(tamis.InputError, match=r"but the times are numbers; .* or the argument time_unit"):
        tamis.omit(frame, np.timedelta64(2_000, "ns"), value="v")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 30}, "interval: 30 has no unit, but the times are dates; write 30s or 30ms"),
        (
            {"interval": float("nan")},
            "interval: nan is no length of time; write a finite number",
        ),
        ({"interval": True}, "interval: True is no length of time; write a duration, such as '30s'"),
        ({"key": None}, "key: None is no column; give its name, a list of names, or () for no key"),
        ({"key": [0]}, "key: 0 is no name of a column; write '0', its name in Arrow"),
        ({"value": None}, "value: None is no name of a column; give its name as text"),
        (
            {"time": "day"},
            "frame, column day, row 0 (from 0): True is not a time; write ISO 8601, or whole microseconds "
            "since 1970",
        ),
        (
            {"key": "place"},
            "frame, column place: values of type list<item: int64> can't be a key; make a column of text or "
            "numbers of it",
        ),
        ({"interval": "-1s"}, "interval: -1s is negative; write 0 or more"),
        (
            {"interval": np.timedelta64(1, "M")},
            "interval: np.timedelta64(1,'M') is no length of time; write a duration, such as '30s'",
        ),
        ({"max_delay": None, "sides": "up"}, "sides: 'up' is unknown; give one of 'above', 'below', 'both'"),
        ({"ties": "few"}, "ties: 'few' is unknown; give one of 'fewest', 'strict'"),
        (
            {"time": "at"},
            "frame: no column at; name the column of the times with time=; "
            "it has station, ts, temp, place, day",
        ),
        ({"value": "temperature"}, "frame: no column temperature; it has station, ts, temp, place, day"),
        (
            {"value": "station"},
            "frame, column station, row 0 (from 0): 'n' is not of type DOUBLE; correct it or "
            "leave the row out",
        ),
    ],
)
def test_wrong_arguments_of_omit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tamis.InputError) as caught:
        tamis.omit(air(place=[[1]] * 4, day=[True] * 4), **{"interval": "30s", "value": "temp", **arguments})
    assert str(caught.value) == message
