"""A join that is refused since a stream has no WATERMARK says so, and nothing that only follows from it."""

from __future__ import annotations

import pytest

from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.query.parse import catalog_of

RATED = "WITH (keys = 10, rate = '1/s')"


def stream(name: str, watermark: str = "", more: str = "") -> str:
    columns = f"k VARCHAR KEY, ts TIMESTAMP, v DOUBLE{more}{watermark}"
    return f"CREATE STREAM {name} ({columns}) {RATED};\n"


TIMED = ", WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
NEAR = "{0}.ts BETWEEN {1}.ts - INTERVAL '5' SECOND AND {1}.ts + INTERVAL '5' SECOND"


def explained(streams: str, query: str) -> Explanation:
    return explain(catalog_of(f"{streams}CREATE ALERT q AS {query}"), "q")


def near(*pairs: str) -> str:
    return " AND ".join(NEAR.format(*pair) for pair in pairs)


def test_one_of_three_joined_streams() -> None:
    streams = stream("a", TIMED) + stream("b", TIMED) + stream("d")
    found = explained(streams, f"SELECT a.k FROM a, b, d WHERE {near('ab', 'db')} AND a.v + b.v + d.v > 9")
    assert not found.accepted
    why = "stream d (line 3, column 15) has no event time: ts, which bounds the join, has no WATERMARK"
    assert found.reason == found.memory.reason == why
    assert found.memory.repairs == ("WATERMARK FOR ts AS ts - INTERVAL '2' SECOND in CREATE STREAM d",)


def test_the_repair_bounds_it() -> None:
    streams = stream("a", TIMED) + stream("b", TIMED) + stream("d", TIMED)
    found = explained(streams, f"SELECT a.k FROM a, b, d WHERE {near('ab', 'db')} AND a.v + b.v + d.v > 9")
    assert found.accepted


def test_all_streams_lack_one() -> None:
    found = explained(stream("a") + stream("b"), f"SELECT a.k FROM a, b WHERE {near('ab')} AND a.v + b.v > 9")
    assert found.reason == (
        "stream a (line 1, column 15) has no event time: ts, which bounds the join, has no WATERMARK."
        " Stream b (line 2, column 15) has no event time: ts, which bounds the join, has no WATERMARK"
    )
    assert found.memory.repairs[0].count("WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in CREATE STREAM") == 2


def test_a_stream_that_is_read_twice_lacks_one_once() -> None:
    found = explained(stream("a"), f"SELECT x.k FROM a x, a y WHERE {near('xy')} AND x.v + y.v > 9")
    assert found.reason.count("has no event time") == 1


def test_of_several_times_that_which_bounds_the_join() -> None:
    streams = stream("a", TIMED) + stream("d", more=', sent TIMESTAMP, "Seen" TIMESTAMP')
    where = "d.\"Seen\" = a.ts AND d.sent < a.ts AND d.v + a.v > 9 AND d.ts > TIMESTAMP '2026-01-01'"
    found = explained(streams, f"SELECT a.k FROM a, d WHERE {where} AND d.v > d.v + a.v")
    assert found.memory.repairs == (
        'WATERMARK FOR "Seen" AS "Seen" - INTERVAL \'2\' SECOND in CREATE STREAM d',
    )


@pytest.mark.parametrize(
    "where",
    [
        "a.v + d.v > 9",  # no times are compared
        "a.ts < d.ts AND a.v + d.v > 9",  # from one side alone
        "a.k = d.k AND d.ts > TIMESTAMP '2026-01-01' AND a.v + d.v > 9",
    ],
)
def test_what_no_watermark_would_bound_is_told_as_before(where: str) -> None:
    found = explained(stream("a", TIMED) + stream("d"), f"SELECT a.k FROM a, d WHERE {where}")
    assert not found.accepted
    assert "WATERMARK" not in found.reason


def test_a_bounded_query_of_such_a_stream_is_accepted() -> None:
    found = explained(stream("d"), "SELECT k FROM d WHERE ts > TIMESTAMP '2026-01-01' AND v > 3")
    assert found.accepted
