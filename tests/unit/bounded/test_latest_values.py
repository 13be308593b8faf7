"""The memory of queries with ASOF JOIN: waiting tuples, and one for each key."""

from __future__ import annotations

from tamis.bounded.memory import Memory
from tamis.expressions.sql_text import to_sql
from tamis.planning.explain import explain
from tamis.planning.queries.standing_queries import judged, layout
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, place VARCHAR, door BOOLEAN, x DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH (keys = 10, rate = '1/s', max_stall = '8 s', max_ahead = '10 s');
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, place VARCHAR, door BOOLEAN, y DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH (keys = 100, rate = '1/minute', max_stall = '15 s', max_ahead = '10 s');
CREATE STREAM undeclared (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""


def catalog(sql: str) -> Catalog:
    return catalog_of(f"{STREAMS}CREATE ALERT q AS {sql};")


def memory(sql: str) -> Memory:
    return explain(catalog(sql), "q").memory


def test_the_bound_has_the_waiting_tuples_and_one_for_each_key() -> None:
    found = memory("SELECT a.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts")
    # 20 s for the slower watermark and 10 s ahead: 31 tuples of each of 10 keys, one of each of 100.
    assert (found.verdict, found.bound) == ("bounded", 31 * 10 + 100 + 100)
    assert found.formula == (
        "310 (tuples of a that wait, within 30 s) + 100 (tuples of b that wait, within 30 s)"
        " + 100 (keys of b) (latest tuples of b)"
    )


def test_a_distance_lengthens_the_wait_of_the_joined_stream() -> None:
    found = memory("SELECT a.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts - INTERVAL '1' MINUTE >= b.ts")
    assert found.bound == 31 * 10 + 200 + 100


def test_without_an_equality_one_tuple_is_the_latest() -> None:
    assert memory("SELECT a.ts FROM a ASOF JOIN b ON a.ts >= b.ts").bound == 31 * 10 + 100 + 1


def test_values_of_other_columns_are_limited_by_their_domains() -> None:
    # NULL counts as a third value.
    assert memory("SELECT a.ts FROM a ASOF JOIN b ON a.door = b.door AND a.ts >= b.ts").bound == 310 + 100 + 3


def test_values_without_limits_need_an_age_bound() -> None:
    on = "a.place = b.place AND a.ts >= b.ts"
    found = memory(f"SELECT a.ts FROM a ASOF JOIN b ON {on}")
    assert found.verdict == "unbounded"
    assert found.reason.startswith("the last tuple of b is kept for ever for each value of b.place")
    assert found.witness is not None and "different values of b.place" in found.witness
    (repair,) = found.repairs
    assert repair == "AND b.ts >= a.ts - INTERVAL '1' HOUR in the ON of b"
    condition = repair.removesuffix(" in the ON of b")
    repaired = memory(f"SELECT a.ts FROM a ASOF JOIN b ON {on} {condition}")
    assert (repaired.verdict, repaired.bound) == ("bounded", 310 + 100 + 61 * 100)


def test_a_long_age_bound_does_not_replace_the_number_of_keys() -> None:
    on = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '1' DAY AND a.ts"
    assert memory(f"SELECT a.ts FROM a ASOF JOIN b ON {on}").bound == 310 + 100 + 100


def test_without_declarations_the_bound_is_a_formula() -> None:
    found = memory("SELECT a.ts FROM a ASOF JOIN undeclared u ON a.k = u.k AND a.ts >= u.ts")
    assert (found.verdict, found.bound) == ("bounded", None)
    assert found.formula.endswith("+ keys(u) (latest tuples of u)")
    assert "stream undeclared declares neither keys nor rate" in found.reason


def test_a_stream_without_candidates_has_no_latest_tuples() -> None:
    on = "a.k = b.k AND a.ts >= b.ts AND b.door AND NOT b.door"
    assert memory(f"SELECT a.ts FROM a LEFT ASOF JOIN b ON {on}").bound == 310 + 100


def test_the_streams_are_partitioned_by_their_equated_keys() -> None:
    known = catalog(
        "SELECT a.k, a.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts WHERE b.place = a.place"
    )
    found = layout(known.alerts["q"].query, known)
    assert found.key == ("k",)
    assert [(feed.stream.name, feed.partition_key, feed.filter) for feed in found.feeds] == [
        ("a", ("k",), None),
        ("b", ("k",), None),
    ]


def test_other_keys_are_evaluated_in_one_partition() -> None:
    known = catalog("SELECT a.ts FROM a ASOF JOIN b ON a.place = b.k AND a.ts >= b.ts")
    found = judged(known.alerts["q"], known).layout
    assert found.reason == "evaluated in a single partition"


def test_conditions_that_choose_go_to_the_edge_and_where_does_not() -> None:
    known = catalog(
        "SELECT a.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts AND b.door"
        " WHERE b.y > 3 AND a.x > 1 AND a.k IN ('p', 'q')"
    )
    filters = {feed.stream.name: feed.filter for feed in layout(known.alerts["q"].query, known).feeds}
    texts = {name: None if one is None else to_sql(one) for name, one in filters.items()}
    assert texts == {"a": "x > 1 AND (k = 'p' OR k = 'q')", "b": "door AND (k = 'p' OR k = 'q')"}


def test_a_missing_equality_of_keys_is_a_warning() -> None:
    found = explain(catalog("SELECT a.ts FROM a ASOF JOIN b ON a.ts >= b.ts"), "q")
    assert len(found.warnings) == 1 and "no condition equates keys of a and b" in found.warnings[0]
    assert "each tuple of a joins the latest tuple of b, of any k" in found.warnings[0]


def test_the_longest_wait_is_explained() -> None:
    found = memory("SELECT a.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts")
    assert found.reason == (
        "kept: the last tuple of b of each b.k, and the tuples that wait for the watermarks. A tuple waits"
        " for at most 30 s: 10 s max_ahead of a + 15 s max_stall of b + 5 s delay of the WATERMARK of b"
    )


def test_conditions_that_contradict_each_other_are_refused() -> None:
    on = "ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts"
    refused = explain(catalog(f"SELECT a.ts FROM a {on} WHERE a.x > 3 AND b.y > 2 AND a.x < 1"), "q")
    assert not refused.accepted and refused.reason.endswith("so the query never has a row")
    # Without a partner the columns are NULL.
    kept = explain(catalog(f"SELECT a.ts FROM a LEFT {on} WHERE b.ts IS NULL"), "q")
    assert kept.accepted
