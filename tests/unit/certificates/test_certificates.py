"""Conditions that people write are proved, and traps are not."""

from __future__ import annotations

import time

import pytest
from tests.unit.certificates.catalogs import NEAR, TWO, verdict_of

from tamis.certificates.curvature.prover import Prover
from tamis.certificates.interval_arithmetic.intervals import span
from tamis.certificates.interval_arithmetic.subdivision import ALL_WORK, Effort
from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission
from tamis.planning.join_verdict import judge
from tamis.query.parse import catalog_of

WEATHER = """
CREATE STREAM air (k INT KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  rh DOUBLE CHECK (rh BETWEEN 1 AND 100), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM surface (k INT KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM hot (k INT KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN 27 AND 45),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM damp (k INT KEY, ts TIMESTAMP, rh DOUBLE CHECK (rh BETWEEN 40 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  243.04 * (ln(h/100) + 17.625*t/(243.04+t)) / (17.625 - ln(h/100) - 17.625*t/(243.04+t));
CREATE FUNCTION heat_index(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS
  -8.78469475556 + 1.61139411*t + 2.33854883889*h - 0.14611605*t*h - 0.012308094*t*t - 0.0164248277778*h*h
  + 0.002211732*t*t*h + 0.00072546*t*h*h - 0.000003582*t*t*h*h;
"""


def weather(sources: str, condition: str) -> tuple[Omission, ...]:
    first, second = sources.split(" JOIN ")
    on = f"{first}.k = {second}.k AND ABS({first}.ts - {second}.ts) <= INTERVAL '5' SECOND"
    sql = f"CREATE ALERT q AS SELECT {first}.k FROM {sources} ON {on} WHERE {condition}"
    catalog = catalog_of(WEATHER, sql)
    return judge(catalog.alerts["q"], catalog).omissions


FULL = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE NOT NULL CHECK (x BETWEEN 6 AND 100),
  d DOUBLE NOT NULL {check}, n DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, p DOUBLE NOT NULL CHECK (p BETWEEN 0 AND 100),
  q DOUBLE NOT NULL CHECK (q BETWEEN 0 AND 100), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
COMPARE = "write the condition as comparisons that are combined with AND, OR and NOT"


@pytest.mark.parametrize(
    ("condition", "advice", "advised"),
    [
        (
            "CASE WHEN a.x > 10 THEN b.p ELSE b.q END > 3",
            COMPARE,
            "a.x > 10 AND b.p > 3 OR a.x <= 10 AND b.q > 3",
        ),
        (
            "CASE WHEN a.x > 10 THEN b.p > 3 ELSE b.q > 3 END",
            COMPARE,
            "a.x > 10 AND b.p > 3 OR a.x <= 10 AND b.q > 3",
        ),
        ("(a.x > 30) = (b.p > 3)", COMPARE, "a.x > 30 AND b.p > 3 OR a.x <= 30 AND b.p <= 3"),
        ("a.n > b.p OR a.n IS NULL", "declare n NOT NULL", "a.x > b.p OR a.x IS NULL"),
    ],
)
def test_advice_helps(condition: str, advice: str, advised: str) -> None:
    streams = FULL.format(check="")
    (refused, _) = verdict_of(condition, streams=streams).omissions
    assert refused.certificate is None and refused.reason.endswith(advice)
    (proved, _) = verdict_of(advised, streams=streams).omissions
    assert proved.certificate is not None


def test_advice_on_a_value_without_nullable_columns() -> None:
    condition = "a.x / a.d > b.p OR a.x / a.d IS NULL"
    (refused, _) = verdict_of(condition, streams=FULL.format(check="")).omissions
    assert refused.certificate is None and refused.reason.endswith(
        "declare CHECKs with which it is never NULL"
    )
    declared = FULL.format(check="CHECK (d BETWEEN 1 AND 9)")
    (proved, _) = verdict_of(condition, streams=declared).omissions
    assert proved.certificate is not None


