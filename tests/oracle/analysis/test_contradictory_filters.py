"""Contradictory filters of one stream, against DuckDB's rows over all tuples of a small grid.

A tuple of the grid is possible if no CHECK is false for it: a CHECK admits NULL.
"""

from __future__ import annotations

import random

import duckdb
from tests.oracle.random_cases import SEED, cases
from tests.oracle.sharing.test_filters_of_derived_streams import GRID, clauses
from tests.rows_for_duckdb import insert

from tamis.analysis.conjuncts import analyse
from tamis.query.parse import catalog_of

CHECKS = ("", "x BETWEEN 0 AND 2", "x > 1", "x <> 2", "x IN (1, 3)")


def test_filters_contradict_each_other_if_no_tuple_passes() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE grid (x DOUBLE, y DOUBLE, n BIGINT, s VARCHAR)")
    insert(connection, "grid", GRID)
    found = {True: 0, False: 0}
    for case in range(cases(1 / 80)):
        seed = f"{SEED} {case}"
        r = random.Random(seed)
        mixed = r.random() < 0.3
        where = [*clauses(r, mixed), *clauses(r, mixed), *clauses(r, mixed)]
        check, not_null = r.choice(CHECKS), r.random() < 0.3
        column = f"x DOUBLE {'NOT NULL ' if not_null else ''}{f'CHECK ({check})' if check else ''}"
        catalog = catalog_of(
            f"CREATE STREAM g (k VARCHAR KEY, ts TIMESTAMP, {column}, y DOUBLE, n BIGINT, s VARCHAR, "
            f"WATERMARK FOR ts AS ts); CREATE ALERT q AS SELECT k FROM g WHERE {' AND '.join(where)};"
        )
        contradiction = analyse(catalog.alerts["q"].query, catalog).contradiction
        possible = [f"({check}) IS NOT FALSE" if check else "TRUE", "x IS NOT NULL" if not_null else "TRUE"]
        row = connection.execute(
            f"SELECT count(*) FROM grid WHERE {' AND '.join(where + possible)}"
        ).fetchone()
        assert row is not None
        if contradiction is not None or not mixed:
            assert (contradiction is not None) == (row[0] == 0), f"seed {seed}: {check}, {where}"
        found[contradiction is not None] += 1
    assert min(found.values()) > 20
