"""Queries over streams without time, from their SQL: after every tuple the rows so far are DuckDB's."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
from tests.oracle import timeless_queries as queries
from tests.oracle.brackets import SEED, cases

from tamis.evaluation.timeless import merged, replay_rows
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog
from tamis.query.parse import catalog_of


def test_the_rows_of_every_prefix_are_those_of_duckdb() -> None:
    r = random.Random(SEED)
    reference, catalog = queries.reference(), catalog_of(queries.STREAMS)
    tried = productive = 0
    while tried < cases(0.0015):
        alert = queries.alert_of(catalog, _query(r))
        memory = explain(catalog, alert).memory
        if memory.verdict == "bounded":
            tried += 1
            productive += _play(r, reference, catalog, alert, memory.bound or 0)
    assert productive > tried // 10


def _query(r: random.Random) -> str:
    if r.random() < 0.8:
        return _select(r, r.choice(("", "DISTINCT ")))
    return f" UNION {r.choice(('', 'ALL '))}".join(_select(r, "", 1) for _ in range(r.randint(2, 3)))


def _select(r: random.Random, distinct: str, most: int | None = None) -> str:
    sources = queries.sources_of(r)
    whole, flags, texts, _ = queries.columns_of(sources)
    shown = r.sample(whole, most) if most else r.sample([*whole, *flags, *texts], r.randint(0, 2)) or ["1"]
    outputs = ", ".join(f"{one} AS o{i}" for i, one in enumerate(shown))
    return f"SELECT {distinct}{outputs} FROM {', '.join(sources)}{queries.where(r, sources)}"


def _play(
    r: random.Random, reference: duckdb.DuckDBPyConnection, catalog: Catalog, alert: AlertDef, bound: int
) -> bool:
    tuples: queries.Tuples = []
    before: Counter[tuple[object, ...]] = Counter()
    used = {source.stream for source in alert.query.sources}
    reference.execute("DELETE FROM s; DELETE FROM t")
    for _ in range(r.randint(4, 14)):
        name = r.choice(sorted(used))
        one = queries.tuple_of(r, name)
        tuples.append((name, one))
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", one)
        recordings = queries.recordings(catalog, used, tuples)
        made = [replay_rows(one, catalog, recordings) for one in alert.query.members or (alert.query,)]
        order = merged(made, alert.query.distinct and len(made) > 1)
        columns = zip(*(one.selected.values() for one in made), strict=True)
        shown = [Vector.concat(list(parts)).take(order).to_list() for parts in columns]
        given = Counter(zip(*shown, strict=True))
        entries = sum(one.entries for one in made)
        wanted = Counter(reference.execute(alert.sql).fetchall())
        assert given == wanted, (SEED, alert.sql, tuples, given, wanted)
        assert entries <= bound, (SEED, alert.sql, tuples, entries, bound)
        assert before <= given, (SEED, alert.sql, tuples)
        before = given
    return bool(before)
