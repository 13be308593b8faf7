"""Queries whose conditions contradict each other at the registry: refused, and shown by EXPLAIN."""

from __future__ import annotations

import pytest
from tests.unit.registry.test_leases import started

from tamis.errors import NotAcceptedError
from tamis_registry.core.state.records import records, recover

AIR = (
    "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10),"
    " WATERMARK FOR ts AS ts);"
)
NEVER = "x > 10 (line 1, column {}) is never true for values of the declared domains: air.x is at most 10"


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("CREATE ALERT q AS SELECT k FROM air WHERE x > 10;", 43),
        ("CREATE STREAM q AS SELECT k, ts FROM air WHERE x > 10;", 48),
    ],
)
def test_they_are_refused_and_explained(statement: str, column: int) -> None:
    registry = started()
    registry.done(registry.apply(AIR, 0)[1], 0)
    with pytest.raises(NotAcceptedError) as refused:
        registry.apply(statement, 0)
    assert NEVER.format(column) in str(refused.value)
    (query,) = registry.explain(statement)
    assert query["accepted"] is False
    assert (query["memory"]["verdict"], query["memory"]["bound"]) == ("bounded", 0)
    assert NEVER.format(column) in query["memory"]["reason"]


@pytest.mark.parametrize(("condition", "instead"), [("x = NULL", "IS NULL"), ("x <> NULL", "IS NOT NULL")])
def test_a_comparison_with_null_is_refused_with_the_test_for_null(condition: str, instead: str) -> None:
    registry = started()
    registry.done(registry.apply(AIR, 0)[1], 0)
    with pytest.raises(NotAcceptedError) as refused:
        registry.apply(f"CREATE ALERT q AS SELECT k FROM air WHERE {condition};", 0)
    assert f"compares with NULL, which is never true (write air.x {instead})" in str(refused.value)
    (query,) = registry.explain(f"CREATE ALERT q AS SELECT k FROM air WHERE {condition};")
    never = {"share": 0.0, "estimated_from": "its own conditions, which no tuple meets"}
    assert query["streams"][0]["selectivity"] == never
    (query,) = registry.explain(f"CREATE ALERT q AS SELECT k FROM air WHERE {condition} OR x > 9;")
    assert f"is never true, as every comparison with NULL: write air.x {instead}" in str(query)


@pytest.mark.parametrize("condition", ["x > NULL", "x <= NULL", "x BETWEEN NULL AND 3"])
def test_the_order_beside_null_is_refused_without_a_word_about_domains(condition: str) -> None:
    registry = started()
    registry.done(registry.apply(AIR, 0)[1], 0)
    with pytest.raises(NotAcceptedError) as refused:
        registry.apply(f"CREATE ALERT q AS SELECT k FROM air WHERE {condition};", 0)
    assert f"{condition} (line 1, column 43) compares with NULL, which is never true, so" in str(
        refused.value
    )
    (query,) = registry.explain(f"CREATE ALERT q AS SELECT k FROM air WHERE {condition} OR x > 9;")
    assert "is never true, as every comparison with NULL" in str(query)


def test_one_from_an_earlier_release_is_refused_after_the_upgrade() -> None:
    registry = started()
    registry.done(registry.apply(AIR + "CREATE ALERT q AS SELECT k FROM air WHERE x > 9;", 0)[1], 0)
    kept = {key: value.replace(b"x > 9", b"x > 10") for key, value in records(registry.state).items()}
    again = started(recover(kept))
    assert NEVER.format(43) in str(again.state.statements["alert/q"].refusal)
    assert again.plan.definitions == ()
