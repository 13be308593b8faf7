"""EXPLAIN of an alert that replaces another form of it: the differences, and how the new form takes over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.registry.test_leases import started

from tamis.cli.common.tables import show_outcome
from tamis.errors import TamisError
from tamis_registry.core.plan.retirement import span
from tamis_registry.core.registry import Registry
from tamis_registry.core.statements.catalog_changes import Conflict

ROOT = Path(__file__).parents[3]
STREAMS = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), WATERMARK FOR ts AS ts)
  WITH (keys = 10, rate = '1/s');
CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts) WITH (keys = 10, rate = '1/s');
"""
ONE = "ALERT one AS SELECT k, x FROM air WHERE x > 30;"
MEAN = (
    "ALERT mean AS SELECT k, avg(x) AS y FROM TABLE(TUMBLE(TABLE air, DESCRIPTOR(ts), INTERVAL '{}' MINUTE)) "
    "GROUP BY k, window_start, window_end HAVING avg(x) > 10;"
)


def join(seconds: int, options: str = "", more: str = "") -> str:
    near = f"s.ts BETWEEN a.ts - INTERVAL '{seconds}' SECOND AND a.ts + INTERVAL '{seconds}' SECOND"
    reads = f"FROM air a JOIN surface s ON a.k = s.k AND {near}"
    return f"ALERT pair {options} AS SELECT a.k {reads} WHERE a.x - s.x >= 0 {more};"


def applied(registry: Registry, sql: str) -> list[Any]:
    outcomes, change = registry.apply(sql, 0)
    registry.done(change, 0)
    return outcomes


def replaces(registry: Registry, sql: str) -> Any:
    (query,) = registry.explain(sql)
    return query.get("replaces")


@pytest.fixture
def registry() -> Registry:
    made = started()
    applied(made, STREAMS + "".join(f"CREATE {one}" for one in (ONE, MEAN.format(1), join(10))))
    return made


def test_what_is_said_of_a_join_is_what_applying_it_does(registry: Registry) -> None:
    made = "CREATE OR REPLACE " + join(30, "WITH (gap = '5 minutes', severity = 'high')", "AND a.x > 20")
    (old,) = (one for one in registry.plan.definitions if one.alert == "pair")
    said = replaces(registry, made)
    version = registry.plan.version
    applied(registry, made)
    assert (registry.plan.version, registry.plan.retiring) == (version + 1, {"pair@2": version + 1})
    (new,) = (one for one in registry.plan.definitions if one.alert == "pair" and one.version == version + 1)
    assert said["plan"] == 2 == old.version
    topics = [(was.topic, now.topic) for was, now in zip(old.inputs, new.inputs, strict=True)]
    assert topics == [("tamis.stream.air.1",) * 2, ("tamis.stream.surface.1",) * 2]
    assert [(was.interval, now.interval) for was, now in zip(old.inputs, new.inputs, strict=True)] == [
        (20_000_000, 60_000_000)
    ] * 2
    assert said["changes"] == [
        "air as a: topic tamis.stream.air.1 stays",
        "air as a: the filter of edges is empty and becomes x > 20",
        "air as a: the omission interval is 20 s and becomes 60 s",
        "surface as s: topic tamis.stream.surface.1 stays",
        "surface as s: the omission interval is 20 s and becomes 60 s",
        f"the bound of its memory is {old.bound} and becomes {new.bound}",
        "option gap is not set and becomes 300 s",
        "option severity is not set and becomes high",
    ]
    assert span(old) == 10_000_000
    begins, retained, state, episodes = said["transition"]
    assert begins.startswith("the new definition begins with the next plan")
    assert "while pair@2 runs on, edges retain what either definition needs" in retained
    assert state.startswith("the old definition, pair@2, keeps its live tuples")
    assert state.endswith("partners are at most 10 s apart")
    assert episodes.startswith("open episodes stay open")


def test_another_topic_is_told(registry: Registry) -> None:
    made = "CREATE OR REPLACE " + join(10).replace("a.k = s.k", "a.x = s.x")
    changes = replaces(registry, made)["changes"]
    applied(registry, made)
    new = max((one for one in registry.plan.definitions if one.alert == "pair"), key=lambda one: one.version)
    assert [(one.topic, one.partition_key) for one in new.inputs] == [
        ("tamis.stream.air.3", ("x",)),
        ("tamis.stream.surface.2", ("x",)),
    ]
    assert changes[0] == "air as a: topic tamis.stream.air.1 becomes tamis.stream.air.3"
    assert "air as a: the partition key is k and becomes x" in changes


