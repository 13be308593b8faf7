"""`tamis explain --plan`: the physical plans of a file's queries."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from tests.unit.cli.answering import answering

from tamis.cli import main

SQL = """CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM bids (item INT);
CREATE ALERT hot AS SELECT k FROM air WHERE v > 50;
CREATE ALERT mean AS SELECT k, window_end, avg(v) AS m FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
  GROUP BY k, window_end;
"""
REFUSED = "CREATE ALERT all_bids AS SELECT DISTINCT item FROM bids;"


def explained(sql: str, *options: str) -> tuple[int, str]:
    """The exit code and the output of `tamis explain --plan`."""
    Path("q.sql").write_text(sql)
    result = CliRunner().invoke(main, ["explain", "q.sql", "--plan", *options], catch_exceptions=False)
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_trees_come_one_after_another() -> None:
    code, out = explained(SQL)
    assert code == 0
    hot, mean = out.split("\n\n")
    assert hot.splitlines()[:2] == ["alert hot: keeps nothing", "  Project  (joiner, keeps nothing)"]
    assert mean.splitlines()[1] == "  Windows  (joiner)"
    assert explained(SQL, "--query", "mean")[1] == mean


def test_refused_query_says_why_it_has_no_plan() -> None:
    code, out = explained(SQL + REFUSED, "--query", "all_bids")
    assert code == 1
    assert out.startswith(
        "alert all_bids: REFUSED, so it has no plan: SELECT shows bids.item, which has no limits"
    )


def test_json_document_has_all_plans() -> None:
    code, out = explained(SQL + REFUSED, "--json")
    assert code == 1
    plans = orjson.loads(out)["plans"]
    assert [(one["name"], one["accepted"], one["plan"] is None) for one in plans] == [
        ("hot", True, False),
        ("mean", True, False),
        ("all_bids", False, True),
    ]
    assert plans[0]["plan"]["operator"] == "Project" and plans[2]["reason"]


def test_text_without_queries_has_no_plan() -> None:
    assert explained("CREATE STREAM bids (item INT);") == (0, "no query: there is no plan\n")


@pytest.mark.parametrize("option", ["--verbose", "--witness", "--input=air=air.csv"])
def test_options_of_explanations_are_refused(option: str) -> None:
    code, out = explained(SQL, option)
    assert code == 2
    assert option.partition("=")[0] in out


def test_plan_of_a_running_alert_is_printed_alike() -> None:
    _, wanted = explained(SQL, "--query", "mean")
    (document,) = orjson.loads(explained(SQL, "--query", "mean", "--json")[1])["plans"]
    with answering({"/v1/alerts/mean/plan": document}) as url:
        text = CliRunner().invoke(main, ["get", "alerts", "mean", "--plan", "--registry", url])
        json = CliRunner().invoke(main, ["get", "alerts", "mean", "--plan", "--json", "--registry", url])
        paused = CliRunner().invoke(main, ["get", "alerts", "--plan", "--registry", url])
    assert (text.exit_code, text.stdout) == (0, wanted)
    assert orjson.loads(json.stdout) == document
    assert paused.exit_code == 2 and "tamis get alerts NAME --plan" in paused.stderr


def test_alert_that_does_not_run_has_no_plan() -> None:
    paused = {"name": "hot", "kind": "alert", "accepted": True, "reason": "the alert is paused"}
    with answering({"/v1/alerts/hot/plan": {**paused, "bound": None, "plan": None}}) as url:
        result = CliRunner().invoke(main, ["get", "alerts", "hot", "--plan", "--registry", url])
    assert result.stdout == "alert hot: no plan: the alert is paused\n"
