"""Implied predicates of example queries, in plans and in what EXPLAIN says."""

from __future__ import annotations

import re

import pytest

from tamis.errors import NotAcceptedError
from tamis.expressions.sql_text import to_sql
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text
from tamis.planning.join_verdict import judge
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

_STREAMS = "".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, w DOUBLE,"
    " p DOUBLE CHECK (p BETWEEN 0 AND 100), n INT, m BIGINT,"
    " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 10, rate = '1/s');\n"
    for name in ("sa", "sb", "sc")
)


def _catalog(where: str) -> Catalog:
    return catalog_of(
        f"{_STREAMS}CREATE ALERT q AS SELECT a.ts FROM sa a, sb b, sc c WHERE a.k = b.k AND b.k = c.k"
        " AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND AND ABS(b.ts - c.ts) <= INTERVAL '5' SECOND"
        f" AND {where}"
    )


@pytest.mark.parametrize(
    ("where", "implied"),
    [
        ("a.v > 10 AND b.v > a.v + 5", {"b": "v > 15"}),
        ("a.v > 10 AND b.v > a.v + 5 AND c.v > 2 * b.v - 0.1", {"b": "v > 15", "c": "v > 29.9"}),
        ("b.v > a.v + 5 AND b.v < 100", {"a": "v < 95"}),
        ("ABS(a.v - b.v) < 3 AND a.v BETWEEN 10 AND 20", {"b": "v < 23 AND v > 7"}),
        ("a.k = 'x'", {"b": "k = 'x'", "c": "k = 'x'"}),
        ("a.n > 3 AND b.n >= a.n + 2 AND b.m > b.n AND a.m = b.m", {"a": "m > 5", "b": "n > 5 AND m > 5"}),
        ("a.v - a.w > b.v AND b.v > 3", {"a": "w - v <= -3"}),
        ("b.p > a.p + 50", {"a": "p < 50", "b": "p > 50"}),
        ("b.p > a.p + 5", {}),  # too little to be worthwhile
        ("a.v > b.v", {}),
        ("a.v > 10 AND (b.v > a.v OR c.v > 1)", {}),
        ("a.v > 10 AND b.v > sqrt(a.v)", {}),
    ],
)
def test_examples(where: str, implied: dict[str, str]) -> None:
    analysis = judge(_catalog(where).alerts["q"], _catalog(where)).analysis
    found = {
        alias: " AND ".join(to_sql(one).replace(f"{alias}.", "") for one in parts)
        for alias, parts in analysis.implied.items()
    }
    assert {alias: text for alias, text in found.items() if alias in implied} == implied
    assert implied or not found
    assert analysis.contradiction is None


def test_edges_and_joiner_filter_by_them() -> None:
    plan = first_plan(_catalog("a.v > 10 AND b.v > a.v + 5"))
    (stream,) = (stream for stream in plan.streams if stream.name == "sb")
    ((entry,),) = (topic.entries for topic in stream.topics)
    assert entry.filter is not None
    assert "v > 15" in to_sql(entry.filter)
    (definition,) = plan.definitions
    assert [None if one.filter is None else to_sql(one.filter) for one in definition.inputs] == [
        "a.v > 10",
        "b.v > 15",
        None,
    ]


def test_explain_says_what_is_implied() -> None:
    explained = explain(_catalog("a.v > 10 AND b.v > a.v + 5"), "q")
    assert "the other conditions imply v > 15" in text(explained)
    first, second, _ = explained.document()["streams"]
    assert (first["predicate"], second["predicate"]) == ("v > 10", None)
    assert "The other conditions imply v > 15" in second["omission"]["reason"]


def test_contradictions_are_named() -> None:
    catalog = _catalog("a.v > 10 AND c.w > 1 AND b.v > a.v AND b.v < 5")
    explained = explain(catalog, "q")
    assert not explained.accepted
    assert (explained.memory.verdict, explained.memory.bound) == ("bounded", 0)
    assert _without_places(explained.reason) == (
        "no tuples meet all of a.v > 10, b.v < 5, b.v > a.v, so the query never has a row"
    )
    with pytest.raises(NotAcceptedError, match=r"a\.v > 10 \(line 4, column \d+\), "):
        first_plan(catalog)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("a.p > b.p + 200", "a.p is at most 100 and b.p + 200 is at least 200"),
        ("a.p + b.p > 250", "a.p + b.p is at most 200"),
        ("a.p + b.p >= 200", None),
        ("300 < a.p + b.p", "a.p + b.p is at most 200"),
        ("a.p - b.p < -100", "a.p - b.p is at least -100"),
        ("a.p * 2 = b.p + 300", "a.p * 2 is at most 200 and b.p + 300 is at least 300"),
        ("a.p > 100", "a.p is at most 100"),
        ("a.p IS NULL", None),
    ],
)
def test_a_domain_may_contradict_a_condition(where: str, told: str | None) -> None:
    explained = explain(_catalog(where), "q")
    assert explained.accepted is (told is None)
    never = "is never true for values of the declared domains: "
    assert told is None or explained.reason.partition(never)[2] == f"{told}, so the query never has a row"


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("a.p > 30 AND a.w < 3 AND a.p < 20", ["a.p > 30", "a.p < 20"]),
        ("a.v + a.w > 10 AND a.v < 3 AND a.w < 3", ["a.v + a.w > 10", "a.v < 3", "a.w < 3"]),
        ("a.k = 'x' AND a.v > 3 AND a.k <> 'x'", ["a.k = 'x'", "a.k <> 'x'"]),
        ("a.v IS NULL AND a.v > a.w AND a.v > 1", ["a.v IS NULL", "a.v > 1"]),
        ("a.v > 3 OR a.v < 2", []),
    ],
)
def test_a_query_of_one_stream_may_contradict_itself(where: str, named: list[str]) -> None:
    catalog = catalog_of(f"{_STREAMS} CREATE ALERT q AS SELECT a.k FROM sa a WHERE {where};")
    explained = explain(catalog, "q")
    assert explained.accepted is not bool(named)
    said = f"no tuples meet all of {', '.join(named)}, so the query never has a row"
    assert not named or _without_places(explained.reason) == said


def _without_places(reason: str) -> str:
    return re.sub(r" \(line \d+, column \d+\)", "", reason)
