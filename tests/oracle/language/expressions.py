"""Random conditions and values over the columns k, ts, x, n, ok and w, and their translation for DuckDB.

DuckDB has times as numbers of microseconds.
"""

from __future__ import annotations

import random
import re

from tests.oracle.constant_conditions import with_constants
from tests.oracle.expressions.expression_trees import REAL
from tests.oracle.language.readings import SECOND, START

CONSTANT = 0.1  # the share of conditions with constant parts

FUNCTIONS = """
CREATE FUNCTION heat(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS t + 0.5 * h;
CREATE FUNCTION twice(t DOUBLE) RETURNS DOUBLE AS heat(t, 2 * t);
"""
MACROS = (
    "CREATE OR REPLACE MACRO heat(t, h) AS t + 0.5::DOUBLE * h",
    "CREATE OR REPLACE MACRO twice(t) AS t + 0.5::DOUBLE * (2 * t)",
)
_START = "TIMESTAMP '2023-11-14 22:14:10'"  # ten seconds after the first reading


def seconds(number: float) -> str:
    """An interval of this many seconds, not negative."""
    return f"INTERVAL '{round(number * SECOND)} us'"


def moved(time: str, number: float) -> str:
    """A time plus a number of seconds."""
    return f"{time} {'-' if number < 0 else '+'} {seconds(abs(number))}" if number else time


def for_duckdb(sql: str) -> str:
    """The same expression for DuckDB."""
    sql = sql.replace(_START, str(START + 10 * SECOND))
    sql = re.sub(r"INTERVAL '(\d+) us'", r"\1", sql)
    sql = re.sub(r"extract\(epoch FROM ([^()]+\(\S+\) OVER \([^()]+\))\)", r"((\1) / 1000000)", sql)
    sql = re.sub(r"extract\((\w+) FROM (\w+\.\w+)\)", r"extract(\1 FROM make_timestamp(\2))", sql)
    sql = re.sub(r"date_part\('(\w+)', (\w+\.\w+)\)", r"date_part('\1', make_timestamp(\2))", sql)
    sql = re.sub(r"date_trunc\('(\w+)', (\w+\.\w+)\)", r"epoch_us(date_trunc('\1', make_timestamp(\2)))", sql)
    sql = re.sub(r"(\w+\.)k ORDER BY \w+\.ts(?! RANGE)", r"\1k ORDER BY \1ts, \1_row", sql)
    sql = re.sub(r"BETWEEN SYMMETRIC (-?\d+) AND (-?\d+)", r"BETWEEN least(\1, \2) AND greatest(\1, \2)", sql)
    # A number with a point is a DECIMAL there, and so would be its product with an integer.
    sql = re.sub(r"\* (\d+\.\d+)", r"* \1::DOUBLE", sql)
    return sql.replace("CAST(", "TRY_CAST(")


def condition(r: random.Random, a: str) -> str:
    """A condition on one source."""
    c = r.randint(-4, 3)
    simple = (
        f"{a}.x > {c}",
        f"{a}.x <= {c + 4}.5",
        f"{a}.ok",
        f"NOT {a}.ok",
        f"{a}.n >= 1",
        f"{a}.n IN (0, 2)",
        f"{a}.k <> 'q'",
        f"{a}.k = 'p'",
        f"{a}.w IS NOT NULL",
        f"{a}.x IS NULL OR {a}.x < 6",
        f"{a}.x BETWEEN {c} AND {c + 6}",
        f"{a}.x BETWEEN SYMMETRIC {c + 5} AND {c - 2}",
        f"{a}.w LIKE 'a%'",
        f"{a}.w ILIKE '%B'",
        f"lower({a}.w) = 'b'",
        f"length({a}.w) < 3",
        f"{a}.w || 'x' <> 'abx'",
        f"trim(concat({a}.w, ' ', {a}.n)) > 'a'",
        f"substring({a}.w, 1, 1) IS DISTINCT FROM 'a'",
        f"nullif({a}.w, '') IS NOT NULL",
        f"coalesce({a}.x, 1) > 0",
        f"{a}.n % 2 = 1",
        f"mod({a}.n, 3) < 2",
        f"floor({a}.x) >= {c}",
        f"round({a}.x / 3, 1) < 1.5",
        f"CASE WHEN {a}.ok THEN {a}.x ELSE {a}.n END > {c}",
        f"CASE {a}.n WHEN 1 THEN {a}.x WHEN 2 THEN 3 ELSE 0 END >= 0",
        f"extract(second FROM {a}.ts) >= 4",
        f"date_part('minute', {a}.ts) = 14",
        f"date_trunc('minute', {a}.ts) < {_START}",
        f"{a}.ts >= {_START} - {seconds(8)}",
        *(f"{name}(abs({a}.x) + 1) > 1.7" for name in REAL),
        f"power({a}.x, 2) > 3.3",
        f"heat({a}.x, {a}.n) > {c}",
        f"twice({a}.x) < 9",
        f"CAST({a}.x AS INT) <> 0",
        f"CAST({a}.n AS VARCHAR) <> '2'",
        f"sign({a}.x) > -1",
        f"{a}.ok IS NOT FALSE",
        f"least({a}.x, {a}.n) < 2",
    )
    first: str = r.choice(simple)
    if r.random() < 0.15:
        return f"({first} OR {r.choice(simple)})"
    if r.random() < 0.05:
        return f"NOT ({first})"
    if r.random() < CONSTANT:
        return with_constants(r, first)
    return f"({first})" if " OR " in first else first


