"""The verdict on queries in application time: examples of schiff-2020, and corrections of its statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.bounded.application_time.verdict import memory_verdict
from tamis.bounded.memory import Memory
from tamis.errors import InputError
from tamis.operators.build import operator
from tamis.plan.nodes import ApplicationTime
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text as shown
from tamis.query.model import AlertDef, Explain, InApplicationTime, JoinByTime
from tamis.query.parse import catalog_of, parse

STREAMS = "\n".join(
    f"CREATE STREAM {name} ({columns}, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
    " WITH (rate = '10/s', max_stall = '5 s', max_ahead = '0');"
    for name, columns in (
        ("s", "a INT, a2 INT"),
        ("t", "b INT"),
        ("u", "c INT, e INT"),
        ("v", "d INT"),
        ("w", "name VARCHAR"),
    )
)
OTHERS = """
CREATE STREAM k (id INT KEY NOT NULL, at TIMESTAMP, ts TIMESTAMP, WATERMARK FOR ts AS ts)
  WITH (keys = 7, rate = '1/s', max_stall = '5 s', max_ahead = '0');
CREATE STREAM f (k INT, ts TIMESTAMP CHECK (ts >= TIMESTAMP '2026-01-01'), WATERMARK FOR ts AS ts)
  WITH (finite = true, until = '2026-01-02', rate = '1/minute');
CREATE STREAM n (x INT);
CREATE TABLE r (id INT, height INT, name VARCHAR) WITH (path = 'r.csv');
"""
CASES = [
    (name, sql.strip(), expected)
    for name, rest in (
        case.split("\n", 1)
        for case in (Path(__file__).parents[2] / "fixtures/bounded/application_time.sql")
        .read_text()
        .split("---- ")[1:]
    )
    for sql, expected in [rest.strip().split("\n--! ")]
]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("id,height,name\n1,5,one\n2,7,two\n9,7,nine\n")
    return tmp_path


def _answer(sql: str) -> Memory:
    catalog = catalog_of(STREAMS + OTHERS)
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain)
    assert isinstance(statement.target, AlertDef)
    query = statement.target.query
    assert isinstance(query, InApplicationTime | JoinByTime)
    return memory_verdict(query, catalog)


@pytest.mark.parametrize(("sql", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_verdict(sql: str, expected: str) -> None:
    found = _answer(sql)
    verdict, *rest = expected.split()
    assert found.verdict == verdict, (found.reason, found.formula)
    assert (found.bound is None) == (verdict != "bounded")
    assert (found.witness is None) == (verdict != "unbounded")
    if verdict != "bounded":
        assert found.theorem.endswith(f"condition {rest[0]}"), (found.theorem, found.reason)
    elif rest:
        assert found.bound == int(rest[0])


def test_the_bound_counts_what_waits_this_time_step_and_the_past() -> None:
    found = _answer("SELECT s.a FROM s, t WHERE s.ts > t.ts AND t.b BETWEEN 1 AND 4")
    # 10 in any second: of 6 s at most 70, and at one time 10, which are told apart from those before.
    assert found.bound == 70 + 70 + 11
    assert found.formula == (
        "70 (tuples within 6 s) entries of s that wait for watermarks + "
        "70 (tuples within 6 s) entries of t that wait for watermarks + "
        "11 (tuples of t at one time, plus one older) entries of t"
    )


def test_reason_repairs_and_example_speak_of_the_users_columns() -> None:
    found = _answer("SELECT t.b FROM s, t WHERE s.ts > t.ts")
    assert found.reason == (
        "SELECT shows t.b, which has no limits: a later tuple may need any of its values. "
        "A tuple of s may come any time after those of t"
    )
    assert "AND t.b BETWEEN 0 AND 100" in found.repairs
    assert any("INTERVAL" in repair for repair in found.repairs)
    assert found.witness is not None
    assert found.witness.startswith("any number of tuples of t, one after the other, with (b) =")


def test_no_number_where_rates_are_not_declared() -> None:
    catalog = catalog_of(
        "CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);"
        "CREATE ALERT q AS SELECT DISTINCT a FROM s WHERE a IN (1, 2)"
    )
    found = explain(catalog, "q")
    assert found.accepted
    assert found.memory.bound is None
    assert found.memory.reason.startswith(
        "the memory is bounded by time, but has no number: stream s doesn't declare rate. Later tuples"
    )
    assert "    bound (theorem 2 of schiff-2020, corrected): n (tuples within 4200 s)" in shown(
        found, verbose=True
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "can't be read: No such file or directory"),
        ("id,height\n1,5\n", "name"),
        ("id,height,name\nx,5,a\n", "'x'"),
    ],
)
def test_a_table_that_cannot_be_read_is_told(directory: Path, text: str | None, what: str) -> None:
    (directory / "r.csv").unlink()
    if text is not None:
        (directory / "r.csv").write_text(text)
    with pytest.raises(InputError) as raised:
        _answer("SELECT s.a FROM s, r WHERE s.a = r.id")
    assert what in str(raised.value)


def test_a_table_is_read_again_once_its_file_has_changed(directory: Path) -> None:
    sql = "SELECT DISTINCT s.a FROM s, r WHERE s.a = r.id"
    first = _answer(sql)
    (directory / "r.csv").write_text("id,height,name\n1,5,one\n")
    again = _answer(sql)
    assert (first.bound, again.bound) == (70 + 3 + 3, 70 + 1 + 1)


def test_a_table_that_is_no_file_or_too_large_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT s.a FROM s, r WHERE s.a = r.id"
    monkeypatch.setattr("tamis.operators.tables.MOST_ROWS", 2)
    (directory / "r.csv").write_text("id,height,name\n1,5,one\n2,5,two\n3,5,three\n")
    with pytest.raises(InputError, match="more than 2 rows"):
        _answer(sql)
    monkeypatch.setattr("tamis.declarations.file_access.MOST_BYTES", 10)
    with pytest.raises(InputError, match="larger than 0 MiB"):
        _answer(sql)
    (directory / "r.csv").unlink()
    (directory / "r.csv").mkdir()
    with pytest.raises(InputError, match="isn't a regular file"):
        _answer(sql)


def test_an_empty_table_never_gives_a_row(directory: Path) -> None:
    (directory / "r.csv").write_text("id,height,name\n")
    found = _answer("SELECT s.a FROM s, r WHERE s.a = r.id")
    assert (found.verdict, found.bound) == ("bounded", 0)
    assert "table r has no rows" in found.reason


def test_the_fleet_runs_what_is_bounded_and_carries_the_table(directory: Path) -> None:
    catalog = catalog_of(STREAMS + OTHERS + "CREATE ALERT q AS SELECT s.a FROM s, r WHERE s.a = r.id")
    assert explain(catalog, "q").accepted
    (query,) = first_plan(catalog).standing
    assert [source.stream for source in query.inputs] == ["s"]
    assert isinstance(query.node, ApplicationTime)
    assert [table.name for table in query.node.tables] == ["r"]
    assert operator(query.node).streams == {"s"}


def test_a_join_by_time_keeps_all_tuples_also_where_no_example_tells_that_it_must() -> None:
    query = "CREATE ALERT q AS SELECT s.a FROM s, k WHERE s.ts > k.ts AND s.ts > k.at"
    found = explain(catalog_of(STREAMS + OTHERS + query), "q")
    assert not found.accepted
    assert found.memory.verdict == "unbounded" and found.memory.repairs
    assert found.reason.startswith("nothing bounds the time between the tuples of s and k that join")
    assert (
        "Not proven: " in found.memory.reason
        and "an event time is compared with a value that is no event time" in found.memory.reason
    )
