"""Plans and explanations of queries with window functions."""

from __future__ import annotations

import re

import pytest

from tamis.declarations.watches import Frame, WindowFunction
from tamis.expressions.nodes import Column, Type
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text as shown
from tamis.query.parse import catalog_of
from tamis.watching.key_history import KeyHistory, bytes_per_key

STREAMS = """
CREATE STREAM air (room VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10), n INT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ({options});
"""
WINDOW = "WINDOW w AS (PARTITION BY room ORDER BY ts)"
INTERNAL = re.compile(r"_over_|_[0-9a-f]{6}")


def text(select: str, options: str = "keys = 100, rate = '2/s', history = '10 minutes'") -> str:
    catalog = catalog_of(STREAMS.format(options=options), f"CREATE ALERT q AS {select}")
    found = explain(catalog, "q")
    for one in (shown(found, verbose=True), str(found.document())):
        assert not INTERNAL.search(one), one
    return re.sub(r"\s+", " ", shown(found, verbose=True))


def test_an_explanation_says_what_an_edge_keeps_of_each_key() -> None:
    found = text(f"SELECT room, x - lag(x, 2) OVER w AS rise FROM air {WINDOW} QUALIFY rise > 5")
    assert "lag(x, 2) OVER (…): readings of the same key that are at most 600 s older" in found
    assert (
        "an edge keeps at most the latest 2 readings of each key in 90 bytes, 9,000 bytes for all keys"
        in found
    )
    assert "of tuples with x - lag(x, 2) OVER (…) > 5" in found


def test_a_range_is_bounded_by_the_rate() -> None:
    call = "max(x) OVER (w RANGE INTERVAL '1' MINUTE PRECEDING)"
    select = f"SELECT room, {call} AS y FROM air {WINDOW} QUALIFY y > 5"
    assert "an edge keeps at most the latest 122 readings of each key in 4,050 bytes" in text(select)
    found = text(select, "keys = 100")
    assert (
        "readings of the last 60 s of each key: at most rate x 60 s, and the stream declares no rate" in found
    )


def test_the_texts_that_an_edge_keeps_are_not_in_its_bytes() -> None:
    found = text(f"SELECT room FROM air {WINDOW} QUALIFY lag(room) OVER w = 'a'", "rate = '1/s'")
    assert "the latest 1 reading of each key in 57 bytes, plus the texts of these readings" in found


def test_the_value_by_which_readings_are_higher_and_lower_is_named() -> None:
    streams = STREAMS.format(options="rate = '1/s'")
    other = streams.replace("STREAM air", "STREAM sea")
    select = (
        "SELECT a.room FROM air a JOIN sea s ON a.room = s.room AND ABS(a.ts - s.ts) <= INTERVAL '5' SECOND"
        " WHERE a.x - lag(a.x) OVER (PARTITION BY a.room ORDER BY a.ts) > s.x + 1"
    )
    found = re.sub(
        r"\s+", " ", shown(explain(catalog_of(streams + other, f"CREATE ALERT q AS {select}"), "q"))
    )
    assert (
        "air as a: a tuple between two lower ones within 10 s is omitted" in found
        and "readings are compared by the value lag(x) OVER (…) - x" in found
    )


def test_the_document_has_calls_and_bounds() -> None:
    select = f"SELECT room, x - lag(x) OVER w AS rise FROM air {WINDOW} QUALIFY rise > 5"
    catalog = catalog_of(STREAMS.format(options="rate = '1/s'"), f"CREATE ALERT q AS {select}")
    (source,) = explain(catalog, "q").document()["streams"]
    assert source["over"] == {
        "calls": [{"call": "lag(x) OVER (…)", "rows": 1, "age": 3_600_000_000}],
        "readings_per_key": 1,
        "bytes_per_key": 57,
    }


def test_bytes_of_a_key_are_those_of_the_arrays() -> None:
    one = WindowFunction("lag", Column("", "x", Type.DOUBLE), Frame(3, 3, 10), Type.DOUBLE)
    history = KeyHistory(Type.DOUBLE)
    slot = sum(getattr(history, name).itemsize for name in ("times", "values", "null", "_before", "_after"))
    key = sum(getattr(history, name).itemsize for name in ("_oldest", "_newest", "kept"))
    assert bytes_per_key([one], lambda span: None) == key + 3 * slot


def test_conditions_against_the_domain_are_refused() -> None:
    found = text(f"SELECT room FROM air {WINDOW} QUALIFY x - lag(x) OVER w > 20")
    assert "REFUSED" in found and "air.x - lag(air.x) OVER (…) is at most 10" in found


@pytest.mark.parametrize(
    "select",
    [
        f"SELECT room, x - lag(x, 1, 0) OVER w AS rise FROM air {WINDOW} QUALIFY rise > 5",
        f"SELECT room, avg(x) OVER (w ROWS 5 PRECEDING) AS m FROM air {WINDOW} QUALIFY m > 5",
        "SELECT room, count(*) AS n FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) WHERE x > lag(x) OVER"
        " (PARTITION BY room ORDER BY ts) GROUP BY room, window_start",
    ],
)
def test_plans_have_them_in_the_watched_stream(select: str) -> None:
    catalog = catalog_of(STREAMS.format(options="history = '5 minutes'"), f"CREATE ALERT q AS {select}")
    plan = first_plan(catalog, shards={"edge/air": "air"})
    assert decode_plan(encode_plan(plan)) == plan
    (stream,) = plan.watched("air")
    assert stream.window_functions == catalog.alerts["q"].query.watched[0].watches
    assert not stream.watches


def test_a_plan_without_window_functions_has_no_word_of_them() -> None:
    catalog = catalog_of(
        STREAMS.format(options="keys = 3"), "CREATE ALERT q AS SELECT room FROM air WHERE x > 3"
    )
    assert b"window_functions" not in encode_plan(first_plan(catalog, shards={"edge/air": "air"}))
