"""HAVING that is said to be never true: DuckDB finds no group for it among all small groups of values."""

from __future__ import annotations

import itertools
import random

import duckdb
from tests.oracle.random_cases import SEED, cases
from tests.rows_for_duckdb import insert

from tamis.analysis.contradictory_having import contradictory_having
from tamis.query.model import Explain
from tamis.query.parse import catalog_of, parse

NUMBERS = (-1.5, 0.25, 2.0)
WHOLE = (1, 2, 4)
STREAM = """CREATE STREAM s (g INT, x DOUBLE CHECK (x BETWEEN -1.5 AND 2),
  n INT NOT NULL CHECK (n BETWEEN 1 AND 4), ok BOOLEAN, ts TIMESTAMP, WATERMARK FOR ts AS ts)"""
CALLS = (
    *("min({})", "max({})", "avg({})", "sum({})", "median({})", "count({})"),
    *(
        "stddev({})",
        "stddev_pop({})",
        "var_pop({})",
        "variance({})",
        "count(DISTINCT {})",
        "sum({}) FILTER (WHERE ok)",
        "count({}) FILTER (WHERE n > 3)",
        "count({}) FILTER (WHERE x > 2)",
    ),
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY {})",
    "percentile_disc(0.7) WITHIN GROUP (ORDER BY {})",
)


def test_no_group_meets_what_is_never_true() -> None:
    r = random.Random(SEED)
    catalog, reference = catalog_of(STREAM), _every_small_group()
    found = possible = 0
    for _ in range(cases(0.012)):
        where = r.choice(("", "", f" WHERE x > {r.choice(NUMBERS)}", f" WHERE n < {r.choice(WHOLE)} AND ok"))
        having = f" {r.choice(('AND', 'AND', 'OR'))} ".join(_condition(r) for _ in range(r.randint(1, 3)))
        sql = f"count(*) AS n{where} GROUP BY g, window_end HAVING {having}".replace(
            "count(*) AS n", "SELECT g, count(*) AS c FROM TUMBLE(s, ts, INTERVAL '1' MINUTE)"
        )
        (statement,) = parse(f"EXPLAIN {sql}", catalog)
        assert isinstance(statement, Explain)
        query = statement.target.query  # type: ignore[union-attr]
        never = contradictory_having(query, {one.alias: catalog.streams["s"] for one in query.sources})
        groups = reference.execute(f"SELECT g FROM s{where} GROUP BY g HAVING {having}").fetchall()
        assert never is None or not groups, (SEED, sql, never, groups[:3])
        found += never is not None
        possible += bool(groups)
    assert found > 20
    assert possible > 20


def _every_small_group() -> duckdb.DuckDBPyConnection:
    """A table with every group of at most two rows, and some of three."""
    reference = duckdb.connect()
    reference.execute("CREATE TABLE s (g INT, x DOUBLE, n BIGINT, ok BOOLEAN)")
    rows = list(itertools.product((*NUMBERS, None), WHOLE, (True, False)))
    groups = [[*one] for size in (1, 2) for one in itertools.combinations_with_replacement(rows, size)]
    groups += [
        [*one] for one in itertools.islice(itertools.combinations_with_replacement(rows, 3), 0, None, 23)
    ]
    values = [(number, *row) for number, group in enumerate(groups) for row in group]
    insert(reference, "s", values)
    return reference


def _condition(r: random.Random) -> str:
    call = r.choice(CALLS).format(r.choice("xn")) if r.random() < 0.85 else "count(*)"
    form = r.random()
    if form < 0.1:
        return f"{call} IS {r.choice(('', 'NOT '))}NULL"
    if form < 0.25:
        column = r.choice("xn")
        return f"max({column}) {r.choice('+-')} min({column}) {r.choice(('<', '>'))} {r.randint(-4, 9)}"
    if form < 0.35:
        column = r.choice("xn")
        a, b = r.sample(("min", "max", "avg", "median"), 2)
        return f"{a}({column}) {r.choice(('<', '>'))} {b}({column})"
    if form < 0.4:
        return f"coalesce({call}, 3) > {r.randint(-2, 6)}"
    return (
        f"{call} {r.choice(('<', '<=', '=', '>=', '>', '<>'))} {r.choice((-2, -1.5, 0, 0.25, 1, 2, 3, 4, 5))}"
    )
