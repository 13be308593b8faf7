"""Columns with few values, by a CHECK or by a condition, count as such in every kind of standing query."""

from __future__ import annotations

import pytest

from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

SIX = "CHECK (state IN (0, 1, 2, 3, 4, 5))"
QUERIES = {
    "session": "SELECT k, window_end, count(DISTINCT state) AS n FROM SESSION(m, ts, INTERVAL '5' MINUTE)"
    " GROUP BY k, window_end",
    "median": "SELECT k, window_end, median(state) AS n FROM SESSION(m, ts, INTERVAL '5' MINUTE)"
    " GROUP BY k, window_end",
    "groups": "SELECT k, state, count(*) AS n FROM SESSION(m, ts, INTERVAL '5' MINUTE)"
    " GROUP BY k, window_end, state",
    "latest": "SELECT a.k, a.ts FROM m a ASOF JOIN m b ON a.state = b.state AND a.ts >= b.ts",
    "window": "SELECT state, window_end, count(*) AS n FROM TUMBLE(m, ts, INTERVAL '5' MINUTE)"
    " GROUP BY state, window_end",
    "distinct": "SELECT DISTINCT state FROM m",
    "union": "SELECT state FROM m UNION SELECT state FROM m WHERE k <> 'x'",
}
# Each alternative of the CHECK has a bound of its own.
BY_ALTERNATIVES = {
    "some of them": "SELECT DISTINCT state FROM m WHERE state <> 3",
    "self-join": "SELECT DISTINCT a.state FROM m a JOIN m b ON a.k = b.k AND a.ts <= b.ts WHERE a.k = 'x'",
}


def bound(column: str, query: str) -> int | None:
    catalog = catalog_of(
        f"CREATE STREAM m (k VARCHAR KEY, ts TIMESTAMP, {column},"
        " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
        f" WITH (keys = 3, rate = '1/s', max_stall = '1 minute'); CREATE ALERT q AS {query};"
    )
    found = explain(catalog, catalog.alerts["q"])
    return found.memory.bound if found.accepted else None


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("null", ["", " NOT NULL"])
def test_six_values_of_a_double_are_as_few_as_six_whole_numbers(query: str, null: str) -> None:
    whole = bound(f"state INT {SIX}{null}", query)
    assert whole is not None
    assert bound(f"state DOUBLE {SIX}{null}", query) == whole
    written_out = SIX.replace("state IN (0, 1, 2, 3, 4, 5)", " OR ".join(f"state = {n}" for n in range(6)))
    assert bound(f"state DOUBLE {written_out}{null}", query) == whole


@pytest.mark.parametrize("query", BY_ALTERNATIVES.values(), ids=BY_ALTERNATIVES)
def test_each_listed_value_of_a_double_is_an_alternative(query: str) -> None:
    assert bound(f"state DOUBLE {SIX}", query) is not None
    assert bound("state DOUBLE CHECK (state BETWEEN 0 AND 5)", query) is None


@pytest.mark.parametrize("query", ["session", "median", "groups", "latest", "distinct", "union"])
def test_a_range_of_doubles_has_no_limit(query: str) -> None:
    assert bound("state DOUBLE CHECK (state BETWEEN 0 AND 5)", QUERIES[query]) is None


@pytest.mark.parametrize(
    ("type_", "values"), [("VARCHAR", "'a', 'b', 'c'"), ("BIGINT", "1, 2, 3"), ("DOUBLE", "1, 2, 3")]
)
@pytest.mark.parametrize(
    "form",
    ["state) FILTER (WHERE state IN ({}))", "CASE WHEN state IN ({}) AND k <> 'x' THEN state END)"],
)
def test_a_condition_leaves_few_values(type_: str, values: str, form: str) -> None:
    counted = f"count(DISTINCT {form.format(values)} AS n"
    query = f"SELECT k, window_end, {counted} FROM SESSION(m, ts, INTERVAL '5' MINUTE) GROUP BY k, window_end"
    assert bound(f"state {type_}", query) is not None
    assert bound(f"state {type_}", query.replace(" IN (", " NOT IN (")) is None


@pytest.mark.parametrize(
    "condition",
    ["(1 = 2 OR v = 3)", "(v = 3 OR NULL)", "(v = 3 AND 1 < 2 OR 1 IN (2, 3))", "NOT (v < 3 OR v > 3)"],
)
def test_a_disjunction_with_one_alternative_is_a_conjunction(condition: str) -> None:
    catalog = catalog_of(
        "CREATE STREAM m (k VARCHAR, v INT);"
        f" CREATE ALERT q AS SELECT DISTINCT k, v FROM m WHERE {condition} AND k IN ('p', 'q');"
    )
    found = explain(catalog, catalog.alerts["q"])
    assert (found.accepted, found.memory.bound) == (True, 2)
