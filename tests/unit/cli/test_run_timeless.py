"""`tamis explain`, `tamis run` and `tamis verify` for queries over streams without time."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

SQL = """
CREATE STREAM bids (item INT, price BIGINT, at TIMESTAMP);
CREATE STREAM asks (item INT, price BIGINT);
CREATE ALERT crossed AS SELECT DISTINCT b.item FROM bids b, asks a
  WHERE a.price <= b.price AND a.item = b.item AND b.item BETWEEN 1 AND 3;
CREATE ALERT pairs AS SELECT b.item, b.price FROM bids b, asks a WHERE a.price <= b.price AND a.item = b.item;
CREATE ALERT high AS SELECT item, at FROM bids WHERE price > 5 OR item = 2;
CREATE ALERT kept WITH (allow_unbounded = true) AS
  SELECT b.price, a.item FROM bids b, asks a WHERE a.price <= b.price AND a.item = b.item;
CREATE ALERT items AS SELECT item FROM bids WHERE item IN (1, 2, 9)
  UNION SELECT item FROM asks WHERE item = 2;
CREATE ALERT all_items AS SELECT item AS i, price FROM bids UNION ALL SELECT item, price + 1 FROM asks;
CREATE ALERT grows AS SELECT item FROM bids UNION SELECT item FROM asks WHERE item = 2;
CREATE ALERT book AS
  SELECT item, count(*) AS n, max(price) AS best, avg(price) AS mean, max(at) AS latest
  FROM bids
  WHERE item IN (1, 2) GROUP BY item HAVING count(*) < 2;
