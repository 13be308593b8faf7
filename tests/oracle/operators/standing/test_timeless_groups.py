"""Aggregates over streams without event time: after every tuple, the last row of each group is DuckDB's.

Only groups that changed give rows, and HAVING withdraws rows. A run in pieces gives the same rows.
"""

from __future__ import annotations

import math
import random

import duckdb
import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing.piecewise_runs import batch, pieces, rows
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators.contract import WITHDRAWN
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import catalog_of

Row = tuple[object, ...]
Rows = dict[Row, Row]


@pytest.mark.parametrize("times", also_long(30))
def test_the_last_rows_of_groups_are_those_of_duckdb(times: int) -> None:
    r = random.Random(SEED)
    reference, catalog = queries.reference(), catalog_of(queries.STREAMS)
    tried = productive = 0
    while tried < cases(0.0015) * times:
        sql, grouped = random_query(r, three=True)
        alert = queries.alert_of(catalog, sql)
        memory = explain(catalog, alert).memory
        if memory.verdict == "bounded":
            tried += 1
            productive += _play(r, reference, catalog, (alert, grouped), memory.bound or 0)
    assert productive > tried // 8


def random_query(r: random.Random, *, three: bool = False) -> tuple[str, int]:
    """A query that shows its groups first, and how many columns make a group."""
    sources = queries.sources_of(r, three=three)
    whole, flags, texts, numbers = queries.columns_of(sources)
    labels = [f"CASE WHEN {column} > 0 THEN 'high' WHEN {column} < 1.5 THEN 'low' END" for column in numbers]
    tests = [f"{column} > 0" for column in whole]
    by = r.sample([*whole, *flags, *(f"{column} + 1" for column in whole), *tests, *labels], r.randint(0, 2))
    once = [f"{function}({column})" for function in ("min", "max") for column in [*whole, *numbers]]
    once += [f"count(DISTINCT {column})" for column in whole]
    once += [f"max(2 * {column} - 1)" for column in [*whole, *numbers]]
    once += [f"min({column}) FILTER (WHERE {flags[0]})" for column in columns_beside(flags[0], whole)]
    once += [f"count(DISTINCT {column}) FILTER (WHERE {column} > 0)" for column in whole]
    once += [f"bool_{function}({flags[0]})" for function in ("and", "or")]
    many = [f"{f}({column})" for f in ("sum", "avg", "median") for column in [*whole, *numbers]]
    many += [f"sum({column} / 2)" for column in whole] + [f"avg(-{column})" for column in numbers]
    many += [f"count(*) FILTER (WHERE {flag})" for flag in flags] + [f"median({whole[0]} + 1)"]
    many += [f"{f}({column})" for f in ("stddev", "var_pop", "variance") for column in [*whole, *numbers]]
    percentiles = ("percentile_cont(0.29)", "percentile_disc(0.29)", "percentile_disc(1)")
    ordered = [f"WITHIN GROUP (ORDER BY {column})" for column in [*whole, *numbers, f"2 * {whole[0]}"]]
    many += [f"{f} {order}" for f in percentiles for order in ordered]
    many += ["count(*)", *(f"count({column})" for column in [*whole, *texts]), f"min({texts[0]})"]
    calls = r.sample(once if r.random() < 0.5 else [*once, *many], r.randint(1, 3))
    outputs = ", ".join(f"{one} AS o{i}" for i, one in enumerate([*by, *calls]))
    group = f" GROUP BY {', '.join(by)}" if by else ""
    compared = [
        one
        for one in [*calls[:1], *by]
        if one not in (*flags, *tests, *labels, f"min({texts[0]})") and not one.startswith("bool_")
    ]
    kept = [f"{one} {r.choice(('>', '<', '!='))} {r.randint(-2, 3)}" for one in compared if r.random() < 0.25]
    having = f" HAVING {' AND '.join(kept)}" if kept else ""
    sql = f"SELECT {outputs} FROM {', '.join(sources)}{queries.where(r, sources, 0.7)}{group}{having}"
    return queries.through_subqueries(r, sql), len(by)


def columns_beside(column: str, others: list[str]) -> list[str]:
    """The columns of the same occurrence."""
    return [one for one in others if one.split(".")[0] == column.split(".", maxsplit=1)[0]]


def _play(
    r: random.Random,
    reference: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    asked: tuple[AlertDef, int],
    bound: int,
) -> bool:
    alert, grouped = asked
    tuples: queries.Tuples = []
    last: Rows = {}
    in_order: list[Row] = []
    used = sorted({source.stream for source in alert.query.sources})
    query = queries.standing_of(alert, catalog)
    reference.execute("DELETE FROM s; DELETE FROM t")
    for place in range(r.choice((5, 8, 12, 12, 25))):
        name = r.choice(used)
        one = queries.tuple_of(r, name)
        tuples.append((name, one))
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", one)
        found = query.take(name, batch(queries.COLUMNS, name, [one]), 1)
        for _, *row in rows(found):
            in_order.append((place, *row))
            gone = bool(row.pop()) if WITHDRAWN in found.columns else False
            key = tuple(row[:grouped])
            assert key in last if gone else last.get(key) != tuple(row), (SEED, alert.sql, tuples)
            if gone:
                del last[key]
            else:
                last[key] = tuple(row)
        wanted = {row[:grouped]: row for row in reference.execute(alert.sql).fetchall()}
        if not grouped and not reference.execute(_rows_of(alert)).fetchone():
            wanted = {}
        assert same(last, wanted), (SEED, alert.sql, tuples, last, wanted)
        assert query.entries() <= bound, (SEED, alert.sql, tuples, query.entries(), bound)
    in_pieces, cut = pieces(r, lambda: queries.standing_of(alert, catalog), queries.COLUMNS, tuples)
    in_order.sort(key=lambda row: (row[0], repr(row)))
    assert in_pieces == in_order, (SEED, alert.sql, tuples, in_pieces, in_order)
    assert cut.entries() == query.entries(), (SEED, alert.sql, tuples)
    return bool(in_order)


def _rows_of(alert: AlertDef) -> str:
    """The rows under the aggregates."""
    sql = alert.sql.split(" GROUP BY ", maxsplit=1)[0].split(" HAVING ", maxsplit=1)[0]
    at = sql.index(") SELECT ") + 2 if sql.startswith("WITH ") else 0
    return f"{sql[:at]}SELECT 1{sql[sql.index(' FROM ', at) :]}"


def same(found: Rows, wanted: Rows) -> bool:
    """True if all groups have the same rows."""
    if found.keys() != wanted.keys():
        return False
    return all(_close(a, b) for key, row in found.items() for a, b in zip(row, wanted[key], strict=True))


def _close(a: object, b: object) -> bool:
    # DuckDB rounds each step of a sum, Tamis once.
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b