@pytest.mark.parametrize(
    ("condition", "a", "b"),
    [
        ("a.x + b.x > 3", ("a.x", "above"), ("b.x", "above")),
        ("a.x - b.x > 3", ("a.x", "above"), ("b.x", "below")),
        ("a.x > b.x", ("a.x", "above"), ("b.x", "below")),
        ("a.x < 2 * b.x + 1", ("a.x", "below"), ("b.x", "above")),
        ("NOT a.x < b.x", ("a.x", "above"), ("b.x", "below")),
        ("a.x * b.x > 5", ("a.x", "both"), ("b.x", "both")),
        ("a.x * b.pos > 5", ("a.x", "above"), ("b.pos", "above")),  # only where a.x > 0 is 5 reached
        ("a.pos * b.pos > 5", ("a.pos", "above"), ("b.pos", "above")),
        ("a.x / b.pos > 5", ("a.x", "above"), ("b.pos", "below")),
        ("a.pos / b.pos > 5", ("a.pos", "above"), ("b.pos", "below")),
        ("a.pos / (a.pos + b.pos) > 0.5", ("a.pos", "above"), ("b.pos", "below")),
        ("ABS(a.x - b.x) > 3", ("a.x", "both"), ("b.x", "both")),
        ("a.x > b.x + 3 OR a.x < b.x - 3", ("a.x", "both"), ("b.x", "both")),
        ("a.x > b.x AND a.x > b.x * 2", ("a.x", "above"), ("b.x", "below")),
        ("a.x > b.x AND 2 * a.x + b.y > 7", ("a.x", "above"), None),
        ("a.x + b.y - a.y > 3", ("a.x - a.y", "above"), ("b.y", "above")),
        ("a.x + b.y > a.y", ("a.x - a.y", "above"), ("b.y", "above")),
        ("a.x > b.y + a.y + 3 AND a.y - a.x < b.pos", ("a.x - a.y", "above"), None),
        ("2 * a.x + 3 * a.y > b.x", ("a.x + 1.5 * a.y", "above"), ("b.x", "below")),
        ("GREATEST(a.x, b.x) > 5", None, None),  # NULL is skipped: b alone may raise it
        ("GREATEST(a.x, b.x) > 5 AND a.x > b.x", ("a.x", "above"), None),
        ("a.x > GREATEST(b.x, 3)", ("a.x", "above"), ("greatest(b.x, 3.0)", "below")),
        ("power(a.x - b.x, 2) > 9", ("a.x", "both"), ("b.x", "both")),
        ("sqrt(a.pos * a.pos + b.pos * b.pos) > 9", ("a.pos * a.pos", "above"), ("b.pos * b.pos", "above")),
        ("exp(a.pos) + b.x > 9", ("exp(a.pos)", "above"), ("b.x", "above")),
        ("a.x <> b.x", ("a.x", "both"), ("b.x", "both")),
        ("a.n > b.n", ("a.n", "above"), ("b.n", "below")),
        ("a.n + b.n > 10", ("a.n", "above"), ("b.n", "above")),
        ("a.n * 0.5 + b.x > 10", ("a.n", "above"), ("b.x", "above")),
        ("a.x / b.n > 5", ("a.x", "both"), None),
        ("CASE WHEN b.flag THEN a.x ELSE a.x + 1 END > b.x", ("a.x", "above"), ("b.x", "below")),
        ("a.x > b.x AND b.y > 0", ("a.x", "above"), ("b.x", "below")),
        ("", ("0.0", "above"), ("0.0", "above")),
        # Only where the threshold is crossed does the slope count:
        ("a.pos * (b.pos - 3) > 50", ("a.pos", "above"), ("b.pos", "above")),
        ("a.pos * (b.pos - 3) < -50", ("a.pos", "above"), ("b.pos", "below")),
        ("power(a.pos - 50, 2) * b.pos + a.pos > 100000", ("a.pos", "both"), ("b.pos", "above")),
        # One stream's factors and terms, scattered:
        ("a.x * b.x * a.y > 5", ("a.x * a.y", "both"), ("b.x", "both")),
        ("a.x * b.x + b.x * a.y > 5", ("a.x + a.y", "both"), ("b.x", "both")),
        ("b.pos * a.x + 2 * a.y * b.pos > 5", ("a.x + 2 * a.y", "above"), ("b.pos", "both")),
        ("b.pos / a.pos / a.k2 > 5", None, ("b.pos", "above")),  # a.k2 may be 0
        # Steps:
        (
            "CASE WHEN a.x > 10 THEN 2 * a.x - b.x ELSE a.x + 10 - b.x END > 5",
            ("a.x", "above"),
            ("b.x", "below"),
        ),
        (
            "CASE WHEN a.x > 10 THEN 2 * a.x - b.x ELSE a.x + 9 - b.x END > 5",
            ("a.x", "above"),
            ("b.x", "below"),
        ),
        ("CASE WHEN a.x > 10 THEN 2 * a.x - b.x ELSE a.x + 11 - b.x END > 5", None, ("b.x", "below")),
        (
            "CASE WHEN a.x < 10 THEN 3 - a.x - b.x ELSE a.x - 9 - b.x END > 5",
            ("a.x", "both"),
            ("b.x", "below"),
        ),
        ("CASE WHEN a.x < 10 THEN a.x + b.x ELSE b.x - a.x END > 5", None, ("b.x", "above")),
        ("CASE WHEN a.x > b.x THEN a.x ELSE b.x END > 3 AND a.x > b.y", ("a.x", "above"), None),
        # Opposite rays, and rays whose direction b decides:
        ("a.x > b.x + 5 OR a.x < b.x - 5", ("a.x", "both"), ("b.x", "both")),
        ("a.x > b.x + 5 AND a.x < b.x + 9", None, None),
        # What fails in one term costs the streams of that term alone:
        ("ABS(ABS(a.x) - 3) * b.pos + b.x > 0", ("abs(abs(a.x) - 3)", "above"), None),
        # Nothing that can be proved:
        ("CASE WHEN a.x < 10 THEN a.x + b.x ELSE a.x + 2 * b.y END > 5", None, None),  # NULL by the value
        ("0 * CASE WHEN a.x < 10 THEN b.x END > -1", None, ("b.x", "above")),
        ("a.x = b.x + 1", None, None),
        ("a.x * a.y + b.x * a.x > 3", None, ("b.x", "both")),
        ("a.x > b.x AND a.y > b.y", None, None),
        ("a.x > b.x AND a.x < b.y", None, None),
        ("a.x > b.x OR b.y > 5", None, None),  # where a.x is NULL the other still holds
        ("ln(a.x + b.x) > 1", None, None),
        ("a.x / b.x > 1", None, None),
        ("a.x * b.x * a.pos * b.y * b.y * b.y > 1", None, None),  # may overflow
        ("a.big + b.big > 1", None, None),  # may overflow
        ("a.x - 2 * exp(-power((a.x - b.x) * 1000, 2)) > b.y", None, None),  # a narrow dip
        ("CASE WHEN a.x > b.x THEN a.x ELSE 0 - a.x END > 3", None, None),
        ("ABS(ABS(a.x - b.x) - 3) > 2", None, None),
        ("ABS(a.x * b.x) <= LEAST(b.y, 3)", None, None),  # straight on each side of a bend
        ("(a.x IS NULL OR b.x > a.x)", None, None),
    ],
)
def test_what_is_proved(condition: str, a: tuple[str, str] | None, b: tuple[str, str] | None) -> None:
    for expected, omission in zip((a, b), verdict_of(condition).omissions, strict=True):
        if expected is None:
            assert omission.interval == 0, (condition, omission)
            assert omission.reason.startswith("no omission: ")
        else:
            assert omission.value is not None, (condition, omission.reason)
            assert (to_sql(omission.value), omission.sides) == expected
            assert omission.interval == 10_000_000


