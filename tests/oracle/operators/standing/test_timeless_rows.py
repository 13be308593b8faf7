"""Queries over streams without event time: after every tuple, the rows so far are DuckDB's.

A run in pieces gives the same rows.
"""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing.piecewise_runs import batch, pieces, rows
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import catalog_of


@pytest.mark.parametrize("times", also_long(30))
def test_the_rows_of_every_prefix_are_those_of_duckdb(times: int) -> None:
    r = random.Random(SEED)
    reference, catalog = queries.reference(), catalog_of(queries.STREAMS)
    tried = productive = 0
    while tried < cases(0.0015) * times:
        alert = queries.alert_of(catalog, random_query(r, three=True))
        memory = explain(catalog, alert).memory
        if memory.verdict == "bounded":
            tried += 1
            productive += _play(r, reference, catalog, alert, memory.bound or 0)
    assert productive > tried // 10


def random_query(r: random.Random, *, three: bool = False) -> str:
    if r.random() < 0.8:
        made = _select(r, r.choice(("", "DISTINCT ")), three=three)
    else:
        made = f" UNION {r.choice(('', 'ALL '))}".join(_select(r, "", 1) for _ in range(r.randint(2, 3)))
    return queries.through_subqueries(r, made)


def _select(r: random.Random, distinct: str, most: int | None = None, *, three: bool = False) -> str:
    sources = queries.sources_of(r, three=three)
    whole, flags, texts, _ = queries.columns_of(sources)
    shown = r.sample(whole, most) if most else r.sample([*whole, *flags, *texts], r.randint(0, 2)) or ["1"]
    outputs = ", ".join(f"{one} AS o{i}" for i, one in enumerate(shown))
    return f"SELECT {distinct}{outputs} FROM {', '.join(sources)}{queries.where(r, sources)}"


def _play(
    r: random.Random, reference: duckdb.DuckDBPyConnection, catalog: Catalog, alert: AlertDef, bound: int
) -> bool:
    tuples: queries.Tuples = []
    given: Counter[tuple[object, ...]] = Counter()
    in_order: list[tuple[object, ...]] = []
    used = sorted({source.stream for source in alert.query.sources})
    query = queries.standing_of(alert, catalog)
    reference.execute("DELETE FROM s; DELETE FROM t")
    for place in range(r.choice((5, 9, 14, 14, 30))):
        name = r.choice(used)
        one = queries.tuple_of(r, name)
        tuples.append((name, one))
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", one)
        made = list(rows(query.take(name, batch(queries.COLUMNS, name, [one]), 1)))
        given.update(row[1:] for row in made)
        in_order += [(place, *row[1:]) for row in made]
        wanted = Counter(reference.execute(alert.sql).fetchall())
        assert given == wanted, (SEED, alert.sql, tuples, given, wanted)
        assert query.entries() <= bound, (SEED, alert.sql, tuples, query.entries(), bound)
    in_pieces, cut = pieces(r, lambda: queries.standing_of(alert, catalog), queries.COLUMNS, tuples)
    in_order.sort(key=lambda row: (row[0], repr(row)))
    assert in_pieces == in_order, (SEED, alert.sql, tuples, in_pieces, in_order)
    assert cut.entries() == query.entries(), (SEED, alert.sql, tuples)
    return bool(given)
