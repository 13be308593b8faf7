"""Random SQL over two streams without time, random tuples, and DuckDB's tables for them."""

from __future__ import annotations

import random
import re

import duckdb
from tests.operators import compile_query
from tests.oracle.constant_conditions import with_constants

from tamis.expressions.nodes import Type
from tamis.operators.contract import StandingEvaluator
from tamis.query.model import AlertDef, Catalog, Explain
from tamis.query.parse import parse

STREAMS = """
CREATE STREAM s (a INT, b INT, f BOOLEAN, v VARCHAR, x DOUBLE);
CREATE STREAM t (c INT, d INT CHECK (d BETWEEN -2 AND 3), g BOOLEAN, w VARCHAR, y DOUBLE);
"""
KINDS = (Type.INT, Type.INT, Type.BOOLEAN, Type.VARCHAR, Type.DOUBLE)
COLUMNS = {"s": tuple(zip("abfvx", KINDS, strict=True)), "t": tuple(zip("cdgwy", KINDS, strict=True))}
CONSTANT = 0.25  # the share of conditions with constant parts
TEXTS = ("x", "y", "z")
Tuples = list[tuple[str, tuple[object, ...]]]


def reference() -> duckdb.DuckDBPyConnection:
    """An empty database with both streams as tables."""
    found = duckdb.connect()
    for name, columns in COLUMNS.items():
        kinds = [f"{column} {'BIGINT' if kind is Type.INT else kind}" for column, kind in columns]
        found.execute(f"CREATE TABLE {name} ({', '.join(kinds)})")
    return found


def alert_of(catalog: Catalog, sql: str) -> AlertDef:
    """A query as an alert without name."""
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain)
    assert isinstance(statement.target, AlertDef)
    return statement.target


def standing_of(alert: AlertDef, catalog: Catalog) -> StandingEvaluator:
    """A query as a standing one."""
    found = compile_query(alert.query, catalog)
    assert found is not None
    return found


def tuple_of(r: random.Random, name: str) -> tuple[object, ...]:
    """A random tuple within the declared domain, with NULLs."""
    second = r.randint(-2, 3) if name == "t" else r.randint(-5, 5)
    number = r.choice((0.1, 0.2, -1.5, 1e6, 3.0))
    values: list[object] = [r.randint(-5, 5), second, r.random() < 0.5, r.choice(TEXTS), number]
    return tuple(None if r.random() < 0.08 else value for value in values)


def columns_of(sources: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """The columns of FROM: whole numbers, flags, texts, numbers."""
    found: tuple[list[str], list[str], list[str], list[str]] = ([], [], [], [])
    for source in sources:
        stream, alias = source.split()
        names = [f"{alias}.{name}" for name, _ in COLUMNS[stream]]
        for kind, own in zip(found, (names[:2], names[2:3], names[3:4], names[4:]), strict=True):
            kind.extend(own)
    return found


def sources_of(r: random.Random, *, three: bool = False) -> list[str]:
    """What stands in FROM, `three` sources at times."""
    joins = [["s x"], ["s x", "t y"], ["s x", "t y"], ["s x", "t y"], ["s x", "s y"], ["t x", "s y"]]
    return r.choice([*joins, ["s x", "t y", "s z"]] if three else joins)


_SUBQUERIES = {
    "s": (
        "SELECT a, b, f, v, x FROM s WHERE a <> 2",
        "SELECT b AS a, a - 1 AS b, NOT f AS f, v, -x AS x FROM s",
    ),
    "t": ("SELECT * FROM t WHERE d > -2 AND g", "SELECT c + 1 AS c, d, g, 'x' AS w, y FROM t WHERE y < 5"),
}


def through_subqueries(r: random.Random, sql: str) -> str:
    """The query with some sources replaced by subqueries, in FROM or in WITH."""
    if r.random() < 0.6:
        return sql
    named: list[str] = []

    def subquery(found: re.Match[str]) -> str:
        stream, alias = found.groups()
        inner = r.choice(_SUBQUERIES[stream])
        match r.randrange(4):
            case 0:
                return found[0]
            case 1:
                return f"({inner}) AS {alias}"
            case 2:
                own = "a" if stream == "s" else "d"
                return f"(WITH n AS ({inner}) SELECT * FROM n WHERE {own} IS NOT NULL) {alias}"
            case _:
                named.append(f"w{len(named)} AS ({inner})")
                return f"w{len(named) - 1} {alias}"

    made = re.sub(r"(?<=[ ,])([st]) ([xyz])(?=[ ,]|$)", subquery, sql)
    return f"WITH {', '.join(named)} {made}" if named else made


def where(r: random.Random, sources: list[str], limited: float = 0.5) -> str:
    """A random WHERE with conditions of each kind that is understood, or none."""
    whole, flags, texts, numbers = columns_of(sources)
    conditions = [
        _dense(r, numbers) if r.random() < 0.2 else _condition(r, whole, flags, texts)
        for _ in range(r.randint(0, 4))
    ]
    conditions = [with_constants(r, one) if CONSTANT and r.random() < CONSTANT else one for one in conditions]
    for column in whole:
        if r.random() < limited:
            conditions.append(f"{column} BETWEEN {r.randint(-4, 0)} AND {r.randint(0, 4)}")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _dense(r: random.Random, numbers: list[str]) -> str:
    """A condition on DOUBLE columns, some with the constants that tuples have."""
    op = r.choice(("<", "<=", "=", ">", ">="))
    constant = r.choice(("0.1", "0.2", "-1.5", "3.0", "2", "0"))
    other = r.choice([*numbers, constant])
    one = r.choice(numbers)
    return f"{one} {op} {other if other != one else constant}"


def _condition(r: random.Random, whole: list[str], flags: list[str], texts: list[str]) -> str:
    a, b = r.choice(whole), r.choice(whole)
    op, n = r.choice(("<", "<=", "=", ">", ">=", "!=")), r.randint(-3, 3)
    match r.randrange(9):
        case 0 | 1:
            return f"{a} {op} {b} + {n}"
        case 2:
            return f"{a} - {b} {op} {n}"
        case 3:
            return f"2 * {a} {op} {n}"
        case 4:
            return f"({a} {op} {n} OR {a} = {n - 2})"
        case 5:
            return f"ABS({a} - {b}) <= {abs(n)}"
        case 6:
            return r.choice((flags[0], f"NOT {flags[-1]}", f"{flags[0]} = {flags[-1]}"))
        case 7:
            same = f"{texts[0]} = {texts[-1]}"
            texted = r.choice((f"{texts[0]} IN ('x', 'y')", f"{texts[-1]} != 'z'", same))
            return texted if r.random() < 0.7 else f"{a} {op} {n}.5"
        case _:
            return f"{a} IS {r.choice(('', 'NOT '))}NULL"
