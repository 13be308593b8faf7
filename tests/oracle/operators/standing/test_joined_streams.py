"""Derived streams, read by random queries without event time and by joins by time: the rows are DuckDB's.

DuckDB has the derived streams as views.
"""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import numpy as np
import pytest
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing.piecewise_runs import batch, rows
from tests.oracle.random_cases import SEED, also_long, cases
from tests.rows_for_duckdb import insert

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.replay import replay
from tamis.planning.build import first_plan
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.compare import Alarms, compare
from tamis.verification.reference import plain_join

Row = tuple[object, ...]


@pytest.mark.parametrize("times", also_long(30))
def test_rows_without_time_are_those_of_views(times: int) -> None:
    r = random.Random(SEED)
    productive = tried = 0
    while tried < cases(0.001) * times:
        tried += 1
        view = _view(r)
        sql = _reader(r)
        catalog = catalog_of(f"{queries.STREAMS} CREATE STREAM v AS {view};")
        alert = queries.alert_of(catalog, sql)
        query = queries.standing_of(alert, catalog)
        read = sorted({source.stream for source in alert.query.sources})
        duck = queries.reference()
        duck.execute(f"CREATE VIEW v AS {view}")
        given: Counter[Row] = Counter()
        for _ in range(r.choice((6, 12, 25))):
            name = r.choice(read)
            one = queries.tuple_of(r, name)
            duck.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", one)
            found = query.take(name, batch(queries.COLUMNS, name, [one]), 1)
            given.update(row[1:] for row in rows(found))
            wanted = Counter(duck.execute(sql).fetchall())
            assert given == wanted, (SEED, view, sql, given - wanted, wanted - given)
        productive += bool(given)
    assert productive > tried // 5


def _view(r: random.Random) -> str:
    """A join of two streams, or a filter of one, with columns p and q."""
    sources = r.choice((["s x", "t y"], ["s x", "s y"], ["t x", "s y"], ["s x"]))
    whole, _, texts, _ = queries.columns_of(sources)
    p, q = r.sample(whole, 2)
    shown = f"{p} AS p, {r.choice((q, f'{q} + 1'))} AS q, {texts[-1]} AS z"
    return f"SELECT {shown} FROM {', '.join(sources)}{queries.where(r, sources, 0.2)}"


def _reader(r: random.Random) -> str:
    """A query that reads v once or twice, and a stream beside it or none."""
    sources, shown = r.choice(
        (
            (["v"], "v.p, v.z"),
            (["v i", "s x"], "i.p, x.a"),
            (["t y", "v"], "v.q, y.c"),
            (["v i", "v j"], "i.p, j.q"),
        )
    )
    columns = [f"{alias}.p" for alias in ("i", "j") if f"v {alias}" in sources] or ["v.p"]
    others = {"s x": "x.a", "t y": "y.d", "v j": "j.q"}
    columns += [others[one] for one in sources if one in others] + [columns[0].replace(".p", ".q")]
    conditions = []
    for _ in range(r.randint(1, 2)):
        a, b = r.sample(columns, 2)
        op, n = r.choice(("=", "<", "<=", "!=")), r.randint(-2, 2)
        conditions.append(r.choice((f"{a} {op} {b} + {n}", f"{a} {op} {n}")))
    distinct = r.choice(("DISTINCT ", ""))
    return f"SELECT {distinct}{shown} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"


TIMED = """
CREATE STREAM a (k INT KEY, v DOUBLE CHECK (v BETWEEN 0 AND 100), ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM b (k INT KEY, v DOUBLE CHECK (v BETWEEN 0 AND 100), ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM both AS SELECT a.k, a.ts, a.v - b.v AS gap FROM a JOIN b ON a.k = b.k
  AND b.ts BETWEEN a.ts - INTERVAL '{near} us' AND a.ts + INTERVAL '{near} us' WHERE a.v > {least};
CREATE ALERT q AS SELECT p.k, p.gap FROM both p JOIN a ON a.k = p.k
  AND ABS(a.ts - p.ts) <= INTERVAL '{far} us' WHERE p.gap + a.v > {most};
"""


def test_joins_by_time_are_those_of_views() -> None:
    r = random.Random(SEED)
    found = fewer = 0
    for _ in range(cases(1 / 2_000)):
        numbers = {"near": r.randint(0, 8), "far": r.randint(0, 8), "least": r.randint(0, 60)}
        numbers["most"] = r.randint(60, 150)
        catalog = catalog_of(TIMED.format(**numbers))
        tuples = {
            name: [(r.randint(0, 2), float(r.randint(0, 100)), time + r.randint(0, 2)) for time in range(60)]
            for name in "ab"
        }
        reference = _duckdb(numbers, tuples)
        query = catalog.alerts["q"].query
        recordings = {name: _recording(catalog, name, rows) for name, rows in tuples.items()}
        plan = first_plan(catalog)
        ours = replay(plan.definitions[0], plan.streams, recordings)
        expected = plain_join(query, recordings)
        assert len(expected) == sum(reference.values())
        verdict = compare(
            "q",
            query,
            definition=plan.definitions[0],
            recordings=recordings,
            reference=expected,
            alarms=Alarms(ours.rows),
            retained=ours.retained,
        )
        assert verdict.same, (SEED, numbers, verdict)
        given = Counter(zip(*(ours.selected[name].to_list() for name in ("k", "gap")), strict=True))
        assert given <= reference, (SEED, numbers)
        found += bool(reference)
        fewer += ours.retained < verdict.tuples
    assert min(found, fewer) > 2


def _duckdb(numbers: dict[str, int], tuples: dict[str, list[tuple[int, float, int]]]) -> Counter[Row]:
    """The rows of q, from SQL of its own."""
    with duckdb.connect() as base:
        for name, rows_ in tuples.items():
            base.execute(f"CREATE TABLE {name} (k INT, v DOUBLE, ts BIGINT)")
            insert(base, name, rows_)
        base.execute(
            "CREATE VIEW both_ AS SELECT a.k, a.ts, a.v - b.v AS gap FROM a JOIN b ON a.k = b.k"
            f" AND abs(a.ts - b.ts) <= {numbers['near']} WHERE a.v > {numbers['least']}"
        )
        return Counter(
            base.execute(
                "SELECT p.k, p.gap FROM both_ p JOIN a ON a.k = p.k"
                f" AND abs(a.ts - p.ts) <= {numbers['far']} WHERE p.gap + a.v > {numbers['most']}"
            ).fetchall()
        )


def _recording(catalog: Catalog, name: str, rows_: list[tuple[int, float, int]]) -> Recording:
    kinds = {"k": Type.INT, "v": Type.DOUBLE, "ts": Type.TIMESTAMP}
    columns = {
        column: Vector.from_list([row[at] for row in rows_], kind)
        for at, (column, kind) in enumerate(kinds.items())
    }
    return Recording(catalog.streams[name], columns, np.zeros(len(rows_), np.bool_), {}, 0)
