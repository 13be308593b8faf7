"""Paths to the values of columns: dots, brackets, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.recordings.field_paths import of_column, parsed


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("temp", ("temp",)),
        ("data.temp", ("data", "temp")),
        ("$.data.temp", ("data", "temp")),
        ("$['data'].temp", ("data", "temp")),
        ('["1-0:16.7.0"]', ("1-0:16.7.0",)),
        ('$["1-0:16.7.0"]', ("1-0:16.7.0",)),
        ('a["b.c"]', ("a", "b.c")),
        ("a['b.c']['d']", ("a", "b.c", "d")),
        ('a[ "b" ].c', ("a", "b", "c")),
        ('["it\'s \\"so\\" \\u00e9"]', ('it\'s "so" é',)),
        ("['it\\'s \"so\"']", ('it\'s "so"',)),
        ('["a[0]"]', ("a[0]",)),
        ("$temp", ("$temp",)),
        ("Power (kW)", ("Power (kW)",)),
        ("m/s", ("m/s",)),
        ("a>b", ("a>b",)),
        ('["/a"]', ("/a",)),
        ('["->"]', ("->",)),
        ("SENSOR.DS18B20.Temperature", ("SENSOR", "DS18B20", "Temperature")),
    ],
)
def test_a_path_has_steps(text: str, steps: tuple[str, ...]) -> None:
    assert parsed(text).steps == steps
    assert of_column(text).steps == steps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "values[0].v",
            r"an element of an array, .*; if a field has this name, write \[\"values\[0\]\.v\"\]$",
        ),
        ("$.values[-1]", "an element of an array"),
        ("a[*].b", "several values"),
        ("a.*", "several values"),
        ("$..b", "several values"),
        ("a[?@.b > 1]", "several values"),
        ("a[0:2]", "several values"),
        ('a["b","c"]', "several values"),
        ("a..b", "several values"),
        (".a", "no path to a field"),
        ("a.", "no path to a field"),
        ("", "no path to a field"),
        ("$", "no path to a field"),
        ("$.", "no path to a field"),
        ("a[b]", "no path to a field"),
        ('a["b', "no path to a field"),
        ('a["b"]c', "no path to a field"),
        ('["\\x"]', "no path to a field"),
        ("/data/temp", r"write 'data\.temp'; if a field has this name, write \[\"/data/temp\"\]$"),
        ("@.temp", "write 'temp'"),
        ("data->temp", r"write 'data\.temp'"),
        ("data->>'temp'", r"write 'data\.temp'"),
        ("{{ value.temp }}", r"write 'value\.temp'"),
        ("${data.temp}", r"write 'data\.temp'"),
        (" data.temp ", r"write 'data\.temp'"),
        (" ", "no path to a field"),
        ("temp [C]", r"no path .*; if a field has this name, write \[\"temp \[C\]\"\]$"),
    ],
)
def test_what_names_no_field_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parsed(text)
    assert of_column(text).steps == (text,), "a column's name that is no path is the name of a field"


def test_a_dotted_path_is_a_whole_name_where_a_reading_has_it() -> None:
    readings: list[dict[str, Any]] = [
        {"a.b": 1, "a": {"b": 2}},
        {"a": {"b": 3}},
        {"a": 4},
        {},
        {"a.b": None, "a": {"b": 5}},
    ]
    assert of_column("a.b").values(readings) == [1, 3, None, None, None]
    assert of_column("$.a.b").values(readings) == [2, 3, None, None, 5]
    assert of_column('["a.b"]').values(readings) == [1, None, None, None, None]


def test_columns_of_a_table_have_whole_names_or_objects() -> None:
    table: dict[str, list[Any]] = {"a.b": [1], "a": [{"b": 2, "c.d": 3}], "x": [4]}
    assert of_column("a.b").cells(table) == [1]
    assert of_column("$.a.b").cells(table) == [2]
    assert of_column('a["c.d"]').cells(table) == [3]
    assert of_column('["x"]').cells(table) == [4]
    assert of_column("y").cells(table) is None
    assert of_column("x.y").cells(table) == [None]
