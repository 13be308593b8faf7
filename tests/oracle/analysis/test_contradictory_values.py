"""Contradictions found by enclosures: DuckDB and exact arithmetic find no tuples that meet the conditions."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import duckdb
import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.rows_for_duckdb import insert

from tamis.analysis.conjuncts import analyse
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Call, Column, Type
from tamis.expressions.vectors import Vector
from tamis.query.parse import catalog_of

TEXTS = ("", "a", "ab", "abc", "Ab", "B", "b", "bc", "b ", " a", "A")
STREAMS = """
CREATE STREAM sa (k VARCHAR KEY, ts TIMESTAMP, s VARCHAR, x DOUBLE CHECK (x BETWEEN 0 AND 10),
  y DOUBLE NOT NULL CHECK (y > -2 AND y <> 3), z DOUBLE CHECK (z < x), n INT CHECK (n IN (1, 2, 5)),
  WATERMARK FOR ts AS ts);
CREATE STREAM sb (k VARCHAR KEY, ts TIMESTAMP, s VARCHAR CHECK (s IN ('a', 'ab', 'B')),
  x DOUBLE CHECK (x BETWEEN -4 AND 6), n BIGINT CHECK (n BETWEEN 0 AND 5), WATERMARK FOR ts AS ts);
"""
CHECKS_A = (
    "x BETWEEN 0 AND 10 IS NOT FALSE AND y > -2 AND y <> 3 AND (z < x) IS NOT FALSE"
    " AND n IN (1, 2, 5) IS NOT FALSE"
)
CHECKS_B = (
    "s IN ('a', 'ab', 'B') IS NOT FALSE AND x BETWEEN -4 AND 6 IS NOT FALSE"
    " AND n BETWEEN 0 AND 5 IS NOT FALSE"
)
NUMBERS = ("a.x", "a.y", "a.z", "a.n", "b.x", "b.n")
FUNCTIONS = (
    "{} * {}",
    "{} + {}",
    "{} - {}",
    "abs({} - {})",
    "greatest({}, {})",
    "least({}, {})",
    "coalesce({}, {})",
    "mod({}, 3)",
    "mod({}, 2.5)",
    "round({}, 1)",
    "floor({})",
    "ceil({})",
    "sign({})",
    "abs({})",
    "sqrt(abs({}))",
    "exp({} / 4)",
    "ln(abs({}) + 1)",
    "power({}, 2)",
    "{} / (abs({}) + 1)",
    "CASE WHEN {} > 2 THEN {} ELSE -1 END",
    "length(a.s)",
    "length(lower(b.s))",
    "extract(hour FROM a.ts)",
    "CAST({} AS INT)",
    "{}",
    "{}",
)
TEXTUAL = (
    "a.s = '{}'",
    "a.k = '{}'",
    "b.k = '{}'",
    "b.s = '{}'",
    "a.s = b.s",
    "a.s <> '{}'",
    "a.s LIKE '{}%'",
    "a.s LIKE '%{}'",
    "a.s LIKE '_{}'",
    "lower(a.s) = '{}'",
    "upper(b.s) = '{}'",
    "trim(a.s) = '{}'",
    "a.s ILIKE '{}%'",
    "a.s || 'x' = '{}x'",
    "a.s IN ('{}', '{}')",
    "substring(a.s, 1, 1) = '{}'",
    "a.s IS NULL",
    "NOT (a.s = '{}')",
    "a.s IS DISTINCT FROM '{}'",
    "a.s IS NOT DISTINCT FROM b.s",
)


def number(r: random.Random, depth: int = 2) -> str:
    if depth == 0 or r.random() < 0.3:
        return r.choice(NUMBERS)
    form = r.choice(FUNCTIONS)
    return form.format(*(number(r, depth - 1) for _ in range(form.count("{}"))))


def condition(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.3:
        form = r.choice(TEXTUAL)
        return form.format(*(r.choice(TEXTS) for _ in range(form.count("{}"))))
    if kind < 0.4:
        return f"{r.choice(NUMBERS)} IS {r.choice(('', 'NOT '))}NULL"
    constant = r.choice((-5, -4, -2, -1, 0, 0.5, 1, 2, 2.5, 3, 5, 6, 10, 16, 23, 24, 60, 100))
    left, op = number(r), r.choice(("<", "<=", "=", ">", ">=", "<>"))
    right = number(r, 1) if r.random() < 0.2 else str(constant)
    found = f"({left}) {op} ({right})"
    if kind > 0.9:
        return f"({found} OR {condition(r)})"
    if kind > 0.85:
        return f"NOT ({found} AND {condition(r)})"
    if kind > 0.8:
        return f"({left}) IS DISTINCT FROM ({right})"
    return found


def tables(r: random.Random) -> duckdb.DuckDBPyConnection:
    """Random tuples that edges accept."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE a0 (k VARCHAR, ts TIMESTAMP, s VARCHAR, x DOUBLE, y DOUBLE, z DOUBLE, n INT)"
    )
    connection.execute("CREATE TABLE b0 (k VARCHAR, ts TIMESTAMP, s VARCHAR, x DOUBLE, n BIGINT)")
    values = [None, -4.0, -2.0, -1.9, -1.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.5, 2.9, 3.0, 3.1, 5.0, 5.9, 6.0, 9.9]

    def text() -> str | None:
        return r.choice((None, *TEXTS))

    def time() -> str:
        return f"2024-01-{r.randint(1, 28):02} {r.randint(0, 23):02}:{r.randint(0, 59):02}:00"

    def whole() -> int | None:
        return r.choice((None, 0, 1, 2, 3, 4, 5))

    tuples_a = [(text(), time(), text(), *(r.choice(values) for _ in range(3)), whole()) for _ in range(3000)]
    tuples_b = [(text(), time(), text(), r.choice(values), whole()) for _ in range(1500)]
    insert(connection, "a0", tuples_a)
    insert(connection, "b0", tuples_b)
    connection.execute(f"CREATE TABLE a AS SELECT * FROM a0 WHERE {CHECKS_A} LIMIT 500")
    connection.execute(f"CREATE TABLE b AS SELECT * FROM b0 WHERE {CHECKS_B} LIMIT 200")
    return connection


