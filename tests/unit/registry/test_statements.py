"""SQL texts in the registry: applied whole or not at all, applied again, and refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.errors import SqlErrors
from tamis.query.model import Drop
from tamis_registry.core.errors import MissingError
from tamis_registry.core.state.records import recover
from tamis_registry.core.statements.catalog_changes import Conflict
from tamis_registry.core.statements.outcomes import UnboundedError

AIR = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"


def alert(name: str, above: int = 5, head: str = "CREATE ALERT", options: str = "") -> str:
    return (
        f"{head} {name} {options} AS SELECT a.k, a.v FROM air a JOIN surface s ON a.k = s.k AND s.ts BETWEEN "
        f"a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND WHERE a.v + s.v > {above};"
    )


def replace(name: str, above: int) -> str:
    return alert(name, above, "CREATE OR REPLACE ALERT")


def conflicts(error: pytest.ExceptionInfo[SqlErrors]) -> bool:
    return all(isinstance(e, Conflict) for e in error.value.errors)


def test_a_text_makes_one_plan(fleet: Any) -> None:
    before = fleet.version
    outcomes = fleet.sql(alert("q") + alert("r"))
    assert [(o.result, o.name) for o in outcomes] == [("created", "q"), ("created", "r")]
    assert fleet.version == before + 1
    assert [(d.alert, d.version) for d in fleet.plan.definitions] == [("q", before + 1), ("r", before + 1)]


def test_topics_are_named_by_the_change_before_its_plan(fleet: Any) -> None:
    _, change = fleet.registry.apply(alert("q"), 0)
    assert change.topics == ("tamis.stream.air.1", "tamis.stream.surface.1")
    fleet.perform(change)
    _, change = fleet.registry.apply(alert("r"), 0)
    assert change.topics == ()


def test_nothing_of_a_text_with_a_mistake(fleet: Any) -> None:
    before, statements = fleet.version, dict(fleet.statements)
    with pytest.raises(SqlErrors):
        fleet.sql(alert("q") + "CREATE ALERT r AS SELECT nothing FROM nowhere;")
    with pytest.raises(UnboundedError):
        fleet.sql(alert("q") + alert("unbounded"))
    assert (fleet.version, fleet.statements) == (before, statements)
    assert fleet.registry.state.catalog.alerts == {}


def test_the_same_again_is_unchanged_and_makes_no_plan(fleet: Any) -> None:
    fleet.sql(alert("q"))
    before, statements = fleet.version, dict(fleet.statements)
    outcomes = fleet.sql(
        AIR.replace(" ", "\n  ") + alert("q").replace("a.v + s.v", "a.v  +  s.v") + replace("q", 5)
    )
    assert [o.result for o in outcomes] == ["unchanged"] * 3
    assert (fleet.version, fleet.statements) == (before, statements)


def test_a_changed_alert_needs_or_replace(fleet: Any) -> None:
    fleet.sql(alert("q"))
    with pytest.raises(SqlErrors, match="OR REPLACE") as error:
        fleet.sql(alert("q", 6))
    assert conflicts(error)


def test_what_is_in_service_is_kept_where_that_is_asked_for(fleet: Any) -> None:
    """As `tamis up` does with the directory of a fleet that was changed while it ran."""
    fleet.sql(alert("q") + alert("r") + alert("s"))
    fleet.sql(replace("q", 6) + "PAUSE ALERT r; DROP ALERT s;")
    before = fleet.version
    text = AIR + alert("q") + replace("q", 7) + "RESUME ALERT r;" + alert("new")
    outcomes, change = fleet.registry.apply(text, 0, "alerts.sql", keep=True)
    fleet.perform(change)
    assert [o.result for o in outcomes] == ["unchanged", "kept", "kept", "kept", "created"]
    kept = outcomes[1].kept
    assert "> 6" in kept.in_service and "> 5" in kept.asked and kept.where == "alerts.sql:1:96"
    assert (outcomes[3].kept.in_service, outcomes[3].kept.asked) == ("PAUSE ALERT r", "RESUME ALERT r")
    assert [(d.alert, d.version) for d in fleet.plan.definitions if d.alert == "new"] == [("new", before + 1)]
    assert fleet.registry.state.retiring.keys() == {"q@3"} and fleet.registry.state.catalog.paused == {"r"}
    again, change = fleet.registry.apply("DROP ALERT q; DROP ALERT s;", 0, "alerts.sql", keep=True)
    assert [(o.result, o.name) for o in again] == [("kept", "q"), ("unchanged", "s")]
    assert change.built is None


def test_a_changed_stream_is_refused_and_altered_instead(fleet: Any) -> None:
    with pytest.raises(SqlErrors, match="ALTER STREAM air") as error:
        fleet.sql(AIR.replace("v DOUBLE", "w DOUBLE"))
    assert conflicts(error)


def test_what_others_read_stays_and_they_are_named(fleet: Any) -> None:
    fleet.sql(
        "CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x + 1;"
        "CREATE STREAM warm AS SELECT * FROM air WHERE v > 20;"
        "CREATE ALERT q AS SELECT k FROM warm WHERE f(v) > 30;"
    )
    for text, reader in (
        ("STREAM air", "stream 'warm'"),
        ("STREAM warm", "alert 'q'"),
        ("FUNCTION f", "alert 'q'"),
    ):
        with pytest.raises(SqlErrors, match=reader) as error:
            fleet.sql(f"DROP {text};")
        assert conflicts(error)
    fleet.sql("DROP ALERT q; DROP STREAM warm; DROP FUNCTION f;")
    assert {s.name for s in fleet.registry.state.statements.values()} == {"air", "surface"}


def test_dropping_what_is_not_there(fleet: Any) -> None:
    with pytest.raises(MissingError, match="no alert 'q'"):
        fleet.registry.take([Drop("alert", "q")], 0)


def test_unbounded_needs_permission(fleet: Any) -> None:
    with pytest.raises(UnboundedError, match="unbounded: its name") as error:
        fleet.sql(alert("unbounded"))
    assert error.value.query.document()["memory"]["repairs"] == ["another name"]
    assert error.value.hint == "it would be bounded with: another name"
    fleet.sql(alert("unbounded", options="WITH (allow_unbounded = true)"))
    assert [d.alert for d in fleet.plan.definitions] == ["unbounded"]


def test_pause_ends_the_definition_and_resume_makes_a_new_one(fleet: Any) -> None:
    fleet.sql(alert("q"))
    made = fleet.version
    assert fleet.sql("PAUSE ALERT q;")[0].result == "paused"
    assert fleet.plan.definitions == ()
    assert fleet.sql("PAUSE ALERT q;")[0].result == "unchanged"
    fleet.start()
    assert fleet.registry.state.alert("q").paused
    assert fleet.sql("RESUME ALERT q;")[0].result == "resumed"
    assert [(d.alert, d.version) for d in fleet.plan.definitions] == [("q", fleet.version)]
    assert fleet.version > made


def test_replacing_a_paused_alert_keeps_it_paused(fleet: Any) -> None:
    fleet.sql(alert("q") + "PAUSE ALERT q;" + replace("q", 7))
    assert fleet.plan.definitions == () and fleet.plan.retiring == {}
    fleet.sql("RESUME ALERT q;")
    assert len(fleet.plan.definitions) == 1


def test_a_dropped_streams_topics_are_never_used_again(fleet: Any) -> None:
    fleet.sql(alert("q"))
    fleet.sql("DROP ALERT q; DROP STREAM air;")
    fleet.start()
    fleet.sql(AIR + alert("q"))
    assert [t.name for t in fleet.plan.stream("air").topics] == ["tamis.stream.air.2"]
    assert [t.name for t in fleet.plan.stream("surface").topics] == ["tamis.stream.surface.1"]


def test_show_and_explain_change_nothing(fleet: Any) -> None:
    fleet.sql(alert("q"))
    before = fleet.version
    outcomes = fleet.sql("SHOW ALERTS; SHOW STREAMS; EXPLAIN q; EXPLAIN SELECT k FROM air WHERE v > 3;")
    assert [o.shows for o in outcomes[:2]] == ["alerts", "streams"]
    assert [o.explained["name"] for o in outcomes[2:] if o.explained] == ["q", "line 1"]
    assert fleet.version == before
    assert [q["name"] for q in fleet.registry.explain(alert("r") + "EXPLAIN q;")] == ["r", "q"]
    assert fleet.version == before and fleet.registry.state.alert("r") is None


def test_queries_without_a_name_are_called_as_on_the_command_line(fleet: Any) -> None:
    bare = "EXPLAIN SELECT k FROM air WHERE v > 3;"
    text = f"\n{bare}\n{bare} {bare}\n"
    made = CliRunner().invoke(main, ["explain", "-", "--json"], input=AIR + text)
    names = [query["name"] for query in orjson.loads(made.stdout)["queries"]]
    assert names == ["line 2", "line 3", "line 3, column 40"]
    assert [query["name"] for query in fleet.registry.explain(text)] == names


def test_a_replaced_definition_keeps_what_it_reads(fleet: Any) -> None:
    fleet.sql("CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS x + 1;")
    fleet.sql("CREATE ALERT q AS SELECT k FROM air WHERE f(v) > 30;")
    fleet.sql("CREATE OR REPLACE ALERT q AS SELECT k FROM air WHERE v > 30;")
    with pytest.raises(Conflict, match="replaced definition of alert 'q'"):
        fleet.sql("DROP FUNCTION f;")


def test_everything_is_recovered_from_the_statements(fleet: Any) -> None:
    fleet.sql(alert("q") + alert("r") + "PAUSE ALERT r;")
    fleet.join("air")
    fleet.sql(replace("q", 9))
    state, plan = fleet.registry.state, fleet.plan
    assert recover(fleet.statements) == state
    fleet.start()
    assert fleet.version == plan.version + 1
    after = fleet.registry.state
    assert (after.statements, after.retiring, after.shards) == (
        state.statements,
        state.retiring,
        state.shards,
    )
    assert after.catalog.alerts.keys() == {"q", "r"} and after.catalog.paused == {"r"}
    assert fleet.plan.definitions == plan.definitions and fleet.plan.retiring == plan.retiring


def test_what_can_no_longer_be_obeyed_is_refused_and_can_be_dropped(fleet: Any) -> None:
    fleet.sql(alert("q") + alert("r"))
    fleet.statements[b"alert/q"] = fleet.statements[b"alert/q"].replace(b"FROM air a", b"FROM gone a")
    fleet.start()
    assert [d.alert for d in fleet.plan.definitions] == ["r"]
    assert "gone" in fleet.registry.state.alert("q").refusal
    _, change = fleet.registry.take([Drop("alert", "q")], 0)
    fleet.perform(change)
    assert b"alert/q" not in fleet.statements
