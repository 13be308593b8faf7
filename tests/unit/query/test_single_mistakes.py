"""A single mistake in a file is reported once, at its place, without cascading errors.

The cases are in tests/fixtures/sql/single_mistakes.toml. Each one is a change to right.sql.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tamis.errors import SqlErrors
from tamis.query.parse import catalog_of

SQL = Path(__file__).parents[2] / "fixtures" / "sql"
RIGHT = (SQL / "right.sql").read_text(encoding="utf-8")
MISTAKES = tomllib.loads((SQL / "single_mistakes.toml").read_text(encoding="utf-8"))["mistake"]


def test_the_file_is_right() -> None:
    assert set(catalog_of(RIGHT).alerts) == {"muggy", "frost", "hottest", "steady", "ajar", "either"}


def test_each_change_is_one_of_its_own() -> None:
    assert len({(one["right"], one["wrong"]) for one in MISTAKES}) == len(MISTAKES)
    assert [one["title"] for one in MISTAKES if RIGHT.count(one["right"]) != 1] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[one["title"] for one in MISTAKES])
def test_one_mistake_is_reported_once(mistake: dict[str, str]) -> None:
    with pytest.raises(SqlErrors) as raised:
        catalog_of(RIGHT.replace(mistake["right"], mistake["wrong"]))
    assert [str(error) for error in raised.value.errors] == [mistake["message"]]


def test_a_lost_name_hides_no_other_mistake() -> None:
    """Known names are still resolved: only an unknown name may be that of a definition with a mistake."""
    wrong = RIGHT.replace("CREATE STREAM air", "CREATE STREAM select")
    wrong = wrong.replace("d.open GROUP", "d.opened GROUP").replace("s.temp > 0.5", "s.tmep > 0.5")
    with pytest.raises(SqlErrors) as raised:
        catalog_of(wrong)
    assert [error.what for error in raised.value.errors] == [
        "expected the name of a stream, found 'select'",
        "'s' has no column 'tmep'",
        "'d' has no column 'opened'",
    ]


def test_unknown_columns_are_reported_once_a_statement_and_streams_once_a_text() -> None:
    wrong = """
        CREATE STREAM s (k VARCHAR KEY, v DOUBLE);
        CREATE ALERT p AS SELECT k FROM s WHERE w > 3 AND w < 5;
        CREATE ALERT q AS SELECT k FROM s WHERE w > 7;
        CREATE ALERT r AS SELECT k FROM t WHERE w > 7;
        CREATE ALERT o AS SELECT k FROM t;
    """
    with pytest.raises(SqlErrors) as raised:
        catalog_of(wrong)
    assert [(e.position.line, e.what) for e in raised.value.errors if e.position] == [
        (3, "no stream in FROM has a column 'w'"),
        (4, "no stream in FROM has a column 'w'"),
        (5, "there is no stream 't'"),
    ]


def test_readers_of_a_stream_that_is_defined_twice_may_mean_either() -> None:
    wrong = (
        RIGHT
        + "CREATE STREAM wind (station VARCHAR KEY, gust DOUBLE); CREATE ALERT x AS SELECT gust FROM wind;"
    )
    with pytest.raises(SqlErrors, match="there is already a stream 'wind'") as raised:
        catalog_of(wrong)
    assert len(raised.value.errors) == 1


def test_a_stream_that_is_defined_twice_can_be_dropped_and_defined() -> None:
    again = "CREATE STREAM t (k VARCHAR KEY, v DOUBLE);"
    with pytest.raises(SqlErrors) as raised:
        catalog_of(f"{again}\n{again}\nDROP STREAM t;\n{again} CREATE ALERT x AS SELECT w FROM t;")
    assert [(e.position.line, e.what) for e in raised.value.errors if e.position] == [
        (2, "there is already a stream 't'"),
        (4, "no stream in FROM has a column 'w'"),
    ]