def value(r: random.Random, a: str, *, steps: bool = True) -> str:
    """A number of one source, exact for x in quarters. `steps`: also with functions that round."""
    stepped: tuple[str, ...] = (f"floor({a}.x)", f"ceil({a}.x)", f"trunc({a}.x)", f"CAST({a}.x AS BIGINT)")
    return r.choice(
        (
            *(stepped if steps else ()),
            *(f"{a}.x" for _ in range(6)),
            f"{a}.n",
            f"abs({a}.x)",
            f"({a}.x + {a}.n)",
            f"{a}.x * 2",
            f"-{a}.x",
            f"heat({a}.x, {a}.n)",
            f"coalesce({a}.x, {a}.n)",
            f"CASE WHEN {a}.ok THEN {a}.x ELSE 0 END",
            f"greatest({a}.x, 0)",
            f"least({a}.x, {a}.n)",
        )
    )


def text(r: random.Random, a: str) -> str:
    """A text of one source."""
    return r.choice((f"{a}.w", f"{a}.w", f"upper({a}.w)", f"{a}.w || '!'", f"coalesce({a}.w, {a}.k)"))


def across(r: random.Random, a: str, b: str) -> str:
    """A condition on two sources. No value in quarters or eighths is near a threshold, so rounding decides
    nothing: Tamis may also raise alarms that hold only with another rounding.
    """
    left, right = value(r, a, steps=False), value(r, b, steps=False)
    least = r.randint(-3, 5)
    # No sum or mean of a few quarters differs by exactly this much from another: rounding would decide then.
    c = f"{least}.37" if r.random() < 0.5 else f"{least}.73"
    found: str = r.choice(
        (
            *(f"{left} - {right} > {c}" for _ in range(3)),
            f"{left} + {right} >= {c}",
            f"{left} + {right} < {c}",
            f"abs({left} - {right}) <= {max(least, 0)}.7",
            f"abs({left} - {right}) > {max(least, 0)}.7",
            f"{left} * {right} > {c}",
            f"greatest({left}, {right}) > {c}",
            f"least({left}, {right}) < {c}",
            f"CASE WHEN {a}.ok THEN {left} + {right} ELSE {left} - {right} END > {c}",
            f"floor({left} - {right}) >= {least}",
            f"ceil({left} + {right} - 0.3) > {least}",
            f"coalesce({left}, 0) + {right} > {c}",
            f"({left} - {right} > {least + 4}.3 OR {left} + {right} < {least - 6}.3)",
            f"{left} > {right} + 0.3",
            f"{a}.n <> {b}.n",
            f"{a}.n + {b}.n > 2",
            f"{a}.w < {b}.w",
            f"{a}.w = {b}.w",
            f"{a}.w || {b}.w <> 'aB'",
        )
    )
    return with_constants(r, found) if r.random() < CONSTANT else found


def over(r: random.Random, a: str) -> str:
    """A window function over one stream, a number."""
    window = f"PARTITION BY {a}.k ORDER BY {a}.ts"
    rows = r.choice(("3 PRECEDING AND 1 PRECEDING", "2 PRECEDING AND CURRENT ROW"))
    span = f"RANGE BETWEEN {seconds(r.choice((1, 2, 5)))} PRECEDING AND CURRENT ROW"
    return r.choice(
        (
            f"{a}.x - lag({a}.x) OVER ({window})",
            f"{a}.x - lag({a}.x, 2, 0) OVER ({window})",
            f"lag({a}.n) OVER ({window})",
            f"{a}.x - min({a}.x) OVER ({window} ROWS BETWEEN {rows})",
            f"max({a}.n) OVER ({window} ROWS BETWEEN {rows})",
            f"sum({a}.x) OVER ({window} ROWS BETWEEN {rows})",
            f"avg({a}.x) OVER ({window} ROWS BETWEEN {rows})",
            f"count(*) FILTER (WHERE {a}.ok) OVER ({window} ROWS BETWEEN {rows})",
            f"first_value({a}.x) OVER ({window} ROWS BETWEEN {rows})",
            f"{a}.x - min({a}.x) OVER ({window} {span})",
            f"count(*) OVER ({window} {span})",
            f"avg({a}.x) OVER ({window} {span})",
            f"sum({a}.n) OVER ({window} {span})",
            f"({a}.x - lag({a}.x) OVER ({window}))"
            f" / nullif(extract(epoch FROM {a}.ts - lag({a}.ts) OVER ({window})), 0)",
        )
    )