def test_an_alert_over_one_stream_and_one_of_windows(registry: Registry) -> None:
    one = replaces(registry, "CREATE OR REPLACE " + ONE.replace("30", "50"))
    assert one["changes"][1:] == [
        "air: the filter of edges is x > 30 and becomes x > 50",
        "the bound of its memory stays 0",
    ]
    assert "one@2, decides about earlier readings, and ends when all shards" in one["transition"][2]
    mean = replaces(registry, "CREATE OR REPLACE " + MEAN.format(5))
    assert "mean@2, keeps its state, counts the earlier readings" in mean["transition"][2]
    assert mean["transition"][2].endswith("; windows that are open then give no row of it")
    assert mean["transition"][3].startswith("the new definition begins without state")


def test_the_page_on_explain_shows_what_is_said_of_the_first_query(
    capsys: pytest.CaptureFixture[str],
) -> None:
    *_, page = re.findall(r"```text\n(.*?)```", (ROOT / "docs/explain.md").read_text(), re.DOTALL)
    fleet, text = started(), (ROOT / "demo/first/alerts.sql").read_text()
    applied(fleet, text)
    alert = text[text.index("CREATE ALERT") :].replace("CREATE", "CREATE OR REPLACE").replace("'30'", "'60'")
    show_outcome({"result": "explained", "explain": {"queries": fleet.explain(alert)}})
    assert capsys.readouterr().out.endswith(page)
    assert page.startswith("  replaces condensation of plan 2\n")


@pytest.mark.parametrize("replace", ["CREATE OR REPLACE", "CREATE"])
def test_the_statement_explain_says_the_same_and_changes_nothing(registry: Registry, replace: str) -> None:
    made = ONE.replace("30", "50")
    said = replaces(registry, "CREATE OR REPLACE " + made)
    version, service = registry.plan.version, registry.state.alert("one")
    (outcome,) = applied(registry, f"EXPLAIN {replace} {made}")
    assert outcome.explained is not None and outcome.explained["replaces"] == said
    assert replaces(registry, f"EXPLAIN {replace} {made}") == said
    assert (registry.plan.version, registry.state.alert("one")) == (version, service)
    assert registry.state.catalog.alerts["one"].sql == f"CREATE {ONE}".rstrip(";")


def test_a_new_alert_that_is_only_explained_has_topics_too(registry: Registry) -> None:
    (outcome,) = applied(registry, "EXPLAIN CREATE ALERT new AS SELECT k FROM air WHERE x > 40;")
    assert outcome.explained is not None and "replaces" not in outcome.explained
    sharing = outcome.explained["streams"][0]["sharing"]
    assert sharing["topic"] == "tamis.stream.air.1"
    assert "one" in [reader["name"] for reader in sharing["needs_all"]]


def test_the_same_alert_replaces_nothing(registry: Registry) -> None:
    assert replaces(registry, "CREATE OR REPLACE " + ONE) is None
    assert replaces(registry, "EXPLAIN one;") is None


def test_a_paused_alert_stays_paused(registry: Registry) -> None:
    applied(registry, "PAUSE ALERT one;")
    said = replaces(registry, "CREATE OR REPLACE " + ONE.replace("AS", "WITH (gap = '2 minutes') AS"))
    assert said["changes"] == ["option gap is not set and becomes 120 s"]
    (paused,) = said["transition"]
    assert paused.startswith("the alert is paused, and stays paused")


def test_an_alert_with_history_is_refused_as_applying_it_is(registry: Registry) -> None:
    made = "CREATE OR REPLACE ALERT one WITH (from = 'earliest') AS SELECT k FROM air WHERE x > 30;"
    for text in (made, f"EXPLAIN {made}"):
        with pytest.raises(TamisError) as refused:
            registry.explain(text)
        assert isinstance(refused.value, Conflict) and "can't be replaced" in str(refused.value)


def test_the_terminal_has_it_in_short_lines(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    (query,) = registry.explain("CREATE OR REPLACE " + join(30))
    show_outcome({"result": "explained", "explain": {"queries": [query]}})
    _, found, told = capsys.readouterr().out.partition("  replaces pair of plan 2\n")
    lines = told.splitlines()
    assert found and max(map(len, lines)) <= 100
    assert lines[0] == "    air as a: topic tamis.stream.air.1 stays"
    assert " ".join(line.strip() for line in lines).endswith(query["replaces"]["transition"][-1])


@pytest.mark.parametrize(("sql", "unit"), [(MEAN.format(5), "entries"), (join(30), "tuples")])
def test_the_terminal_words_the_bound_as_tamis_explain_does(
    registry: Registry, capsys: pytest.CaptureFixture[str], sql: str, unit: str
) -> None:
    (query,) = registry.explain("CREATE OR REPLACE " + sql)
    show_outcome({"result": "explained", "explain": {"queries": [query]}})
    assert f"  memory bounded, at most {query['memory']['bound']} {unit}\n" in capsys.readouterr().out
