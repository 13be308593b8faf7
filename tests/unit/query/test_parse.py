"""The meaning of SQL, case by case, and properties of every text.

The cases are in tests/fixtures/sql/good.sql. A case has a title (`---- title`), SQL, and its meaning as
`rendering` writes it, each line behind `--= `.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from tests.unit.query.rendering import statement
from tests.unit.query.test_mistakes import base

from tamis.declarations.streams import StreamDef
from tamis.errors import Position, SqlErrors
from tamis.query.catalog import apply
from tamis.query.model import AlertDef, Catalog, Drop, Explain, Redefine, SetPaused, Show
from tamis.query.parse import parse
from tamis.query.syntax.limits import MOST_TOKENS
from tamis.query.syntax.parser import MOST_RECOVERIES, MOST_REPARSED_TOKENS
from tamis.query.syntax.text import LARGEST_TEXT, MOST_ERRORS

SQL = Path(__file__).parents[2] / "fixtures" / "sql"


def cases() -> list[tuple[str, str, list[str]]]:
    """Title, SQL and meaning of every case."""
    found = []
    text = (SQL / "good.sql").read_text(encoding="utf-8")
    for block in re.split(r"^---- ", text, flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        lines = body.splitlines()
        expected = [line[4:] for line in lines if line.startswith("--= ")]
        found.append((title, "\n".join(line for line in lines if not line.startswith("--= ")), expected))
    return found


CASES = cases()


@pytest.mark.parametrize(("sql", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_meaning(sql: str, expected: list[str]) -> None:
    assert [line for made in parse(sql, base()) for line in statement(made)] == expected


@pytest.mark.parametrize("sql", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_a_definition_is_the_same_when_its_own_text_is_parsed_again(sql: str) -> None:
    catalog = base()
    for made in parse(sql, catalog):
        if isinstance(made, Redefine):
            without = catalog.copy()
            del (without.streams if made.kind == "stream" else without.functions)[made.name]
            assert parse(made.made.sql, without) == [made.made]
        elif not isinstance(made, Drop | SetPaused | Show | Explain):
            assert parse(made.sql, catalog) == [made]
        apply(catalog, made)


def test_the_catalogue_given_is_left_alone() -> None:
    catalog = Catalog()
    made = parse((SQL / "base.sql").read_text(encoding="utf-8"), catalog)
    assert len(made) == 8 and catalog == Catalog()


def test_positions_are_those_of_what_is_named() -> None:
    stream, _, _, alert = parse((SQL / "interfaces.sql").read_text(encoding="utf-8"), Catalog())
    assert isinstance(stream, StreamDef) and stream.position == Position(1, 15)
    assert isinstance(alert, AlertDef) and alert.position == Position(19, 14)
    places = {c.text: str(c.position) for c in alert.query.conjuncts}
    assert places == {
        "a.station = s.station": "line 22, column 6",
        "s.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts + INTERVAL '30' SECOND": "line 22, column 32",
        "dew_point(a.temp, a.rh) - s.temp > 0.5": "line 23, column 7",
        "(a.rh > 40 OR a.temp < 5)": "line 24, column 7",
    }
    assert alert.sql.startswith("CREATE ALERT condensation WITH") and alert.sql.endswith("a.temp < 5)")


def test_the_conjuncts_of_a_derived_stream_point_at_its_reader() -> None:
    (alert,) = parse("CREATE ALERT q AS SELECT f\nFROM warm WHERE f > 1", base())
    assert isinstance(alert, AlertDef)
    assert [(c.text, str(c.position)) for c in alert.query.conjuncts] == [
        ("temp > 20", "line 2, column 6"),
        ("rh < 90", "line 2, column 6"),
        ("f > 1", "line 2, column 17"),
    ]


def test_mistakes_name_the_file() -> None:
    with pytest.raises(SqlErrors) as raised:
        parse("SHOW NOTHING;\nDROP ALERT q", Catalog(), file="some/alerts.sql")
    assert [str(e).partition(": ")[0] for e in raised.value.errors] == [
        "some/alerts.sql:1:6",
        "some/alerts.sql:2:12",
    ]
    with pytest.raises(SqlErrors, match=r"alerts\.sql:1:1: the text is longer"):
        parse(" " * (LARGEST_TEXT + 1), Catalog(), file="alerts.sql")


def test_windows_line_ends_and_tabs_count_as_one() -> None:
    with pytest.raises(SqlErrors) as raised:
        parse("SHOW ALERTS;\r\n\tSHOW NOTHING", Catalog())
    assert [str(e.position) for e in raised.value.errors] == ["line 2, column 7"]


def test_a_text_has_a_largest_size() -> None:
    with pytest.raises(SqlErrors, match="longer than"):
        parse(" " * (LARGEST_TEXT + 1), Catalog())
    assert parse(" " * LARGEST_TEXT, Catalog()) == []


def test_a_statement_has_a_largest_length() -> None:
    values = ", ".join(str(n) for n in range(MOST_TOKENS // 2))
    with pytest.raises(SqlErrors, match="more than 20000 tokens"):
        parse(f"CREATE ALERT q AS SELECT n FROM air WHERE n IN ({values})", base())


def test_many_syntax_errors_in_a_large_select_are_told_in_time() -> None:
    began = time.process_time()
    conditions = " AND ".join("rh 5" if n % 150 == 0 else f"rh > {n}" for n in range(4500))
    with pytest.raises(SqlErrors) as raised:
        parse(f"CREATE ALERT q AS SELECT n FROM air WHERE {conditions}", base())
    assert len(raised.value.errors) == 1 + MOST_REPARSED_TOKENS // (4 * 4500)
    with pytest.raises(SqlErrors) as raised:
        parse(
            f"CREATE ALERT q AS SELECT n FROM air WHERE {conditions[:1200]} AND {'rh 5 AND ' * 40} rh > 5",
            base(),
        )
    assert len(raised.value.errors) == 1 + MOST_RECOVERIES
    assert time.process_time() - began < 20


def test_a_file_of_noise_gives_a_message_that_ends() -> None:
    with pytest.raises(SqlErrors) as raised:
        parse("NOISE;" * 9_000, Catalog())
    assert len(raised.value.errors) == MOST_ERRORS + 1
    assert "the rest of the text was not read" in str(raised.value)


@pytest.mark.parametrize("noise", ["\0" * 300_000, "#;" * 9_000])
def test_characters_without_a_meaning_give_a_message_that_ends(noise: str) -> None:
    with pytest.raises(SqlErrors) as raised:
        parse(noise, Catalog())
    assert len(raised.value.errors) == MOST_ERRORS + 1
    assert "the rest of the text was not read" in str(raised.value.errors[-1])


@pytest.mark.parametrize(
    "condition",
    [
        "n > 0" + " AND n > 1" * 1500,
        "n > 0" + " OR n > 1" * 1500,
        "n IN (" + ", ".join(map(str, range(1500))) + ")",
        "n" + " + n" * 90 + " > 0",
    ],
)
def test_wide_conditions_are_read(condition: str) -> None:
    (made,) = parse(f"CREATE ALERT q AS SELECT n FROM air WHERE {condition}", base())
    assert isinstance(made, AlertDef)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n" + " + n" * 5000 + " > 0", "nested deeper"),
        ("n > 0" + " AND n > 1" * 4000, None),
        ("n = " + "- " * 400 + "1", "nested deeper"),
        ("n IN (" + ", ".join(map(str, range(9000))) + ")", "more than 10000 parts"),
        ("(" * 5000 + "n > 0" + ")" * 5000, "nested deeper"),
        ("CASE WHEN " * 500 + "open" + " THEN open END" * 500, "nested deeper"),
        ("NOT " * 5000 + "open", "nested deeper"),
        ("n" + "::INT" * 2000 + " > 0", "nested"),
        ("n > 0" + " IS NULL" * 3000, "nested"),
        ("n" + " > n" * 3000, "nested"),
    ],
)
def test_deep_conditions_are_refused_and_quickly(condition: str, message: str | None) -> None:
    began = time.process_time()
    sql = f"CREATE ALERT q AS SELECT n FROM air WHERE {condition}"
    if message is None:
        parse(sql, base())
    else:
        with pytest.raises(SqlErrors, match=message):
            parse(sql, base())
    assert time.process_time() - began < 20
