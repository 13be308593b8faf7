"""Patterns from CSV files and folders: what is read, what is resampled, and which mistakes are reported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.declarations.definitions import PatternDef
from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import parse
from tamis.query.patterns.files import resampled
from tamis.query.patterns.watch_text import MOST_CHARACTERS
from tamis.query.statements.inline_patterns import inline_patterns

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file of lines into the working directory."""
    monkeypatch.chdir(tmp_path)

    def make(*lines: str, name: str = "peak.csv") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return name

    return make


def read(sql: str) -> PatternDef:
    (made,) = parse(sql, Catalog())
    assert isinstance(made, PatternDef)
    return made


def mistake(sql: str) -> str:
    with pytest.raises(SqlErrors) as raised:
        parse(sql, Catalog())
    (error,) = raised.value.errors
    assert error.hint
    return str(error)


@pytest.mark.parametrize("header", [(), ("volts",), ("﻿volts",)])
def test_one_column_is_the_values(write: Write, header: tuple[str, ...]) -> None:
    write(*header, "0", " 1.5 ", "-2e3", "4")
    made = read("CREATE PATTERN peak FROM 'peak.csv'")
    assert [(one.name, one.values) for one in made.members] == [("peak", (0.0, 1.5, -2000.0, 4.0))]
    assert made.sql == "CREATE PATTERN peak VALUES (0, 1.5, -2000, 4)"
    assert made.notices == ()


def test_one_of_several_columns(write: Write) -> None:
    write("n,volts", "7,0", "8,1", "9,4")
    made = read("CREATE PATTERN peak FROM 'peak.csv' WITH (value = 'volts', max_gap = '3 s')")
    assert (made.members[0].values, made.members[0].max_gap) == ((0.0, 1.0, 4.0), 3_000_000)


def test_a_folder_has_a_pattern_for_each_file(write: Write) -> None:
    write("0", "2", name="faults/valve.csv")
    write("1", "3", name="faults/pump 2.CSV")
    write("nothing", name="faults/notes.txt")
    made = read("CREATE PATTERN faults FROM 'faults/'")
    assert [(one.name, one.values) for one in made.members] == [
        ("faults/pump 2", (1.0, 3.0)),
        ("faults/valve", (0.0, 2.0)),
    ]
    assert read(made.sql).members == made.members


def test_readings_with_times_are_resampled_and_this_is_said(write: Write) -> None:
    write("ts,volts", "2026-01-31T12:00:00Z,0", "2026-01-31T12:00:01Z,2", "2026-01-31T12:00:03Z,6")
    made = read("CREATE PATTERN peak FROM 'peak.csv' WITH (time = 'ts', step = '500 ms')")
    assert made.members[0].values == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert made.notices == ("peak.csv: 7 values, one every 0.5 s, by linear interpolation between 3 rows",)
    by_default = read("CREATE PATTERN peak FROM 'peak.csv' WITH (time = 'ts')")
    assert by_default.members[0].values == (0.0, 3.0, 6.0)  # the median of 1 s and 2 s
    assert "one every 1.5 s" in by_default.notices[0]


def test_times_are_numbers_of_seconds_too(write: Write) -> None:
    write("t,v", "0,1", "0.5,2", "1.0,4")
    made = read("CREATE PATTERN peak FROM 'peak.csv' WITH (time = 't')")
    assert made.members[0].values == (1.0, 2.0, 4.0)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=20),
    st.integers(1, 60),
    st.integers(0, 2**32),
)
def test_resampling_is_interpolation(distances: list[int], step: int, seed: int) -> None:
    """Against the weights of the neighbours, in integers where they are exact."""
    times = [sum(distances[:i]) for i in range(len(distances) + 1)]
    values = np.random.default_rng(seed).integers(-100, 100, len(times)).astype(float).tolist()
    start = 1_760_000_000_000_000
    found = resampled([start + time for time in times], values, step)
    assert len(found) == times[-1] // step + 1
    for place, value in enumerate(found):
        at = place * step
        before = max(i for i, time in enumerate(times) if time <= at)
        if times[before] == at:
            assert value == values[before]
            continue
        share = (at - times[before]) / (times[before + 1] - times[before])
        assert value == pytest.approx(values[before] * (1 - share) + values[before + 1] * share)


