"""Classification of conjuncts: key equalities, time bounds, filters, and the condition."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import SECOND, TWO, verdict_of

from tamis.errors import RefusedError
from tamis.expressions.sql_text import to_sql
from tamis.planning.join_verdict import accepted
from tamis.query.parse import catalog_of


@pytest.mark.parametrize(
    ("on", "lo", "hi"),
    [
        ("a.ts BETWEEN b.ts - INTERVAL '5' SECOND AND b.ts + INTERVAL '3' SECOND", -5, 3),
        ("b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '3' SECOND", -3, 5),
        ("a.ts >= b.ts AND a.ts <= b.ts + INTERVAL '3' SECOND", 0, 3),
        ("b.ts <= a.ts AND a.ts - INTERVAL '3' SECOND <= b.ts", 0, 3),
        ("ABS(a.ts - b.ts) <= INTERVAL '4' SECOND", -4, 4),
        ("INTERVAL '4' SECOND >= ABS(b.ts - a.ts)", -4, 4),
        ("a.ts = b.ts", 0, 0),
        ("a.ts - b.ts = INTERVAL '2' SECOND", 2, 2),
        ("a.ts > b.ts", 1e-6, None),
        ("a.ts < b.ts", None, -1e-6),
        ("ABS(a.ts - b.ts) < INTERVAL '4' SECOND", -4 + 1e-6, 4 - 1e-6),
        ("NOT a.ts > b.ts + INTERVAL '1' SECOND AND a.ts >= b.ts", 0, 1),
        ("a.ts <= b.ts + INTERVAL '9' SECOND AND a.ts <= b.ts + INTERVAL '3' SECOND", None, 3),
    ],
)
def test_time_bounds(on: str, lo: float | None, hi: float | None) -> None:
    (bound,) = verdict_of("", on=on).analysis.bounds
    assert (bound.left, bound.right) == ("a", "b")
    assert bound.lo == (None if lo is None else round(lo * SECOND))
    assert bound.hi == (None if hi is None else round(hi * SECOND))


def test_conjuncts_are_sorted() -> None:
    analysis = verdict_of(
        "a.x + b.x > 3 AND a.x > 1 AND b.flag AND a.mode <> b.mode AND a.ts > TIMESTAMP '2020-01-01 00:00:00'"
        " AND a.k2 = b.n"
    ).analysis
    assert [(x.name, y.name) for x, y in analysis.equalities] == [("k", "k"), ("k2", "n")]
    assert [to_sql(f) for f in analysis.filters["a"]] == ["a.x > 1", "a.ts > TIMESTAMP '2020-01-01 00:00:00'"]
    assert [to_sql(f) for f in analysis.filters["b"]] == ["b.flag"]
    assert [to_sql(f) for f in analysis.conditions] == ["a.x + b.x > 3", "a.mode != b.mode"]


@pytest.mark.parametrize(
    "condition",
    [
        "a.ts <> b.ts",
        "ABS(a.ts - b.ts) >= INTERVAL '4' SECOND",
        "ABS(a.ts - b.ts) = INTERVAL '4' SECOND",
        "(a.ts < b.ts OR a.x > b.x)",
    ],
)
def test_other_comparisons_of_times_are_refused_with_their_place(condition: str) -> None:
    verdict = verdict_of(f"a.x > b.x AND {condition}")
    (error,) = verdict.analysis.refused
    assert error.position is not None
    assert "doesn't limit the difference of the event times to one range" in str(verdict.refusal)
    catalog = catalog_of(TWO, f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON a.k = b.k WHERE {condition}")
    with pytest.raises(RefusedError, match=r"alert q: .*line 1, column"):
        accepted(catalog.alerts["q"], catalog)


def test_one_time_may_stand_in_the_condition() -> None:
    verdict = verdict_of("a.ts < b.expiry AND a.x > b.x")
    assert verdict.refusal is None
    first, second = verdict.omissions
    assert first.interval == 0
    assert "the condition contains its event time" in first.reason
    assert second.key == ("k", "expiry")


@pytest.mark.parametrize(
    "condition",
    ["1 > 2", "NULL", "a.ts > b.ts + INTERVAL '6' SECOND"],
)
def test_what_never_holds_is_refused_with_bound_0(condition: str) -> None:
    verdict = verdict_of(condition)
    assert verdict.refusal == verdict.memory.reason
    assert (verdict.memory.verdict, verdict.memory.bound) == ("bounded", 0)
    assert "(line 1, column" in verdict.memory.reason
    assert verdict.memory.reason.endswith("so the query never has a row")
    assert all(omission.interval == 0 for omission in verdict.omissions)


def test_bounds_that_contradict_each_other_over_three_streams() -> None:
    on = "a.ts > b.ts JOIN c ON b.ts > c.ts AND c.ts > a.ts"
    verdict = verdict_of("", on=on)
    assert verdict.memory.bound == 0
    assert verdict.refusal is not None and "no event times meet all of " in verdict.refusal
    assert all(part in verdict.refusal for part in ("a.ts > b.ts", "b.ts > c.ts", "c.ts > a.ts"))


def test_a_constant_that_holds_changes_nothing() -> None:
    assert verdict_of("1 < 2 AND a.x > b.x").omissions == verdict_of("a.x > b.x").omissions
