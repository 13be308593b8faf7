"""`tamis explain` of files in which a later statement changes what a query reads."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

STREAM = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts);
CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 2;
CREATE STREAM warm AS SELECT k, ts, temp FROM air WHERE f(temp) > 20;

  CREATE ALERT hot AS SELECT k, temp FROM air
    WHERE f(temp) > 50;
"""


def explained(sql: str, *options: str) -> tuple[int, str]:
    """The exit code and the output of `tamis explain`, in one line."""
    Path("q.sql").write_text(sql)
    result = CliRunner().invoke(main, ["explain", "q.sql", *options], catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("also", ["", "EXPLAIN hot;"])
def test_queries_are_explained_with_the_replaced_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: str
) -> None:
    monkeypatch.chdir(tmp_path)
    changed = STREAM + also + "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x * 3;"
    code, out = explained(changed)
    assert code == 0
    assert "temp * 3 > 50" in out and "temp * 3 > 20" in out and "temp * 2" not in out


def test_conditions_of_queries_with_a_replaced_function_have_their_places_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = explained(STREAM + "CREATE OR REPLACE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS -x;")
    assert code == 1
    assert "f(temp) > 50 (q.sql:7:11) is never true" in out
    assert "f(temp) > 20 (q.sql:4:57) is never true" in out


def test_a_change_with_which_a_query_is_no_longer_accepted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    narrower = STREAM + "ALTER STREAM air ALTER COLUMN temp SET CHECK (temp BETWEEN 0 AND 20);"
    code, out = explained(narrower)
    assert code == 1
    assert out.startswith(
        "ALTER STREAM air (q.sql:8:14): REFUSED alert hot would no longer be accepted: f(temp)"
    )
    assert "stream warm: accepted" in out and "stream warm would" not in out

    # The same, although the end of the file has the domain of its beginning.
    wide = "ALTER STREAM air ALTER COLUMN temp SET CHECK (temp BETWEEN 0 AND 100);"
    code, out = explained(narrower + wide, "--json")
    document = orjson.loads(out)
    (change,) = document["changes"]
    assert (code, change["where"], [one["name"] for one in change["queries"]]) == (1, "q.sql:8:14", ["hot"])
    assert all(one["accepted"] for one in document["queries"])

    # The alert was refused before, and warm alone reads what it needs.
    assert "ALTER" not in explained(narrower, "--query", "warm")[1]
    assert explained(STREAM + wide)[0] == 0
    refused = "CREATE ALERT never AS SELECT k FROM air WHERE temp > 200;" + wide.replace("100", "90")
    code, out = explained(STREAM + refused)
    assert code == 1 and "alert never: REFUSED" in out and "ALTER" not in out


def test_a_file_that_reads_streams_of_the_fleet_is_told_whom_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = explained("CREATE ALERT warm AS SELECT k FROM air WHERE temp > 20;")
    assert code == 2 and "there is no stream 'air'" in out
    assert "tamis sql -c 'EXPLAIN CREATE ALERT …'" in out
    code, out = explained(STREAM + "CREATE ALERT cold AS SELECT k FROM air WHERE tmep < 0;")
    assert code == 2 and "tamis sql" not in out
