"""Certificates by a grid: only where asked for, marked wherever they show, and fooled by what is narrow."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import NEAR

from tamis.certificates.grid import NoGridError, gridded
from tamis.certificates.interval_arithmetic.intervals import span
from tamis.errors import InputError
from tamis.expressions.nodes import Column, Type
from tamis.expressions.signatures import call
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.planning.build import build_plan
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.explanations.text import text as shown
from tamis.query.parse import catalog_of, parse

STREAMS = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10), free DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 10),
  y DOUBLE CHECK (y BETWEEN 1 AND 2.1234), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
# Rising but for a dip a millionth wide at a place that b.y names: no practical grid has a point in it.
DIP = "a.x - 2 * exp(-power((a.x - b.y) * 3e6, 2)) > 1.5"


def explained(condition: str, *, certify: str) -> Explanation:
    options = f"WITH (certify = '{certify}')"
    sql = f"CREATE ALERT q {options} AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE {condition}"
    return explain(catalog_of(STREAMS, sql), "q")


def test_a_dip_that_no_grid_sees_is_refused() -> None:
    found = explained(DIP, certify="sound")
    assert found.streams[0].interval is None
    assert "no proof" in found.streams[0].reason


def test_a_grid_is_fooled_by_the_dip_and_says_what_it_is() -> None:
    fooled = explained(DIP, certify="heuristic")
    source = fooled.streams[0].document()["omission"]
    assert source["interval"] and source["sides"] == "above"
    assert source["certificate"].startswith("heuristic, not proved: monotone on a grid of ")
    assert "certificate: heuristic, not proved" in shown(fooled, verbose=True)


def test_above_the_dip_the_level_is_never_crossed_twice() -> None:
    """The dip goes from about 2 down to 0: an alarm above 5 doesn't know it."""
    found = explained(DIP.replace("1.5", "5"), certify="sound")
    assert found.streams[0].certificate == "monotone by sign of derivatives over the declared domain"


def test_what_is_proved_stays_proved() -> None:
    found = explained("a.x + b.x > 5", certify="heuristic")
    assert [s.certificate for s in found.streams] == ["monotone by rules of composition"] * 2


def test_a_grid_refuses_what_it_sees_refuted() -> None:
    found = explained("power(a.x - 5, 2) * (b.x - 5) > 1", certify="heuristic")
    assert found.streams[0].value == "power(x - 5, 2)"
    found = explained("ABS(ABS(a.x - b.x) - 3) > 2", certify="heuristic")
    assert found.streams[0].interval is None
    assert "by a grid" in found.streams[0].reason or "no proof" in found.streams[0].reason


def test_a_grid_needs_declared_domains() -> None:
    found = explained("ABS(ABS(a.free - b.x) - 3) > 2", certify="heuristic")
    assert found.streams[0].interval is None
    assert "a grid needs a CHECK" in found.streams[0].reason


def test_sub_functions_keep_the_grid_small() -> None:
    """Ten columns of terms in which the scalar does not stand take no part."""
    x = Column("", "x", Type.DOUBLE)
    rest = [Column("b", f"y{i}", Type.DOUBLE) for i in range(10)]
    total = call("*", x, x)
    for column in rest:
        total = call("+", total, column)
    box = {x: span(0.0, 1.0), **dict.fromkeys(rest, span(0.0, 1.0))}
    region, points = gridded(call(">", total, rest[0]), x, box)
    assert points == 1_000 and region
    together = call(">", call("*", total, rest[0]), rest[1])
    with pytest.raises(NoGridError, match="too many for a grid"):
        gridded(together, x, box)


def test_the_plan_tells_the_registry_and_comes_back_the_same() -> None:
    options = "WITH (certify = 'heuristic', allow_unbounded = true)"
    sql = f"CREATE ALERT q {options} AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE {DIP}"
    built = build_plan(
        1,
        catalog_of(STREAMS, sql),
        partitions=1,
        versions={"q": 1},
        topic_numbers={},
        retiring=[],
        since={},
        shard_streams={},
    )
    (definition,) = built.plan.definitions
    assert str(definition.inputs[0].certificate).startswith("heuristic")
    assert decode_plan(encode_plan(built.plan)) == built.plan


def test_only_two_words_are_taken() -> None:
    with pytest.raises(InputError, match="certify: 'maybe' isn't a kind of certificate"):
        parse("CREATE ALERT q WITH (certify = 'maybe') AS SELECT k FROM a", catalog_of(STREAMS))