"""
BIDS = "_order,item,price,at\n1,1,5,2024-01-01T00:00:00Z\n4,2,7,2024-01-01T00:00:01Z\n5,1,9,\n6,9,9,1\n"
ASKS = "_order,item,price\n2,1,6\n3,2,7\n7,2,1\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    (tmp_path / "bids.csv").write_text(BIDS.replace(",1\n", ",2024-01-01T00:00:02Z\n"))
    (tmp_path / "asks.csv").write_text(ASKS)
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, arguments)
    return found.exit_code, found.stdout, found.stderr


def _evaluated(query: str) -> tuple[int, str, str]:
    return _run("run", "q.sql", "--query", query, "--input", "bids=bids.csv", "--input", "asks=asks.csv")


@pytest.mark.usefixtures("directory")
def test_rows_come_once_and_in_the_order_in_which_they_arise() -> None:
    assert _evaluated("crossed") == (0, "item\n2\n1\n", "")


@pytest.mark.usefixtures("directory")
def test_a_query_that_is_not_bounded_is_refused_with_a_repair() -> None:
    code, out, said = _evaluated("pairs")
    assert (code, out) == (1, "")
    assert "alert pairs: SELECT shows b.item" in said
    assert "BETWEEN 0 AND 100" in said


@pytest.mark.usefixtures("directory")
def test_a_query_that_may_grow_runs() -> None:
    assert _evaluated("kept") == (0, "price,item\n7,2\n9,1\n7,2\n", "")


@pytest.mark.usefixtures("directory")
def test_one_stream_needs_nothing_and_keeps_its_times_as_they_were() -> None:
    code, out, _ = _run("run", "q.sql", "--query", "high", "--input", "bids=bids.csv")
    assert code == 0
    assert out == "item,at\n2,2024-01-01T00:00:01Z\n1,\n9,2024-01-01T00:00:02Z\n"


@pytest.mark.usefixtures("directory")
def test_groups_have_a_row_for_each_change_and_are_withdrawn() -> None:
    code, out, said = _run("run", "q.sql", "--query", "book", "--input", "bids=bids.csv")
    assert (code, said) == (0, "")
    assert out == (
        "item,n,best,mean,latest,_withdrawn\n"
        "1,1,5,5,2024-01-01T00:00:00Z,false\n"
        "2,1,7,7,2024-01-01T00:00:01Z,false\n"
        "1,2,9,7,2024-01-01T00:00:00Z,true\n"
    )


@pytest.mark.usefixtures("directory")
def test_a_union_gives_the_rows_of_all_as_they_arise() -> None:
    assert _evaluated("items") == (0, "item\n1\n2\n9\n", "")
    assert _evaluated("all_items") == (0, "i,price\n1,5\n1,7\n2,8\n2,7\n1,9\n9,9\n2,2\n", "")


@pytest.mark.usefixtures("directory")
def test_a_union_is_bounded_only_if_all_of_it_is() -> None:
    code, _, said = _evaluated("grows")
    assert code == 1
    assert "SELECT 1 of the UNION: SELECT shows bids.item" in said


@pytest.mark.usefixtures("directory")
def test_an_order_in_one_recording_only_is_a_mistake() -> None:
    Path("asks.csv").write_text(ASKS.replace("_order", "place"))
    code, _, said = _evaluated("crossed")
    assert code == 2
    assert "stream bids has a column _order and stream asks has none" in said


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(("name", "nothing"), [("asks.ndjson", ""), ("asks.csv", "item,price\n")])
def test_a_recording_without_tuples_needs_no_order(name: str, nothing: str) -> None:
    Path(name).write_text(nothing)
    code, out, said = _run(
        "run", "q.sql", "--query", "items", "--input", "bids=bids.csv", "--input", f"asks={name}"
    )
    assert (code, out, said) == (0, "item\n1\n2\n9\n", "")
    # So does one file of several.
    Path("more.csv").write_text("item,price,at\n")
    files = ["--input", "bids=bids.csv", "--input", "bids=more.csv"]
    assert _run("run", "q.sql", "--query", "items", *files, "--input", f"asks={name}") == (code, out, said)


@pytest.mark.usefixtures("directory")
def test_a_union_of_times_that_are_written_in_different_ways_has_iso_8601() -> None:
    Path("times.sql").write_text(
        "CREATE STREAM s (at TIMESTAMP); CREATE STREAM t (at TIMESTAMP);"
        "CREATE ALERT q AS SELECT at FROM s UNION ALL SELECT at FROM t;"
    )
    Path("s.csv").write_text("at\n2024-01-01T00:00:01+01:00\n")
    Path("t.csv").write_text("at\n1500000\n")
    found = _run("run", "times.sql", "--input", "s=s.csv", "--input", "t=t.csv")
    assert found == (0, "at\n2023-12-31T23:00:01Z\n1970-01-01T00:00:01.5Z\n", "")


@pytest.mark.usefixtures("directory")
def test_the_verdicts_as_json() -> None:
    code, out, _ = _run("explain", "q.sql", "--json")
    assert code == 1
    found = {one["name"]: one for one in orjson.loads(out)["queries"]}
    crossed = found["crossed"]
    assert crossed["accepted"]
    assert crossed["memory"]["bound"] == 9
    assert crossed["memory"]["formula"] == (
        "3 (values of b.item) entries of b + 3 (values of a.item) entries of a + 3 (values of b.item) rows"
        " already given"
    )
    assert crossed["streams"][0]["predicate"] == "item >= 1 AND item <= 3"
    assert crossed["streams"][0]["omission"]["interval"] is None
    pairs = found["pairs"]
    assert not pairs["accepted"]
    assert pairs["memory"]["verdict"] == "unbounded"
    assert pairs["memory"]["bound"] is None
    assert pairs["memory"]["witness"].startswith("any number of tuples of bids with (item) = ")
    assert found["kept"]["accepted"]
    assert found["kept"]["memory"]["verdict"] == "unbounded"


@pytest.mark.usefixtures("directory")
def test_the_example_of_an_unbounded_query_is_run() -> None:
    code, out, _ = _run("explain", "q.sql", "--witness", "--query", "pairs")
    assert code == 1
    lines = [line.split() for line in out.split("entries kept by Tamis\n")[1].splitlines()]
    assert lines[:3] == [["1", "2", "1"], ["2", "4", "2"], ["3", "8", "3"]]
    assert lines[-2] == ["1024", "-", "1024"]
    assert out.endswith("    (-: states are counted for at most 8 tuples)\n")
    found = orjson.loads(_run("explain", "q.sql", "--witness", "--json")[1])["queries"]
    growth = {one["name"]: one.get("growth") for one in found}
    assert growth["crossed"] is None
    assert growth["pairs"][3] == {"stream": "bids", "tuples": 4, "states": 16, "entries": 4}
    assert growth["pairs"][-1] == {"stream": "bids", "tuples": 1024, "states": None, "entries": 1024}


def test_the_example_of_groups_tells_one_tuple_from_none(directory: Path) -> None:
    sql = "CREATE ALERT q AS SELECT b.item, count(DISTINCT b.price) AS n FROM bids b, asks a GROUP BY b.item;"
    (directory / "q.sql").write_text(SQL.split("CREATE ALERT", maxsplit=1)[0] + sql)
    (found,) = orjson.loads(_run("explain", "q.sql", "--witness", "--json")[1])["queries"]
    counted = [one for one in found["growth"] if one["states"] is not None]
    assert [one["states"] for one in counted] == [2 ** one["tuples"] for one in counted]


def test_verify_compares_all_rows_and_the_last_of_groups(directory: Path) -> None:
    inputs = ("--input", "bids=bids.csv", "--input", "asks=asks.csv")
    code, out, said = _run("verify", "q.sql", *inputs)
    assert (code, out) == (1, "")
    assert "alert pairs" in said
    head, *statements = SQL.split("CREATE ALERT ")
    accepted = [one for one in statements if not one.startswith(("pairs", "grows", "all_items"))]
    (directory / "q.sql").write_text("CREATE ALERT ".join([head, *accepted]))
    code, out, _ = _run("verify", "q.sql", *inputs, "--json")
    found = orjson.loads(out)
    assert code == 0
    assert [(one["query"], one["reference_alarms"], one["alarms"]) for one in found] == [
        ("crossed", 2, 2),
        ("high", 3, 3),
        ("kept", 3, 3),
        ("items", 3, 3),
        ("book", 1, 1),
    ]
    assert all(one["missed"] == one["extra"] == 0 for one in found)