def contradiction(where: list[str]) -> str | None:
    catalog = catalog_of(
        f"{STREAMS} CREATE ALERT q AS SELECT a.ts FROM sa a JOIN sb b ON a.k = b.k AND a.ts = b.ts"
        f" WHERE {' AND '.join(where)};"
    )
    return analyse(catalog.alerts["q"].query, catalog).contradiction


@pytest.mark.parametrize("times", also_long(400))
def test_no_tuples_meet_what_is_refused(times: int) -> None:
    r = random.Random(f"{SEED} contradictory values")
    connection, seen = tables(r), Counter[str]()
    for _ in range(cases(0.002) * times):
        where = [condition(r) for _ in range(r.randint(1, 3))]
        sql = f"SELECT a.k, b.k FROM a, b WHERE a.k = b.k AND {' AND '.join(where)} LIMIT 1"
        rows = connection.execute(sql).fetchall()
        found = contradiction(where)
        assert not (rows and found), f"{where}: {found}"
        seen["rows" if rows else "found" if found else "left"] += 1
    assert seen["found"] > seen["left"] / 4 > 0 and seen["rows"] > 10, seen


@pytest.mark.parametrize("times", also_long(400))
def test_what_some_tuples_meet_is_not_refused(times: int) -> None:
    """Many conditions that hold together, since all of them are true for the same two tuples."""
    r = random.Random(f"{SEED} satisfied values")
    connection, seen = tables(r), Counter[str]()
    pairs = connection.execute("SELECT a.rowid, b.rowid FROM a, b WHERE a.k = b.k ORDER BY ALL").fetchall()
    for _ in range(cases(0.0008) * times):
        conditions, pair = [condition(r) for _ in range(40)], r.choice(pairs)
        tests = ", ".join(f"coalesce({one}, FALSE)" for one in conditions)
        both = f"SELECT {tests} FROM a, b WHERE a.rowid = ? AND b.rowid = ?"
        row = connection.execute(both, pair).fetchone()
        assert row is not None
        where = [one for one, true in zip(conditions, row, strict=True) if true]
        if where:
            assert contradiction(where) is None, where
            seen["conditions"] += len(where)
    assert seen["conditions"] > 50


EXACT: tuple[tuple[str, Callable[[Fraction, Fraction, Fraction], Fraction]], ...] = (
    ("a.x * b.x", lambda x, y, u: x * u),
    ("a.x + b.x", lambda x, y, u: x + u),
    ("a.x * b.x + a.y", lambda x, y, u: x * u + y),
    ("(a.x - a.y) * b.x", lambda x, y, u: (x - y) * u),
    ("abs(a.x - b.x) * a.y", lambda x, y, u: abs(x - u) * y),
    ("a.x * a.x - b.x", lambda x, y, u: x * x - u),
    ("floor(a.x + b.x)", lambda x, y, u: Fraction((x + u).__floor__())),
    ("power(a.x - b.x, 3)", lambda x, y, u: (x - u) ** 3),
)


