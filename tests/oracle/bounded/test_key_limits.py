"""Queries that only the number of keys limits, against DuckDB.

After every tuple the rows are DuckDB's, with no more entries than the bound, however far apart the values
lie.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import duckdb
import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing.piecewise_runs import batch, rows
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.planning.explain import explain
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM s (k INT KEY, a INT, b INT) WITH (keys = 3);
CREATE STREAM t (j INT KEY, l INT KEY, c INT) WITH (keys = 2);
CREATE STREAM u (x INT, y INT);
"""
KEYS = {"s": (1, 3), "t": (2, 2), "u": (0, 0)}  # how many columns make a key, and how many keys there are
COLUMNS = {"s": ("k", "a", "b"), "t": ("j", "l", "c"), "u": ("x", "y")}
TYPED = {name: tuple((column, Type.INT) for column in columns) for name, columns in COLUMNS.items()}


@pytest.mark.parametrize("times", also_long(30))
def test_the_number_of_keys_limits_the_entries(times: int) -> None:
    r = random.Random(SEED)
    reference, catalog = duckdb.connect(), catalog_of(STREAMS)
    for name, columns in COLUMNS.items():
        reference.execute(f"CREATE TABLE {name} ({', '.join(f'{one} BIGINT' for one in columns)})")
    unlimited = catalog_of(re.sub(r" WITH \(keys = \d\)", "", STREAMS))
    tried = productive = 0
    while tried < cases(0.0008) * times:
        sql = _query(r)
        bound = _bound(catalog, sql)
        if bound is not None and _bound(unlimited, sql) is None:
            tried += 1
            productive += _play(r, reference, catalog, (sql, bound))
    assert productive > tried // 10


def _bound(catalog: Catalog, sql: str) -> int | None:
    memory = explain(catalog, queries.alert_of(catalog, sql)).memory
    return memory.bound if memory.verdict == "bounded" else None


def _query(r: random.Random) -> str:
    sources = r.choice(
        (["s x"], ["s x", "t y"], ["s x", "t y"], ["s x", "u y"], ["s x", "s y"], ["t x", "u y"])
    )
    names = [f"{one.split()[1]}.{column}" for one in sources for column in COLUMNS[one.split()[0]]]
    conditions = []
    for _ in range(r.randint(0, 4)):
        left, right = r.sample(names, 2)
        match r.randrange(4):
            case 0:
                conditions.append(f"{left} = {right}")
            case 1:
                conditions.append(
                    f"{left} BETWEEN {right} - {r.randint(0, 2)} AND {right} + {r.randint(0, 3)}"
                )
            case 2:
                conditions.append(f"{left} {r.choice(('<', '<=', '>'))} {right}")
            case _:
                conditions.append(f"{left} BETWEEN 0 AND {r.randint(0, 2)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    shown = ", ".join(f"{one} AS o{i}" for i, one in enumerate(r.sample(names, r.randint(0, 2)) or ["1"]))
    return f"SELECT {r.choice(('', 'DISTINCT '))}{shown} FROM {', '.join(sources)}{where}"


def _play(
    r: random.Random, reference: duckdb.DuckDBPyConnection, catalog: Catalog, asked: tuple[str, int]
) -> bool:
    sql, bound = asked
    alert = queries.alert_of(catalog, sql)
    query = queries.standing_of(alert, catalog)
    spread = r.choice((2, 9, 1000))
    keys = {
        name: [[r.randint(-spread, spread) for _ in range(width)] for _ in range(count)]
        for name, (width, count) in KEYS.items()
    }
    tuples: list[tuple[str, list[int]]] = []
    given: Counter[tuple[object, ...]] = Counter()
    reference.execute("DELETE FROM s; DELETE FROM t; DELETE FROM u")
    for _ in range(r.choice((10, 25))):
        name = r.choice(sorted({source.stream for source in alert.query.sources}))
        key = r.choice(keys[name]) if keys[name] else []
        # Some values lie near to a key, which joins more.
        near = r.choice([value for own in keys.values() for one in own for value in one])
        rest = len(COLUMNS[name]) - len(key)
        one = [*key, *(r.choice((near + r.randint(-3, 3), r.randint(-spread, spread))) for _ in range(rest))]
        tuples.append((name, one))
        reference.execute(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in one)})", one)
        given.update(row[1:] for row in rows(query.take(name, batch(TYPED, name, [tuple(one)]), 1)))
        assert query.entries() <= bound, (SEED, sql, tuples, query.entries(), bound)
    assert given == Counter(reference.execute(sql).fetchall()), (SEED, sql, tuples, given)
    return bool(given)


@pytest.mark.parametrize(
    ("sql", "verdict", "formula"),
    [
        ("SELECT DISTINCT k FROM s", "bounded", "3 (keys of s) rows already given"),
        ("SELECT j, count(*) AS n FROM t GROUP BY j", "bounded", "2 (keys of t) groups"),
        (
            "SELECT DISTINCT s.a FROM s, t WHERE s.a BETWEEN s.k AND s.k + 4 AND t.j = s.k",
            "bounded",
            "3 (keys of s) * 5 (values of s.a for each key) entries of s + 2 (keys of t) entries of t + 3"
            " (keys of s) * 5 (values of s.a for each key) rows already given",
        ),
        (
            "SELECT s.k FROM s, t WHERE s.k = t.j AND s.a = 3 AND t.l BETWEEN 1 AND 500",
            "bounded",
            "3 (keys of s) entries of s + 2 (keys of t) entries of t",
        ),
        # Which keys are still to come isn't known: all x so far may be met.
        ("SELECT DISTINCT s.k FROM s, u WHERE s.k = u.x", "unbounded", None),
        ("SELECT s.k FROM s, u WHERE s.k <= u.x", "unbounded", None),
        # For one key already, every a may be met.
        ("SELECT DISTINCT s.k FROM s, t WHERE s.k = t.j AND s.a = t.c", "unbounded", None),
        # Between a key and a constant there may be any number of values.
        ("SELECT DISTINCT b FROM s WHERE b >= k AND b <= 9", "unknown", None),
    ],
)
def test_verdicts(sql: str, verdict: str, formula: str | None) -> None:
    catalog = catalog_of(STREAMS)
    memory = explain(catalog, queries.alert_of(catalog, sql)).memory
    assert memory.verdict == verdict, memory
    assert formula in (None, memory.formula)