@pytest.mark.parametrize(
    ("lines", "options", "expected"),
    [
        ((), "", "the file is empty"),
        (("volts",), "", "pattern peak has no values"),
        (("1",), "", "pattern peak has only 1 value"),
        (("2", "2"), "", "pattern peak: the values are all equal"),
        (("1", "", "2"), "", "peak.csv, row 2: the value is missing"),
        (("v", "1", "NULL", "2"), "", "peak.csv, row 3: the value is missing"),
        (("1", "two"), "", "peak.csv, row 2: 'two' isn't a number"),
        (("1", '"2,5"'), "", "peak.csv, row 2: '2,5' isn't a number; write a decimal point: 2.5"),
        (("1,5", "2,5"), "", "peak.csv: the first row has 2 numbers and no names of columns"),
        (("1", "nan"), "", "peak.csv, row 2: the value is nan"),
        (("1", "1e999"), "", "peak.csv, row 2: the value is 1e999"),
        (("1", "2e200"), "", "pattern peak: value 1 is 2e+200"),
        (("a,b", "1,2"), "", "peak.csv: the file has the columns a, b; say which one has the values"),
        (("a,b", "1,2", "3"), "", "peak.csv, row 3: the row has 1 cell, and the first one 2"),
        (("a,b", "1,2"), "value = 'c'", "peak.csv: value: the file has no column 'c'"),
        (("a,a", "1,2"), "value = 'a'", "peak.csv: value: the file has several columns 'a'"),
        (("1", "2"), "value = 'v'", "peak.csv: the file has no header with the column 'v'"),
        (("t,v", "0,1", "0,2"), "time = 't'", "peak.csv, row 3: the time 0 isn't later than"),
        (("t,v", "0,1", "-1,2"), "time = 't'", "peak.csv, row 3: the time -1 isn't later than"),
        (("t,v", "0,1", "x,2"), "time = 't'", "peak.csv, row 3: 'x' isn't a time"),
        (("t,v", "0,1", "nan,2"), "time = 't'", "peak.csv, row 3: 'nan' isn't a time"),
        (("t,v", "0,1", "9,2"), "time = 't', max_gap = '5 s'", "row 3: a gap of 9 s lies before this row"),
        (
            ("t,v", "0,1", "3600,2"),
            "time = 't', step = '1 ms'",
            "a pattern of 3600001 values; at most 100000",
        ),
        (("t,v", "0,1", "1,2"), "time = 't', value = 't'", "peak.csv: the column 't' has the times"),
        (('"1', "2"), "", "peak.csv: the file can't be read: unexpected end of data"),
    ],
)
def test_mistakes_in_files(write: Write, lines: tuple[str, ...], options: str, expected: str) -> None:
    if lines:
        write(*lines)
    else:
        Path("peak.csv").touch()
    given = f" WITH ({options})" if options else ""
    found = mistake(f"CREATE PATTERN peak FROM 'peak.csv'{given}")
    assert found.startswith("line 1, column 26: ") and expected in found


