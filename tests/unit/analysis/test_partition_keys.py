"""Partition keys and omission keys."""

from __future__ import annotations

from tests.unit.certificates.catalogs import NEAR, verdict_of

NEAR_IN_TIME = "ABS(a.ts - b.ts) <= INTERVAL '5' SECOND"


def test_key_columns_are_preferred() -> None:
    keys = verdict_of("a.k2 = b.k2 AND a.x > b.x").keys
    assert keys.partition == {"a": ("k",), "b": ("k",)}
    assert [(x.name, y.name) for x, y in keys.rest] == [("k2", "k2")]


def test_another_attribute_where_no_key_column_is_equal() -> None:
    keys = verdict_of("a.x > b.x", on=f"a.k2 = b.n AND a.mode = b.mode AND {NEAR_IN_TIME}").keys
    assert keys.partition == {"a": ("k2",), "b": ("n",)}
    assert [(x.name, y.name) for x, y in keys.rest] == [("mode", "mode")]


def test_a_key_that_not_all_streams_share_is_none() -> None:
    on = f"{NEAR} JOIN c ON ABS(c.ts - a.ts) < INTERVAL '1' SECOND"
    keys = verdict_of("", on=on).keys
    assert not any(keys.partition.values())
    assert "single partition" in keys.reason
    assert len(keys.rest) == 1


def test_classes_are_transitive_and_lose_no_equality() -> None:
    on = f"a.k = b.k AND {NEAR_IN_TIME} JOIN c ON b.k = c.k AND ABS(c.ts - a.ts) < INTERVAL '1' SECOND"
    keys = verdict_of("a.k2 = c.k", on=on).keys
    assert keys.partition == {"a": ("k",), "b": ("k",), "c": ("k",)}
    assert [(x.name, y.name) for x, y in keys.rest] == [("k2", "k")]


def test_other_attributes_go_into_the_omission_key() -> None:
    verdict = verdict_of("a.k2 = b.n AND a.mode <> b.mode AND (a.flag OR b.flag) AND a.x > b.x")
    a, b = verdict.omissions
    assert a.key == ("k", "k2", "mode", "flag")
    assert b.key == ("k", "n", "mode", "flag")


def test_whole_numbers_go_into_the_key_where_one_scalar_does_not_do() -> None:
    a, b = verdict_of("a.n > b.n AND a.x > b.x").omissions
    assert a.key == ("k", "n")
    assert b.key == ("k", "n")


def test_a_single_stream_is_partitioned_by_its_key() -> None:
    assert verdict_of("a.x > 3", sources="a").keys.partition == {"a": ("k",)}