def test_dew_point_against_the_surface() -> None:
    air, surface = weather("air JOIN surface", "dew_point(air.temp, air.rh) - surface.temp > 0.5")
    assert (air.sides, surface.sides) == ("above", "below")
    assert "composition" in str(air.certificate)


def test_dew_point_of_two_streams() -> None:
    hot, damp = weather("hot JOIN damp", "dew_point(hot.temp, damp.rh) > 20")
    assert (hot.sides, damp.sides) == ("above", "above")


def test_heat_index_of_two_streams_needs_the_domain() -> None:
    hot, damp = weather("hot JOIN damp", "heat_index(hot.temp, damp.rh) > 41")
    assert (hot.sides, damp.sides) == ("above", "above")
    assert "derivatives" in str(hot.certificate)


def test_magnus_of_the_paper() -> None:
    condition = "ln(damp.rh / 100) + 18.678 * hot.temp / (257.14 + hot.temp) > 1.2"
    hot, damp = weather("hot JOIN damp", condition)
    assert (hot.sides, damp.sides) == ("above", "above")


def test_a_predicate_of_a_partner_narrows_the_domain() -> None:
    assert verdict_of("a.x * b.x > 5 AND b.x > 0").omissions[0].sides == "above"
    assert verdict_of("a.x * b.x > 5 AND b.x < 0").omissions[0].sides == "below"
    assert verdict_of("a.x / b.x > 5 AND b.x >= 0.1").omissions[0].sides == "above"


