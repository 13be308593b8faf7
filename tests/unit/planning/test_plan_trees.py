"""Physical plans for people: golden texts of each kind of query, and that nothing of the plan is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.planning.plan_samples import SAMPLES, plans_of, sample

from tamis.planning.explanations.text import WIDTH
from tamis.planning.plan_trees.operators import PlanBound, QueryPlan

OPERATORS = {
    *("Scan", "Patterns", "WindowFunctions", "Filter", "Project", "Distinct", "Union", "Table", "TableJoin"),
    *("TimeJoin", "LatestValues", "Windows", "PartialAggregates", "Sessions", "Groups"),
    *("Representatives", "Counts", "ApplicationTime"),
}
# Each of their operators has its part of the bound.
WITHOUT_TIME = ("counts", "groups", "groups_of_a_join", "representatives", "union", "union_all")


def only(sql: str) -> QueryPlan:
    (found,) = plans_of(sql, "q").queries
    return found


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_plan_of_each_kind_of_query(file: Path) -> None:
    sql, wanted = sample(file)
    assert plans_of(sql).text() + "\n" == wanted
    assert all(len(line) <= WIDTH for line in wanted.splitlines())


def test_samples_have_every_operator() -> None:
    roots = [one.root for file in SAMPLES for one in plans_of(sample(file)[0]).queries if one.root]
    assert {one.operator for root in roots for one in root.every()} == OPERATORS
    for one in (one for root in roots for one in root.every()):
        # Only tables and streams have no input, and only edges read streams.
        assert bool(one.inputs) or one.operator in ("Scan", "Table", "Patterns", "WindowFunctions")
        assert one.operator != "Scan" or one.runs == "edge"


@pytest.mark.parametrize("kind", WITHOUT_TIME)
def test_bounds_of_operators_without_time_are_the_bound_of_the_query(kind: str) -> None:
    (file,) = (one for one in SAMPLES if one.stem == kind)
    plan = only(sample(file)[0])
    assert plan.root is not None and plan.bound is not None
    bounds = [one.bound for one in plan.root.every() if one.bound is not None]
    assert sum(one.most or 0 for one in bounds) == plan.bound.most


def test_plan_as_json() -> None:
    plan = only("CREATE ALERT q AS SELECT DISTINCT item FROM bids WHERE item BETWEEN 1 AND 9;")
    assert plan.document() == {
        "name": "q",
        "kind": "alert",
        "accepted": True,
        "reason": None,
        "bound": {"most": 9, "unit": "entries", "formula": "9 (values of bids.item) rows already given"},
        "plan": {
            "operator": "Distinct",
            "runs": "joiner",
            "subject": None,
            "details": [],
            "keeps": "the rows that it has given",
            "bound": {"most": 9, "unit": "entries", "formula": "9 (values of bids.item) rows already given"},
            "inputs": [
                {
                    "operator": "Project",
                    "runs": "joiner",
                    "subject": None,
                    "details": [{"name": "select", "text": "bids.item"}],
                    "keeps": "nothing",
                    "bound": None,
                    "inputs": [
                        {
                            "operator": "Scan",
                            "runs": "edge",
                            "subject": "bids",
                            "details": [
                                {"name": "filter", "text": "item >= 1 AND item <= 9"},
                                {"name": "representatives", "text": "any tuple for each item"},
                                {"name": "columns", "text": "item"},
                                {"name": "topic", "text": "tamis.stream.bids.1"},
                            ],
                            "keeps": "at most 9 representatives in each shard",
                            "bound": None,
                            "inputs": [],
                        }
                    ],
                }
            ],
        },
    }


def test_paused_and_dropped_alerts_are_shown_as_if_they_ran() -> None:
    made = "CREATE ALERT q AS SELECT k FROM air WHERE v > 5;"
    running = only(made)
    assert running.root is not None
    assert only(made + "PAUSE ALERT q;") == only(made + "DROP ALERT q;") == running


def test_refused_queries_beside_it_change_nothing() -> None:
    made = "CREATE ALERT q AS SELECT k FROM air WHERE v > 5;"
    refused = "CREATE ALERT loose AS SELECT b.item FROM bids b, asks a WHERE a.price < b.price;"
    assert only(made + refused) == only(made)


def test_derived_stream_with_a_topic_serves_an_alert() -> None:
    warm = "CREATE STREAM warm AS SELECT k, ts, v FROM air WHERE v > 30;"
    plan = only(warm + "CREATE ALERT q AS SELECT k, v FROM warm WHERE v > 50;")
    assert plan.root is not None
    scans = [one for one in plan.root.every() if one.operator == "Scan"]
    assert [one.subject for one in scans] == ["air as warm"]


def test_alerts_that_edges_must_not_delay_have_no_omission() -> None:
    join = (
        "AS SELECT a.k FROM air a JOIN ground g ON a.k = g.k AND abs(a.ts - g.ts) <= INTERVAL '5' SECOND"
        " WHERE a.v > g.v;"
    )
    texts = {
        options: plans_of(f"CREATE ALERT q {options} {join}").text()
        for options in ("", "WITH (max_delay = '0 seconds')")
    }
    assert ["omission:" in text for text in texts.values()] == [True, False]


def test_bounds_have_no_text_without_number_and_formula() -> None:
    assert PlanBound(None, "tuples").text == ""
    assert PlanBound(3, "tuples").text == "at most 3 tuples"
    assert PlanBound(None, "tuples", "3 * keys").text == "3 * keys"
    assert str(PlanBound(2**70, "tuples").document()["most"]) != "None"
