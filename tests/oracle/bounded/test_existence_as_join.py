"""SELECT DISTINCT beside EXISTS, against DuckDB over all tuples."""

from __future__ import annotations

import random

import duckdb
import pytest
from tests.operators import compile_query
from tests.oracle.operators.standing.piecewise_runs import Columns, batch
from tests.oracle.random_cases import SEED, cases
from tests.rows_for_duckdb import insert

from tamis.bounded.timeless.verdict import memory_verdict
from tamis.expressions.nodes import Type
from tamis.operators.contract import StandingEvaluator
from tamis.query.model import TimelessSelect
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM s (k INT KEY, x INT NOT NULL, y INT) WITH (keys = 4);
CREATE STREAM t (k INT KEY, x INT NOT NULL, y INT) WITH (keys = 4);
CREATE STREAM u (k INT KEY, x INT NOT NULL, y INT) WITH (keys = 4);
"""
QUERIES = (
    "SELECT DISTINCT s.k FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND s.x + t.x > 14)",
    "SELECT DISTINCT k FROM s WHERE x > 4 AND k IN (SELECT k FROM t WHERE t.y < s.y)",
    "SELECT DISTINCT s.k, t.k AS other FROM s, t WHERE s.x + t.x > 15"
    " AND EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.x + t.x > 12)",
    "SELECT DISTINCT s.k FROM s SEMI JOIN t ON t.k = s.k AND abs(s.x - t.x) > 7",
    "SELECT DISTINCT s.k FROM s WHERE EXISTS (SELECT 1 FROM t JOIN u ON t.k = u.k WHERE t.k = s.k"
    " AND t.x + u.x + s.x > 22) AND EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.x + s.x > 13)",
)
_COLUMNS: Columns = dict.fromkeys("stu", (("k", Type.INT), ("x", Type.INT), ("y", Type.INT)))


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_duckdb(sql: str) -> None:
    r = random.Random(SEED)
    catalog = catalog_of(f"{STREAMS} CREATE ALERT q AS {sql};")
    query = catalog.alerts["q"].query
    assert isinstance(query, TimelessSelect)
    memory = memory_verdict(query, catalog)
    assert memory.bound is not None
    productive = 0
    for _ in range(cases(0.0005)):
        evaluator: StandingEvaluator | None = compile_query(query, catalog)
        assert evaluator is not None
        tuples: dict[str, list[tuple[int, int, int | None]]] = {"s": [], "t": [], "u": []}
        given: list[tuple[object, ...]] = []
        with duckdb.connect() as reference:
            for name in tuples:
                reference.execute(f"CREATE TABLE {name} (k INT, x INT, y INT)")
            for _ in range(r.randint(1, 12)):
                name = r.choice("stu")
                new = [
                    (r.randint(1, 4), r.randint(0, 9), r.choice((None, *range(6))))
                    for _ in range(r.randint(1, 4))
                ]
                tuples[name] += new
                insert(reference, name, new)
                if name in evaluator.streams:
                    rows = evaluator.take(name, batch(_COLUMNS, name, new), len(new))
                    given += zip(*(one.to_list() for one in rows.columns.values()), strict=True)
                wanted = reference.execute(sql).fetchall()
                assert sorted(given) == sorted(wanted), (sql, tuples)
                assert evaluator.entries() <= memory.bound
            productive += bool(given)
    assert productive