def test_numbers_that_meet_conditions_exactly_are_not_refused() -> None:
    """Conditions whose constants are next to an exact value, which the computed value may not reach."""
    r = random.Random(f"{SEED} exact values")
    found = Counter[bool]()
    for _ in range(cases(0.001)):
        given = [float(r.choice((0.1, 0.2, 0.3, 1 / 3, 0.7, 1.1, 2.9, 5.9))) for _ in range(3)]
        where = [f"a.x = {given[0]!r}", f"a.y = {given[1]!r}", f"b.x = {given[2]!r}"]
        sql, exactly = r.choice(EXACT)
        x, y, u = map(Fraction, given)
        value = exactly(x, y, u)
        constant = float(value)
        for op, holds in ((">=", value >= Fraction(constant)), ("<=", value <= Fraction(constant))):
            some = contradiction([*where, f"{sql} {op} {constant!r}"])
            assert not (holds and some), (given, sql, op, constant)
            found[bool(some)] += 1
        for op, beyond in ((">", constant + abs(constant) / 2 + 1), ("<", constant - abs(constant) / 2 - 1)):
            found[bool(contradiction([*where, f"{sql} {op} {beyond!r}"]))] += 1
    assert found[True] > found[False] / 2


@pytest.mark.parametrize("function", ["lower", "upper", "trim", "ltrim", "rtrim"])
def test_functions_leave_their_own_results_as_they_are(function: str) -> None:
    """For each code point, with a blank after it. No character above U+20000 has two cases."""
    codes = [*range(1, 0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 61)]
    texts = [f"{chr(i)} " for i in codes]
    apply = Call(function, (Column("", "s", Type.VARCHAR),), Type.VARCHAR)
    first = evaluate(apply, {("", "s"): Vector.from_list(texts, Type.VARCHAR)}, len(texts))
    again = evaluate(apply, {("", "s"): first}, len(texts))
    assert (first.data == again.data).all()


_WHOLE: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("n", lambda n, m: n),
    ("-n", lambda n, m: -n),
    ("n + 0", lambda n, m: n),
    ("n - 1", lambda n, m: n - 1),
    ("n + m", lambda n, m: n + m),
    ("n - m", lambda n, m: n - m),
    ("n * 1", lambda n, m: n),
    ("abs(n)", lambda n, m: abs(n)),
    ("greatest(n, m)", max),
    ("least(n, m)", min),
    ("coalesce(n, m)", lambda n, m: n),
    ("CASE WHEN n > m THEN n ELSE m END", max),
    ("n % 1000", lambda n, m: int(math.copysign(abs(n) % 1000, n))),
)


def test_whole_numbers_of_any_size_are_exact() -> None:
    """Conditions that a tuple meets do not contradict each other, also with numbers that are no DOUBLEs."""
    r = random.Random(SEED)
    near = (2**53, -(2**53), 2**60, 2**62, -(2**62), 9007199254740993, 0)
    stream = "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, n BIGINT{}, m BIGINT, WATERMARK FOR ts AS ts);"
    for _ in range(300):
        n, m = (r.choice(near) + r.randint(-3, 3) for _ in range(2))
        where = []
        for text, exactly in r.sample(_WHOLE, r.randint(1, 3)):
            value = exactly(n, m)
            if abs(value) < 2**63:
                larger, smaller = value + r.randint(0, 2), value - r.randint(0, 2)
                forms = (f"= {value}", f"IN ({value}, 7)", f"<= {larger}", f">= {smaller}", f"< {larger + 1}")
                where.append(f"{text} {r.choice(forms)}")
        check = r.choice(("", f" CHECK (n = {n})", f" CHECK (n IN ({n}, {n + 2}))", f" CHECK (n >= {n})"))
        if where and max(abs(n), abs(m)) + 3 < 2**63:
            sql = f"{stream.format(check)} CREATE ALERT q AS SELECT k FROM s WHERE {' AND '.join(where)};"
            catalog = catalog_of(sql)
            assert analyse(catalog.alerts["q"].query, catalog).contradiction is None, sql
