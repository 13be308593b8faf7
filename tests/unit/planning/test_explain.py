"""`tamis explain`, for programs and for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from tests.unit.certificates.catalogs import NEAR, TWO

from tamis.cli import main

GOOD = f"CREATE ALERT good AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x > b.x AND a.y > 3;"
BAD = "CREATE ALERT bad AS SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.x > b.x;"
HOT = "CREATE STREAM hot AS SELECT k, ts, x FROM a WHERE x > 30;"


def run(tmp_path: Path, sql: str, *options: str) -> Result:
    path = tmp_path / "alerts.sql"
    path.write_text(sql)
    return CliRunner().invoke(main, ["explain", str(path), *options])


def document(result: Result) -> list[dict[str, Any]]:
    found = orjson.loads(result.stdout)
    assert list(found) == ["queries"]
    queries: list[dict[str, Any]] = found["queries"]
    return queries


def test_the_json_of_an_accepted_alert(tmp_path: Path) -> None:
    result = run(tmp_path, TWO + GOOD, "--json")
    assert result.exit_code == 0
    (query,) = document(result)
    assert set(query) == {"name", "kind", "accepted", "streams", "memory"}
    assert (query["name"], query["kind"], query["accepted"]) == ("good", "alert", True)
    first, second = query["streams"]
    assert first == {
        "alias": "a",
        "stream": "a",
        "key": ["k"],
        "predicate": "y > 3",
        "value": "x",
        "omission": {
            "interval": 10_000_000,
            "sides": "above",
            "certificate": "monotone by rules of composition",
            "reason": "a tuple between two higher ones within 10 s is omitted",
        },
    }
    assert second["predicate"] is None
    assert set(query["memory"]) == {
        "verdict",
        "bound",
        "formula",
        "theorem",
        "reason",
        "repairs",
        "witness",
    }
    assert query["memory"]["verdict"] == "bounded"


def test_a_bound_beyond_64_bits_is_said_exactly(tmp_path: Path) -> None:
    century = "BETWEEN TIMESTAMP '2000-01-01' AND TIMESTAMP '2100-01-01'"
    result = run(
        tmp_path,
        "CREATE STREAM s (a TIMESTAMP NOT NULL, b TIMESTAMP NOT NULL);"
        "CREATE ALERT q AS SELECT count(DISTINCT a) AS n FROM s"
        f" WHERE a {century} AND b {century} GROUP BY b",
        "--json",
    )
    assert result.exit_code == 1, result.output
    times = 36_525 * 86_400 * 1_000_000 + 1
    (query,) = json.loads(result.stdout)["queries"]
    assert query["memory"]["bound"] == times * times
    # No machine has room for so many entries, so the alert isn't accepted unless it says so.
    assert not query["accepted"]


def test_what_is_known_of_domains_says_how_much_passes(tmp_path: Path) -> None:
    stream = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
      y DOUBLE CHECK (y BETWEEN 0 AND 10), n INT, WATERMARK FOR ts AS ts);"""
    shares = {
        "x > 90": 0.1,
        "x < 50 OR y > 5": 0.75,
        "x < 50 AND n > 3 AND x + y > 7": 0.5,  # of the rest nothing is known
        "n > 3": None,
        "x + y > 7": None,
        "x > y": None,
    }
    for condition, share in shares.items():
        sql = f"{stream} CREATE ALERT q AS SELECT k FROM air WHERE {condition};"
        (query,) = document(run(tmp_path, sql, "--json"))
        text = run(tmp_path, sql).stdout
        if share is None:
            assert "selectivity" not in query["streams"][0] and "estimated" not in text
        else:
            found = query["streams"][0]["selectivity"]
            assert found == {"share": pytest.approx(share), "estimated_from": "declared domains"}
            assert f"an estimated {100 * share:g} % of all, by declared domains" in text


def test_one_refused_alert_makes_the_answer_no(tmp_path: Path) -> None:
    result = run(tmp_path, TWO + GOOD + BAD + HOT, "--json")
    assert result.exit_code == 1
    found = {query["name"]: query for query in document(result)}
    assert [found[name]["accepted"] for name in ("good", "bad", "hot")] == [True, False, True]
    assert found["hot"]["kind"] == "stream"
    assert found["bad"]["memory"]["repairs"]


def test_only_the_query_that_is_asked_for(tmp_path: Path) -> None:
    assert run(tmp_path, TWO + GOOD + BAD, "--query", "good").exit_code == 0
    assert run(tmp_path, TWO + GOOD + BAD, "--query", "bad").exit_code == 1
    missing = run(tmp_path, TWO + GOOD + BAD, "--query", "none")
    assert missing.exit_code == 2
    assert "it has good, bad" in missing.stderr


def test_for_people_the_reasons_come_first(tmp_path: Path) -> None:
    lines = run(tmp_path, TWO + BAD).stdout.splitlines()
    assert lines[0] == "alert bad: REFUSED"
    assert lines[1].startswith("  nothing bounds the time")
    assert any("BETWEEN" in line for line in lines)
    lines = run(tmp_path, TWO + GOOD).stdout.splitlines()
    assert lines[0] == "alert good: accepted"
    assert "  a: a tuple between two higher ones within 10 s is omitted" in lines


def test_wrong_input_is_exit_code_2_with_all_errors(tmp_path: Path) -> None:
    wrong = run(
        tmp_path, TWO + "CREATE ALERT q AS SELECT nothing FROM a;\nCREATE ALERT r AS SELECT k FROM z;"
    )
    assert wrong.exit_code == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count(".sql:") == 2
    assert CliRunner().invoke(main, ["explain", str(tmp_path / "none.sql")]).exit_code == 2


def test_standard_input_and_explain_statements() -> None:
    sql = TWO + f"EXPLAIN SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x > b.x;"
    result = CliRunner().invoke(main, ["explain", "-", "--json"], input=sql)
    assert result.exit_code == 0
    line = 1 + TWO.count("\n")
    assert [query["name"] for query in document(result)] == [f"line {line}"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_file_without_queries(tmp_path: Path, options: list[str]) -> None:
    assert run(tmp_path, TWO, *options).exit_code == 0
