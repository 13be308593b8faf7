"""Batches of tuples give the same rows as tuples one by one.

The values include the ends of their types, where 64 bits don't hold all differences. Some batches have so
many tuples that only few are evaluated one by one.
"""

from __future__ import annotations

import random

import duckdb
import pytest
from tests.operators import standing_evaluator
from tests.oracle.operators.standing.piecewise_runs import Row, Tuples, batch, pieces, rows
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.operators.contract import StandingEvaluator

STREAMS = """
CREATE STREAM s (k INT, a BIGINT, x DOUBLE, v VARCHAR);
CREATE STREAM t (j INT, b BIGINT, y DOUBLE, w VARCHAR);
"""
KINDS = (Type.INT, Type.BIGINT, Type.DOUBLE, Type.VARCHAR)
COLUMNS = {name: tuple(zip(columns, KINDS, strict=True)) for name, columns in (("s", "kaxv"), ("t", "jbyw"))}
WHOLE = (-(2**63), 1 - 2**63, -(2**62), -1, 0, 1, 2**53, 2**62, 2**63 - 1)
REAL = (-1.7e308, -2.5, -5e-324, -0.0, 0.0, 5e-324, 2.5, 1e17, 1.7e308)
SHAPES = (
    "SELECT DISTINCT k, j FROM s, t WHERE {few} AND {whole}",
    "SELECT DISTINCT k FROM s, t WHERE {few} AND {real}",
    "SELECT DISTINCT k, v FROM s, t WHERE {few} AND {real} AND v = w AND v IN ('p', 'q')",
    "SELECT DISTINCT k FROM s, t WHERE {few} AND {real} AND {whole}",
    "SELECT DISTINCT 1 AS o FROM s, t WHERE k = j AND {whole}",
    "SELECT DISTINCT l.k FROM s l, s r WHERE l.a < r.a AND l.k = r.k AND l.k BETWEEN 1 AND 3",
    "SELECT k, x FROM s WHERE {few_s} AND x IN (0, 2.5) UNION SELECT j, y FROM t WHERE {few_t} AND y = 0",
    "SELECT k, j FROM s, t WHERE {few} AND a BETWEEN 0 AND 1 AND b >= a AND b <= 1",
    "SELECT k, max(a) AS m, min(b) AS n, count(DISTINCT j) AS c FROM s, t WHERE {few} GROUP BY k",
    "SELECT k, max(x) AS m, count(*) AS n, sum(x) AS p FROM s WHERE {few_s} GROUP BY k HAVING count(*) < 4",
)


@pytest.mark.parametrize("times", also_long(30))
def test_batches_give_what_tuples_give_one_by_one(times: int) -> None:
    r = random.Random(SEED)
    reference = duckdb.connect()
    for name, columns in COLUMNS.items():
        kinds = ", ".join(f"{column} {'BIGINT' if kind is Type.INT else kind}" for column, kind in columns)
        reference.execute(f"CREATE TABLE {name} ({kinds})")
    for number in range(max(len(SHAPES), cases(0.001) * times)):
        sql = _query(r, SHAPES[number % len(SHAPES)])
        tuples = [_tuple(r) for _ in range(r.choice((20, 60)))]
        statements = f"{STREAMS} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};"

        def make(statements: str = statements) -> StandingEvaluator:
            return standing_evaluator(statements, "q")

        query = make()
        wanted: list[Row] = []
        for place, (name, one) in enumerate(tuples):
            if name in query.streams:
                made = rows(query.take(name, batch(COLUMNS, name, [one]), 1))
                wanted += [(place, *row[1:]) for row in made]
        wanted.sort(key=lambda row: (row[0], repr(row)))
        read = {place for place, (name, _) in enumerate(tuples) if name in query.streams}
        kept = [tuples[place] for place in sorted(read)]
        places = dict(enumerate(sorted(read)))
        found, cut = pieces(r, make, COLUMNS, kept)
        again = [(places[int(str(row[0]))], *row[1:]) for row in found]
        assert again == wanted, (SEED, sql, tuples, again, wanted)
        assert cut.entries() == query.entries(), (SEED, sql, tuples)
        if "GROUP BY" not in sql:
            _compare(reference, sql, tuples, wanted)


def _compare(reference: duckdb.DuckDBPyConnection, sql: str, tuples: Tuples, found: list[Row]) -> None:
    reference.execute("DELETE FROM s; DELETE FROM t")
    for name, one in tuples:
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", one)
    wanted = sorted(reference.execute(sql).fetchall(), key=repr)
    assert sorted((_plain(row[1:]) for row in found), key=repr) == sorted(map(_plain, wanted), key=repr), (
        SEED,
        sql,
        tuples,
    )


def _plain(row: Row) -> Row:
    """Without the sign of a zero, which no comparison sees."""
    return tuple(0.0 if value == 0.0 and isinstance(value, float) else value for value in row)


def _query(r: random.Random, shape: str) -> str:
    less = ("<", "<=", ">", ">=", "=")
    return shape.format(
        few="k BETWEEN 0 AND 2 AND j BETWEEN 1 AND 3",
        few_s="k BETWEEN 0 AND 2",
        few_t="j BETWEEN 1 AND 3",
        whole=f"a {r.choice(less)} b",
        real=f"x {r.choice(less)} y",
    )


def _tuple(r: random.Random) -> tuple[str, tuple[object, ...]]:
    values = (r.randint(0, 3), r.choice(WHOLE), r.choice(REAL), r.choice(("p", "q", "other", "more")))
    return r.choice("st"), tuple(None if r.random() < 0.05 else value for value in values)
