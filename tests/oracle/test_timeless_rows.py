"""Queries over streams without time, from their SQL: after every tuple the rows so far are DuckDB's."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import numpy as np
from tests.oracle.brackets import SEED, cases

from tamis.evaluation.timeless import replay
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog, Explain
from tamis.query.parse import catalog_of, parse
from tamis.recordings.typed import Recording

STREAMS = """
CREATE STREAM s (a INT, b INT, f BOOLEAN, v VARCHAR);
CREATE STREAM t (c INT, d INT CHECK (d BETWEEN -2 AND 3), g BOOLEAN, w VARCHAR);
"""
COLUMNS = {
    "s": (("a", Type.INT), ("b", Type.INT), ("f", Type.BOOLEAN), ("v", Type.VARCHAR)),
    "t": (("c", Type.INT), ("d", Type.INT), ("g", Type.BOOLEAN), ("w", Type.VARCHAR)),
}
TEXTS = ("x", "y", "z")
Tuples = list[tuple[str, tuple[object, ...]]]


def test_the_rows_of_every_prefix_are_those_of_duckdb() -> None:
    r = random.Random(SEED)
    reference = duckdb.connect()
    reference.execute("CREATE TABLE s (a BIGINT, b BIGINT, f BOOLEAN, v VARCHAR)")
    reference.execute("CREATE TABLE t (c BIGINT, d BIGINT, g BOOLEAN, w VARCHAR)")
    catalog = catalog_of(STREAMS)
    tried = productive = 0
    while tried < cases(0.0025):
        sql = _query(r)
        (statement,) = parse(f"EXPLAIN {sql}", catalog)
        assert isinstance(statement, Explain)
        assert isinstance(statement.target, AlertDef)
        memory = explain(catalog, statement.target).memory
        if memory.verdict != "bounded":
            continue
        tried += 1
        productive += _play(r, reference, catalog, statement.target, memory.bound or 0)
    assert productive > tried // 10


def _play(
    r: random.Random, reference: duckdb.DuckDBPyConnection, catalog: Catalog, alert: AlertDef, bound: int
) -> bool:
    sql = alert.sql
    tuples: Tuples = []
    before: Counter[tuple[object, ...]] = Counter()
    used = {source.stream for source in alert.query.sources}
    reference.execute("DELETE FROM s; DELETE FROM t")
    for _ in range(r.randint(4, 14)):
        name = r.choice(sorted(used))
        one = _tuple(r, name)
        tuples.append((name, one))
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", one)
        found = replay(alert.query, catalog, _recordings(catalog, used, tuples))
        given = Counter(zip(*(vector.to_list() for vector in found.selected.values()), strict=True))
        wanted = Counter(reference.execute(sql).fetchall())
        assert given == wanted, (SEED, sql, tuples, given, wanted)
        assert found.entries <= bound, (SEED, sql, tuples, found.entries, bound)
        assert before <= given, (SEED, sql, tuples)
        before = given
    return bool(before)


def _recordings(catalog: Catalog, used: set[str], tuples: Tuples) -> dict[str, Recording]:
    found = {}
    for name in sorted(used):
        rows = [(place, one) for place, (stream, one) in enumerate(tuples) if stream == name]
        columns = {
            column: Vector.from_list([one[i] for _, one in rows], kind)
            for i, (column, kind) in enumerate(COLUMNS[name])
        }
        order = np.array([place for place, _ in rows], np.int64)
        late = np.zeros(len(rows), np.bool_)
        found[name] = Recording(catalog.streams[name], columns, late, {}, 0, order)
    return found


def _tuple(r: random.Random, name: str) -> tuple[object, ...]:
    second = r.randint(-2, 3) if name == "t" else r.randint(-5, 5)
    values: list[object] = [r.randint(-5, 5), second, r.random() < 0.5, r.choice(TEXTS)]
    return tuple(None if r.random() < 0.08 else value for value in values)


def _query(r: random.Random) -> str:
    """A random query, with conditions of each kind that is understood."""
    sources = r.choice(
        [["s x"], ["s x", "t y"], ["s x", "t y"], ["s x", "t y"], ["s x", "s y"], ["t x", "s y"]]
    )
    whole, flags, texts = [], [], []
    for source in sources:
        stream, alias = source.split()
        names = [f"{alias}.{name}" for name, _ in COLUMNS[stream]]
        whole += names[:2]
        flags.append(names[2])
        texts.append(names[3])
    conditions = [_condition(r, whole, flags, texts) for _ in range(r.randint(0, 4))]
    for column in whole:
        if r.random() < 0.5:
            conditions.append(f"{column} BETWEEN {r.randint(-4, 0)} AND {r.randint(0, 4)}")
    shown = r.sample([*whole, *flags, *texts], r.randint(0, 2)) or ["1"]
    outputs = ", ".join(f"{one} AS o{i}" for i, one in enumerate(shown))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {r.choice(('', 'DISTINCT '))}{outputs} FROM {', '.join(sources)}{where}"


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
            texted = r.choice(
                (f"{texts[0]} IN ('x', 'y')", f"{texts[-1]} != 'z'", f"{texts[0]} = {texts[-1]}")
            )
            return texted if r.random() < 0.7 else f"{a} {op} {n}.5"
        case _:
            return f"{a} IS {r.choice(('', 'NOT '))}NULL"
