"""Queries whose memory is bounded by CHECKs: the rows of every prefix are DuckDB's.

The entries never exceed the bound. DuckDB decides which tuples the CHECKs admit.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.bounded.checked_streams import COLUMNS, TYPES, CheckedStreams, query, tuple_of
from tests.oracle.operators.standing.piecewise_runs import batch, rows
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog, GroupByQuery
from tamis.query.parse import catalog_of

KINDS = {
    stream: tuple(zip(names, map(Type, TYPES.values()), strict=True)) for stream, names in COLUMNS.items()
}


@pytest.mark.parametrize("times", also_long(40))
def test_the_rows_of_every_prefix_are_those_of_duckdb(times: int) -> None:
    r = random.Random(SEED)
    seen: Counter[str] = Counter()
    tried = 0
    while tried < cases(0.001) * times:
        streams = CheckedStreams(r)
        catalog = catalog_of(streams.sql)
        for _ in range(4):
            alert = queries.alert_of(catalog, query(r))
            memory = explain(catalog, alert).memory
            if memory.verdict != "bounded":
                continue
            tried += 1
            seen["bounded"] += 1
            seen["rows"] += _play(r, streams, catalog, alert, memory.bound or 0)
    assert seen["rows"] > seen["bounded"] // 4


def _play(r: random.Random, streams: CheckedStreams, catalog: Catalog, alert: AlertDef, bound: int) -> bool:
    standing = queries.standing_of(alert, catalog)
    used = sorted({source.stream for source in alert.query.sources})
    given: Counter[tuple[object, ...]] = Counter()
    last: dict[object, tuple[object, ...]] = {}
    tuples = []
    streams.reference.execute("DELETE FROM s; DELETE FROM t")
    for _ in range(r.choice((9, 14, 30))):
        name, one = r.choice(used), tuple_of(r)
        if not streams.admits(name, one):
            continue
        tuples.append((name, one))
        for row in rows(standing.take(name, batch(KINDS, name, [one]), 1)):
            given[row[1:]] += 1
            last[row[1]] = row[1:]
        wanted = Counter(streams.reference.execute(alert.sql).fetchall())
        got = Counter(last.values()) if isinstance(alert.query, GroupByQuery) else given
        assert got == wanted, (SEED, streams.sql, alert.sql, tuples, got, wanted)
        assert standing.entries() <= bound, (SEED, streams.sql, alert.sql, tuples, bound)
    return bool(given)
