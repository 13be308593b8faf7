"""The time buckets by which the reference of `tamis verify` joins, and the sources that they connect."""

from __future__ import annotations

import pytest

from tamis.query.model import Query
from tamis.query.parse import catalog_of
from tamis.verification import standing
from tamis.verification.hash_joins import join_windows

STREAMS = "".join(
    f"CREATE STREAM s{name} (k INT KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);" for name in "abcd"
)
SECOND = 1_000_000


def query(where: str, what: str = "") -> Query:
    catalog = catalog_of(
        f"{STREAMS} CREATE ALERT q AS SELECT {what} a.ts FROM sa a, sb b, sc c, sd d WHERE {where}"
    )
    return catalog.alerts["q"].query


def tied(where: str) -> dict[str, tuple[str, int, int]]:
    """Of each source that is tied to another: to which, and the bounds of their difference in seconds."""
    found = join_windows([c.expr for c in query(where).conjuncts], ["a", "b", "c", "d"])
    return {alias: (w.x.alias, w.lo // SECOND, w.hi // SECOND) for alias, w in found.items()}


def near(x: str, y: str, span: int = 5) -> str:
    return f"{x}.ts BETWEEN {y}.ts - INTERVAL '{span}' SECOND AND {y}.ts + INTERVAL '{span}' SECOND"


def test_sources_bounded_from_one_side_each() -> None:
    where = "a.ts <= b.ts AND b.ts <= c.ts AND c.ts <= d.ts AND d.ts <= a.ts + INTERVAL '5' SECOND"
    assert tied(where) == {"b": ("a", -5, 0), "c": ("b", -5, 0), "d": ("c", -5, 0)}


def test_sources_bounded_through_a_third_are_tied_to_it() -> None:
    where = " AND ".join((near("a", "d"), near("b", "d"), near("c", "d")))
    assert tied(where) == {"d": ("a", -5, 5), "b": ("d", -5, 5), "c": ("d", -5, 5)}


def test_a_narrow_way_around_replaces_a_wide_bound() -> None:
    where = " AND ".join((near("a", "b", 90), near("a", "c", 1), near("c", "b", 2)))
    assert tied(where) == {"c": ("a", -1, 1), "b": ("c", -2, 2)}


def test_each_group_of_bounded_sources_has_a_tree_of_its_own() -> None:
    where = " AND ".join((near("a", "c"), near("b", "d")))
    assert tied(where) == {"c": ("a", -5, 5), "d": ("b", -5, 5)}


@pytest.mark.parametrize(
    "where",
    [
        "a.ts <= b.ts AND b.ts <= c.ts",  # nothing bounds them from the other side
        "a.v > b.v OR a.ts = b.ts",
    ],
)
def test_nothing_is_tied_without_a_window(where: str) -> None:
    assert tied(where) == {}


def test_the_reference_of_distinct_rows_is_joined_by_buckets() -> None:
    joined, _, _ = standing._joined(query(f"{near('a', 'd')} AND {near('b', 'd')}", "DISTINCT"), {})
    assert joined.count("AS _bucket") == 2


def test_a_condition_that_may_hold_by_rounding_bounds_nothing() -> None:
    """Such a row is compared, too, and may have other times."""
    catalog = catalog_of(
        f"{STREAMS} CREATE FUNCTION close(t TIMESTAMP, u TIMESTAMP, x DOUBLE, y DOUBLE) RETURNS BOOLEAN"
        " AS abs(t - u) <= INTERVAL '5' SECOND AND x + y > 5;"
        "CREATE ALERT q AS SELECT DISTINCT a.ts FROM sa a, sb b WHERE close(a.ts, b.ts, a.v, b.v)"
    )
    conjuncts = catalog.alerts["q"].query.conjuncts
    joined, _, near_ = standing._joined(catalog.alerts["q"].query, {})
    assert len(conjuncts) == 1
    assert near_ != "FALSE"
    assert "AS _bucket" not in joined
