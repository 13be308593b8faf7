"""Expressions as SQL for people."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracle.expressions.expression_trees import COLUMNS, Seeded, meaning, rows, tree

from tamis.errors import SqlErrors
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import identifier, to_sql
from tamis.query.catalog import apply
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import parse
from tamis.query.syntax.dialect import WORDS

T, H = Column("a", "temp", Type.DOUBLE), Column("s", "rh", Type.DOUBLE)
TA, TS = Column("a", "ts", Type.TIMESTAMP), Column("s", "ts", Type.TIMESTAMP)
F, G = Column("a", "up", Type.BOOLEAN), Column("s", "on", Type.BOOLEAN)
NAME = Column("", "Station", Type.VARCHAR)


def number(value: int | float) -> Literal:
    return Literal(value, Type.INT if isinstance(value, int) else Type.DOUBLE)


def span(value: int) -> Literal:
    return Literal(value, Type.INTERVAL)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (call("-", call("-", T, H), T), "a.temp - s.rh - a.temp"),
        (call("-", T, call("-", H, T)), "a.temp - (s.rh - a.temp)"),
        (call("+", T, call("+", H, T)), "a.temp + (s.rh + a.temp)"),
        (call("*", call("+", T, H), number(2)), "(a.temp + s.rh) * 2"),
        (call("+", call("*", T, H), number(2.5)), "a.temp * s.rh + 2.5"),
        (call("/", T, call("*", H, T)), "a.temp / (s.rh * a.temp)"),
        (call("*", call("/", T, H), T), "a.temp / s.rh * a.temp"),
        (call("neg", call("+", T, H)), "-(a.temp + s.rh)"),
        (call("neg", call("neg", T)), "-(-a.temp)"),
        (call("neg", number(-5)), "-(-5)"),
        (call("-", T, number(-5)), "a.temp - (-5)"),
        (call("-", T, call("*", call("neg", H), T)), "a.temp - (-s.rh * a.temp)"),
        (call("*", number(-5), T), "-5 * a.temp"),
        (call("*", call("neg", T), T), "-a.temp * a.temp"),
        (call(">", T, number(-5)), "a.temp > -5"),
        (call("power", call("+", T, H), number(2)), "power(a.temp + s.rh, 2)"),
        (call("ln", call("/", H, number(100))), "ln(s.rh / 100)"),
        (call("least", T, H, number(0.1)), "least(a.temp, s.rh, 0.1)"),
        (call("abs", call("-", TA, TS)), "abs(a.ts - s.ts)"),
        (call("and", call("or", F, G), call(">", T, H)), '(a.up OR s."on") AND a.temp > s.rh'),
        (call("or", call("and", F, G), F), 'a.up AND s."on" OR a.up'),
        (call("and", F, call("and", G, F)), 'a.up AND (s."on" AND a.up)'),
        (call("not", call("or", F, G)), 'NOT (a.up OR s."on")'),
        (call("not", call("=", T, H)), "NOT a.temp = s.rh"),
        (call("and", call("not", F), G), 'NOT a.up AND s."on"'),
        (call("=", call("not", F), G), '(NOT a.up) = s."on"'),
        (call("=", call("<", T, H), G), '(a.temp < s.rh) = s."on"'),
        (call("is_null", call("+", T, H)), "a.temp + s.rh IS NULL"),
        (call("not", call("is_null", F)), "a.up IS NOT NULL"),
        (call("is_null", call("and", F, G)), '(a.up AND s."on") IS NULL'),
        (call("not", call("not", call("is_null", F))), "NOT a.up IS NOT NULL"),
        (call("and", F), "a.up"),
        (call("=", NAME, Literal("it's", Type.VARCHAR)), "\"Station\" = 'it''s'"),
        (call("=", F, Literal(True, Type.BOOLEAN)), "a.up = TRUE"),
        (call("+", TS, span(30_000_000)), "s.ts + INTERVAL '30' SECOND"),
        (call("-", TS, span(-120_000_000)), "s.ts - INTERVAL '-2' MINUTE"),
        (call("<=", TA, call("+", TS, span(1_500_000))), "a.ts <= s.ts + INTERVAL '1.5' SECOND"),
        (call("-", TS, span(1)), "s.ts - INTERVAL '0.000001' SECOND"),
        (call("-", TS, span(-1_500_000)), "s.ts - INTERVAL '-1.5' SECOND"),
        (call("-", TS, span(0)), "s.ts - INTERVAL '0' SECOND"),
        (call("-", TS, span(7_200_000_000)), "s.ts - INTERVAL '2' HOUR"),
        (call("-", TS, span(172_800_000_000)), "s.ts - INTERVAL '2' DAY"),
        (
            call(">", TS, Literal(1_767_225_600_000_000, Type.TIMESTAMP)),
            "s.ts > TIMESTAMP '2026-01-01 00:00:00'",
        ),
        (
            call(">", TS, Literal(1_767_225_600_250_000, Type.TIMESTAMP)),
            "s.ts > TIMESTAMP '2026-01-01 00:00:00.25'",
        ),
        (
            call("case", call(">", T, H), T, F, H, number(0.0)),
            "CASE WHEN a.temp > s.rh THEN a.temp WHEN a.up THEN s.rh ELSE 0.0 END",
        ),
        (
            call("*", call("case", F, T, Literal(None, Type.DOUBLE)), H),
            "CASE WHEN a.up THEN a.temp END * s.rh",
        ),
        (Literal(-(2**63), Type.TIMESTAMP), "TIMESTAMP '-290308-12-21 19:59:05.224192'"),
        (number(1e300), "1e+300"),
        (Literal(-(2**63), Type.BIGINT), "-9223372036854775808"),
        (Literal(None, Type.BIGINT), "NULL"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert to_sql(expr) == text


def test_without_aliases() -> None:
    expr = Call(">", (T, Column("", "limit", Type.DOUBLE)), Type.BOOLEAN)
    assert to_sql(expr, qualify=False) == 'temp > "limit"'


def test_every_word_of_the_dialect_is_quoted_as_a_name() -> None:
    for word in WORDS:
        if " " not in word:
            assert identifier(word.lower()) == f'"{word.lower()}"'
    assert identifier("temp") == "temp" and identifier('a"b') == '"a""b"' and identifier("2x") == '"2x"'


def literals(expr: Expr) -> Iterator[Literal]:
    if isinstance(expr, Literal):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from literals(arg)


def test_read_again_it_means_the_same() -> None:
    """Text that Tamis takes back has the value of the tree that it came from, in every row and every bit."""
    catalog = Catalog()
    for alias in ("a", "b"):
        columns = ", ".join(f"{identifier(c.name)} {c.type}" for c in COLUMNS if c.alias == alias)
        watermark = "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
        for statement in parse(f"CREATE STREAM {alias} (k VARCHAR KEY, {columns}, {watermark})", catalog):
            apply(catalog, statement)
    joined = "FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND"
    taken = 0
    for case in range(400):
        choose = Seeded(f"again {case}")
        expr = tree(choose, choose.one_of(tuple(Type)), 4)
        # A NULL's type isn't written, and is DOUBLE where nothing beside it says otherwise.
        if any(literal.value is None for literal in literals(expr)):
            continue
        try:
            (alert,) = parse(f"CREATE ALERT q AS SELECT {to_sql(expr)} AS r {joined}", catalog)
        except SqlErrors:  # times and intervals of ages, orders of BOOLEAN and VARCHAR: typed, but not taken
            continue
        assert isinstance(alert, AlertDef)
        again = alert.query.select[0].expr
        for row in rows(choose, 10):
            assert repr(meaning(again, row)) == repr(meaning(expr, row)), (case, to_sql(expr))
        taken += 1
    assert taken > 150