def test_not_null_columns_let_a_disjunction_omit() -> None:
    streams = TWO.replace("x DOUBLE, y DOUBLE, pos", "x DOUBLE NOT NULL, y DOUBLE, pos")
    a, _ = verdict_of("a.x > b.x OR b.y > 5", streams=streams).omissions
    assert a.sides == "above"
    assert a.entry_filter is None


def test_the_filter_of_an_entry_keeps_out_what_has_no_value() -> None:
    a, _ = verdict_of("a.x > b.x AND a.y > 3").omissions
    assert a.entry_filter is not None
    assert to_sql(a.entry_filter) == "a.y > 3 AND a.x IS NOT NULL"


def test_the_reason_names_both_values() -> None:
    a, _ = verdict_of("a.x > b.x AND a.y > b.y").omissions
    assert "a.x and a.y" in a.reason


def test_the_centre_of_a_star_keeps_everything() -> None:
    on = f"{NEAR} JOIN c ON a.k = c.k AND ABS(a.ts - c.ts) <= INTERVAL '5' SECOND"
    a, b, c = verdict_of("a.x + b.x + c.x > 3", on=on).omissions
    assert (a.interval, b.interval, c.interval) == (0, 10_000_000, 10_000_000)


def test_each_tuple_of_a_single_stream_is_kept() -> None:
    (a,) = verdict_of("a.x > 3", sources="a").omissions
    assert a.interval == 0


def test_a_failing_term_costs_only_its_own_streams() -> None:
    near = "a.k = b.k AND b.k = c.k AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND AND "
    near += "ABS(b.ts - c.ts) <= INTERVAL '5' SECOND AND ABS(a.ts - c.ts) <= INTERVAL '5' SECOND"
    condition = "ABS(ABS(a.x - b.x) - 3) + c.x > 5"
    omissions = verdict_of(f"{near} AND {condition}", sources="a, b, c").omissions
    assert [o.sides for o in omissions] == [None, None, "above"]


def test_the_effort_is_counted_and_stated() -> None:
    """What can't be proved, and takes all the work there is, takes no more; and twice the same."""
    x, rest = Column("", "x", Type.DOUBLE), [Column("b", f"y{i}", Type.DOUBLE) for i in range(4)]
    hard: Expr = x
    for column in rest:
        hard = call("+", call("*", hard, call("-", x, column)), call("exp", call("*", column, x)))
    box = {c: span(-3.0, 3.0) for c in (x, *rest)}
    spent = []
    for _ in range(2):
        effort = Effort()
        begin = time.process_time()
        Prover(box, x, effort).regions(call(">", hard, Literal(1, Type.INT)))
        spent.append(ALL_WORK - effort.left)
        assert time.process_time() - begin < 10, "the page says about 2 s"
    assert spent[0] == spent[1] <= ALL_WORK