def test_mistakes_in_folders(write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "the folder has no CSV file" in mistake("CREATE PATTERN p FROM 'empty'")
    write("0", "1", name="some/good.csv")
    write("0", "x", name="some/wrong.csv")
    assert "some/wrong.csv, row 2: 'x' isn't a number" in mistake("CREATE PATTERN p FROM 'some'")
    write("0", "1", name=f"long/{'x' * 101}.csv")
    assert "can't be the name of a pattern" in mistake("CREATE PATTERN p FROM 'long'")


def test_too_many_values_for_a_statement(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(*[f"{number / 7:.17g}" for number in range(60_000)])
    found = mistake("CREATE PATTERN peak FROM 'peak.csv'")
    assert f"at most {MOST_CHARACTERS} are allowed; write fewer digits" in found


def test_files_become_values_on_the_same_lines(write: Write) -> None:
    write("0", "1", "4")
    text = (
        "-- first\n/* and */ CREATE PATTERN peak\n  FROM 'peak.csv' -- a file\n  WITH (max_gap = '2 s')\n;\n"
        "CREATE PATTERN other VALUES (1, 2);\nSHOW NOTHING"
    )
    inlined = inline_patterns(text, "a.sql")
    assert inlined.text == (
        "-- first\n/* and */ CREATE PATTERN peak VALUES (0, 1, 4) WITH (max_gap = '2 s')\n\n\n;\n"
        "CREATE PATTERN other VALUES (1, 2);\nSHOW NOTHING"
    )
    for one in (text, inlined.text):
        with pytest.raises(SqlErrors) as raised:
            parse(one, Catalog())
        assert [error.position.line for error in raised.value.errors if error.position] == [7]


def test_the_files_of_tables_are_named(write: Write) -> None:
    text = """-- CREATE TABLE no (a INT) WITH (path = 'no.csv');
        create table one (a INT CHECK (f(a) > 0)) WITH (PATH = '/srv/one.csv'); CREATE TABLE none (a INT);
        CREATE STREAM s (path VARCHAR DEFAULT 'path'); CREATE TABLE two (a INT) WITH (path='b''s.csv')"""
    assert inline_patterns(text).tables == ("/srv/one.csv", "b's.csv")


def test_notices_and_mistakes_of_files_that_become_values(write: Write) -> None:
    write("t,v", "0,1", "1,3")
    write("0", "x", name="wrong.csv")
    inlined = inline_patterns("CREATE PATTERN p FROM 'peak.csv' WITH (time = 't')")
    assert inlined.notices == ("peak.csv: 2 values, one every 1 s, by linear interpolation between 2 rows",)
    with pytest.raises(SqlErrors) as raised:
        inline_patterns("CREATE PATTERN p FROM 'wrong.csv';\nCREATE PATTERN q FROM 'none.csv'", "a.sql")
    assert [str(error).partition(";")[0] for error in raised.value.errors] == [
        "a.sql:1:23: wrong.csv, row 2: 'x' isn't a number",
        "a.sql:2:23: pattern q, path none.csv: the file can't be read: No such file or directory",
    ]


@pytest.mark.parametrize("text", ["", "SHOW ALERTS", "CREATE PATTERN p FROM", "CREATE PATTERN 'x", "}{"])
def test_all_other_texts_stay_as_they_are(text: str) -> None:
    if "FROM" in text:
        with pytest.raises(SqlErrors, match="the name of a file or folder is missing"):
            inline_patterns(text)
    else:
        assert inline_patterns(text).text == text


def test_a_text_that_becomes_too_long(write: Write) -> None:
    write(*[f"{number / 7:.6f}" for number in range(50_000)])
    text = "".join(f"CREATE PATTERN p{number} FROM 'peak.csv';" for number in range(3))
    with pytest.raises(SqlErrors, match="with the values of its patterns, the text is longer than 1048576"):
        inline_patterns(text)


def test_times_in_other_zones_are_the_same_instants(write: Write) -> None:
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    times = [start + timedelta(seconds=s) for s in (0, 1, 2)]
    zones = [times[0].isoformat(), "2026-01-31T14:00:01+02:00", "2026-01-31 12:00:02"]
    write("ts,v", *[f"{time},{value}" for time, value in zip(zones, (0, 1, 5), strict=True)])
    assert read("CREATE PATTERN p FROM 'peak.csv' WITH (time = 'ts')").members[0].values == (0.0, 1.0, 5.0)
