"""`tamis sql`: completion, newest readings of several topics, and its use without a terminal."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.answering import answering

from tamis.cli import main
from tamis.cli.shell.completion import completions
from tamis.cli.shell.prompt import fragments


def column(name: str, kind: str = "DOUBLE") -> dict[str, Any]:
    return {"name": name, "type": kind, "key": name == "k"}


AIR = [column("k", "VARCHAR"), column("ts", "TIMESTAMP"), column("temp"), column("rh")]
NAMES = {
    "streams": [
        {"name": "air", "kind": "raw", "columns": AIR, "time": "ts"},
        {"name": "surface", "kind": "raw", "columns": [column("k", "VARCHAR"), column("t")], "time": None},
        {"name": "sites", "kind": "table", "columns": [column("k", "VARCHAR")], "time": None},
    ],
    "alerts": ["airless", "hot"],
    "functions": [{"name": "dew_point", "parameters": ["t", "h"], "sql": "CREATE FUNCTION dew_point…"}],
    "patterns": ["knock"],
    "builtin": ["abs", "avg"],
    "keywords": ["ALERT", "AND", "CREATE", "FROM", "GROUP BY", "SELECT", "WHERE"],
}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("SELECT * FROM ai|", ["air"]),
        ("ai|", ["air"]),
        ("select te|\nfrom air", ["temp"]),
        ("SELECT a.t| FROM air a", ["ts", "temp"]),
        ("SELECT s.| FROM air a JOIN surface AS s", ["k", "t"]),
        ("SELECT k FROM surface WHERE t|", ["t"]),
        ("SELECT de| FROM air", ["dew_point"]),
        ("DROP ALERT |", ["airless", "hot"]),
        ("EXPLAIN h|", ["hot"]),
        ("drop al|", ["drop alert"]),
        ("PAUSE  al|", ["PAUSE ALERT"]),
        ("SHOW ALERTS; select k fr|", ["from"]),
        ("SELECT k FROM air WHERE k = 'ai|", []),
        ("SELECT k -- ai|", []),
        ("CREATE ALERT ai|", []),
        ("ALTER STREAM s|", ["surface"]),
    ],
)
def test_completions_fit_where_the_cursor_is(typed: str, expected: list[str]) -> None:
    before, after = typed.split("|")
    assert [text for text, _, _ in completions(before, after, NAMES)] == expected


def test_a_completion_replaces_what_was_typed() -> None:
    assert completions("SELECT * FROM ai", "", NAMES) == [("air", "stream", 2)]
    assert completions("SHOW ALERTS;\n  cre", "", NAMES)[0] == ("create alert", "statement", 3)


def test_every_sign_of_a_statement_has_a_style() -> None:
    text = "SELECT dew_point(temp, 1.5) -- why\nFROM air WHERE k = 'it''s; open"
    found = fragments(text, NAMES)
    assert "".join(part for _, part, *_ in found) == text
    kinds = {part: kind.removeprefix("class:sql.") for kind, part, *_ in found}
    wanted = {"SELECT": "keyword", "dew_point": "function", "1.5": "number", "air": "name", "temp": "word"}
    assert wanted.items() <= kinds.items()
    assert kinds["-- why"] == "comment" and kinds["'it''s; open"] == "string"


def record(topic: str, number: int, **values: Any) -> dict[str, Any]:
    value = {"k": "k1", "ts": number, **values, "_": {"shard": "air:e/s", "plan": 1, "activation": 0}}
    return {"topic": topic, "partition": 0, "offset": number, "time": number, "value": value}


def asked(sql: str, records: list[dict[str, Any]], *, complete: bool = True) -> dict[str, Any]:
    answer = {"records": records, "complete": complete, "read": len(records), "unreadable": 0}
    with answering({"/v1/names": NAMES, "/v1/streams/air/readings": answer}) as url:
        result = CliRunner().invoke(main, ["sql", "--json", "-c", sql, "--registry", url])
    assert result.exit_code == 0, result.output
    (document,) = orjson.loads(result.stdout)
    return dict(document)


def test_copies_of_a_reading_in_several_topics_are_one_row() -> None:
    """Equal readings in one topic are several."""
    records = [record("air.1", 3, temp=9), record("air.2", 3, temp=9), record("air.1", 2, temp=8)]
    records += [record("air.2", 1, temp=7), record("air.2", 1, temp=7), record("air.1", 1, temp=7)]
    assert asked("SELECT temp FROM air", records)["rows"] == [[9.0], [8.0], [7.0], [7.0]]


def test_columns_that_no_topic_has_are_null_and_named() -> None:
    records = [record("air.1", 3, temp=9), record("air.2", 2, rh=50)]
    found = asked("SELECT temp FROM air", records)
    assert found["rows"] == [[9.0]]
    assert found["notices"] == ["readings in air.2 are left out: they lack columns of this SELECT"]
    only = asked("SELECT temp, rh FROM air", records[:1])
    assert only["rows"] == [[9.0, None]]
    assert only["notices"] == ["rh is NULL: no query in service reads it, so edges don't send it"]


def test_a_search_that_has_not_seen_all_readings_says_so() -> None:
    found = asked("SELECT temp FROM air WHERE temp > 8", [record("air.1", 3, temp=9)], complete=False)
    assert (found["rows"], found["complete"]) == ([[9.0]], False)
    assert found["notices"] == ["of air, only the newest 1 in its topics were searched"]
    cut = asked("SELECT temp FROM air LIMIT 1", [record("air.1", n, temp=n) for n in (2, 1)])
    assert (cut["rows"], cut["complete"], cut["notices"]) == ([[2.0]], False, [])


def ran(*arguments: str, stdin: str = "") -> Result:
    with answering({"/v1/names": NAMES}) as url:
        return CliRunner().invoke(main, ["sql", "--registry", url, *arguments], input=stdin)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT k FROM sites", "1:15: 'sites' is a table"),
        ("SELECT k FROM (SELECT k FROM air) AS x", "FROM needs the name of one stream"),
        ("SELECT k FROM air WHERE k IN (SELECT k FROM surface)", "a subquery is not supported here"),
        ("SELECT lag(temp) OVER (PARTITION BY k ORDER BY ts) FROM air", "is not supported here"),
        ("SELECT DISTINCT k FROM air", "DISTINCT is not supported here"),
        ("SELECT k FROM air UNION SELECT k FROM surface", "only a plain SELECT shows readings"),
        ("WITH x AS (SELECT k FROM air) SELECT k FROM x", "WITH is not supported here"),
        ("SELECT k FROM air LIMIT 0", "LIMIT needs a whole number from 1 to 500"),
        ("SELECT k FROM air WHERE k = 'x", "1:29: this string is never closed"),
        ("SELECT k FROM", "1:14: "),
    ],
)
def test_what_is_not_supported_is_refused_at_its_place(sql: str, told: str) -> None:
    result = ran(stdin=sql)
    assert result.exit_code == 2 and "<stdin>:1:" in result.stderr
    assert told in result.stderr


def test_without_statements_nothing_is_done() -> None:
    assert (ran(stdin=" ;\n-- only a comment\n").exit_code, ran("--json").stdout) == (0, "[]\n")
