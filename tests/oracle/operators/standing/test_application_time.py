"""Random queries in application time: after each move of the watermarks, the rows are DuckDB's.

Batches are cut anywhere, the state is dumped and loaded, and the number of entries never exceeds the bound.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest
from tests.operators import compile_query
from tests.oracle.bounded.timeless_queries import alert_of
from tests.oracle.constant_conditions import with_constants
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.application_time.verdict import memory_verdict
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.application_time.query import ApplicationTimeQuery
from tamis.operators.contract import Rows, StandingEvaluator
from tamis.query.model import AlertDef, Catalog, InApplicationTime, JoinByTime, is_distinct
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM s (a INT, v VARCHAR, x DOUBLE, ts TIMESTAMP CHECK (ts >= TIMESTAMP '1970-01-01'),
  WATERMARK FOR ts AS ts)
  WITH (rate = '3/us', max_stall = '20 us', max_ahead = '0');
CREATE STREAM t (b INT, w VARCHAR, y DOUBLE, ts TIMESTAMP CHECK (ts >= TIMESTAMP '1970-01-01'),
  WATERMARK FOR ts AS ts)
  WITH (rate = '3/us', max_stall = '20 us', max_ahead = '0');
CREATE STREAM f (k INT, ts TIMESTAMP CHECK (ts >= TIMESTAMP '1970-01-01'), WATERMARK FOR ts AS ts)
  WITH (finite = true, until = '1970-01-01T00:00:00.000010Z', rate = '3/us', max_stall = '20 us',
    max_ahead = '0');
CREATE STREAM n (m INT);
CREATE TABLE r (id INT, name VARCHAR, z DOUBLE) WITH (path = 'r.csv');
"""
UNTIL = 10
CONSTANT = 0.25  # the share of conditions with constant parts
COLUMNS = {
    "s": (("a", Type.INT), ("v", Type.VARCHAR), ("x", Type.DOUBLE), ("ts", Type.TIMESTAMP)),
    "t": (("b", Type.INT), ("w", Type.VARCHAR), ("y", Type.DOUBLE), ("ts", Type.TIMESTAMP)),
    "f": (("k", Type.INT), ("ts", Type.TIMESTAMP)),
    "n": (("m", Type.INT),),
    "r": (("id", Type.INT), ("name", Type.VARCHAR), ("z", Type.DOUBLE)),
}
TEXTS, NUMBERS = ("p", "q", "o"), (0.5, 1.5, -2.0)
Row = tuple[object, ...]


@pytest.mark.parametrize("times", also_long(30))
def test_rows_of_random_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    monkeypatch.chdir(tmp_path)
    r = random.Random(SEED)
    seen: Counter[object] = Counter()
    number = 0
    while number < cases(0.002) * times:
        catalog = catalog_of(STREAMS)
        table = [_tuple(r, "r", 0) for _ in range(r.randint(1, 4))]
        cells = [["" if value is None else str(value) for value in row] for row in table]
        Path("r.csv").write_text("id,name,z\n" + "".join(",".join(row) + "\n" for row in cells))
        duck = _duck(table)
        for _ in range(10):
            number += 1
            sql, used = random_sql(r)
            seen[_play(r, duck, catalog, sql, used)] += 1
    assert seen["bounded", True] > number / 20
    assert seen["bounded", False] > number / 20


def _play(
    r: random.Random, duck: duckdb.DuckDBPyConnection, catalog: Catalog, sql: str, used: list[str]
) -> tuple[str, bool]:
    alert = alert_of(catalog, sql)
    if compile_query(alert.query, catalog) is None:
        return "a join by time", False
    assert isinstance(alert.query, InApplicationTime | JoinByTime)
    found = memory_verdict(alert.query, catalog)
    bound = found.bound if found.bound is not None else math.inf
    standing = _fresh(alert, catalog)
    for name in ("s", "t", "f", "n"):
        duck.execute(f"DELETE FROM {name}")
    streams = [name for name in dict.fromkeys(used) if name != "r"]
    timed = [name for name in streams if name != "n"]
    waiting: list[tuple[str, Row]] = []
    got: Counter[Row] = Counter()
    clock = 0
    for _ in range(r.randint(2, 6)):
        later = clock + r.choice((1, 1, 2, 4))
        room: Counter[tuple[str, int]] = Counter()
        for _ in range(r.randint(0, 4)):
            stream, time = r.choice(streams), r.randrange(clock, later + 2)
            room[stream, time] += 1
            taken = room[stream, time] + sum(n == stream and row[-1] == time for n, row in waiting)
            if stream != "n" and taken > 3:
                continue
            row = _tuple(r, stream, time)
            got += _rows(standing.take(stream, _batch(stream, [row]), 1))
            if stream == "n":
                _insert(duck, stream, [row])
            else:
                waiting.append((stream, row))
            assert standing.entries() <= bound, (SEED, sql, standing.entries(), bound)
        clock = later
        for stream in r.sample(timed, len(timed)):
            got += _rows(standing.advance(stream, clock))
        for stream in timed:
            _insert(duck, stream, [one[1] for one in waiting if one[0] == stream and _when(one) < clock])
        waiting = [one for one in waiting if _when(one) >= clock]
        assert standing.entries() <= bound, (SEED, sql, standing.entries(), bound)
        want = Counter(duck.execute(re.sub(r"INTERVAL '(\d+) us'", r"\1", sql)).fetchall())
        assert got == want, (SEED, sql, clock, got - want, want - got, duck.execute("FROM r").fetchall())
        if r.random() < 0.3:
            state, standing = standing.dump(), _fresh(alert, catalog)
            standing.load(state)
    return found.verdict, is_distinct(alert.query)


def _when(one: tuple[str, Row]) -> int:
    time = one[1][-1]
    assert isinstance(time, int)
    return time


def _fresh(alert: AlertDef, catalog: Catalog) -> StandingEvaluator:
    found = compile_query(alert.query, catalog)
    assert isinstance(found, ApplicationTimeQuery), alert.query
    return found


def _duck(table: list[Row]) -> duckdb.DuckDBPyConnection:
    duck = duckdb.connect()
    for name, columns in COLUMNS.items():
        kinds = [f"{column} {'BIGINT' if kind.integral else kind}" for column, kind in columns]
        duck.execute(f"CREATE TABLE {name} ({', '.join(kinds)})")
    _insert(duck, "r", table)
    return duck


def _insert(duck: duckdb.DuckDBPyConnection, stream: str, rows: list[Row]) -> None:
    if stream == "f":
        rows = [row for row in rows if _when((stream, row)) <= UNTIL]
    if rows:
        one = f"({', '.join('?' * len(rows[0]))})"
        values = [value for row in rows for value in row]
        duck.execute(f"INSERT INTO {stream} VALUES {', '.join([one] * len(rows))}", values)


def _batch(stream: str, rows: list[Row]) -> Mapping[str, Vector]:
    return {
        name: Vector.from_list([row[at] for row in rows], kind)
        for at, (name, kind) in enumerate(COLUMNS[stream])
    }


def _rows(found: Rows) -> Counter[Row]:
    columns = [vector.to_list() for vector in found.columns.values()]
    return Counter(zip(*columns, strict=True))


def _tuple(r: random.Random, name: str, time: int) -> Row:
    values: list[object] = []
    for column, kind in COLUMNS[name]:
        one: object = r.randint(-2, 4)
        if kind is Type.VARCHAR:
            one = r.choice(TEXTS)
        elif kind is Type.DOUBLE:
            one = r.choice(NUMBERS)
        if column == "ts":
            one = time
        elif r.random() < 0.08:
            one = None
        values.append(one)
    return tuple(values)


def random_sql(r: random.Random) -> tuple[str, list[str]]:
    """A random SELECT, or a UNION of two, and what it reads. DuckDB has times as whole numbers."""
    if r.random() < 0.1:
        one, first = _select(r, r.choice((["s"], ["s", "t"])), 1)
        other, second = _select(r, r.choice((["t"], ["t", "r"])), 1)
        return f"{one} UNION{r.choice((' ALL', ''))} {other}", list(dict.fromkeys([*first, *second]))
    sources = r.choice(
        (
            ["s", "t"],
            ["s", "t"],
            ["s", "r"],
            ["s", "t", "r"],
            ["s", "n"],
            ["s", "f"],
            ["s", "t", "f"],
            ["s", "s"],
        )
    )
    return _select(r, sources, r.randint(1, 2))


def _select(r: random.Random, sources: list[str], shown: int) -> tuple[str, list[str]]:
    named = [(name, f"{name}{at}") for at, name in enumerate(sources)]
    every = [(f"{alias}.{column}", kind) for name, alias in named for column, kind in COLUMNS[name]]
    by_kind = {kind: [n for n, of in every if of is kind] for kind in (Type.INT, Type.VARCHAR, Type.DOUBLE)}
    times = [n for n, of in every if of is Type.TIMESTAMP]
    conditions = []
    for _ in range(r.choice((0, 1, 1, 2))):
        if len(times) > 1:
            conditions.append(_time(r, *r.sample(times, 2)))
    for _ in range(r.choice((0, 1, 1, 2))):
        kind = r.choice((Type.INT, Type.INT, Type.VARCHAR, Type.DOUBLE))
        if len(by_kind[kind]) > 1:
            left, right = r.sample(by_kind[kind], 2)
            op = (
                r.choice(("=", "=", "!="))
                if kind is Type.VARCHAR
                else r.choice(("=", "=", "<", "<=", ">", "!="))
            )
            conditions.append(f"{left} {op} {right}")
    for name in by_kind[Type.INT]:
        if r.random() < 0.6:
            conditions.append(
                r.choice((f"{name} BETWEEN {r.randint(-2, 0)} AND {r.randint(0, 3)}", f"{name} > 1"))
            )
    if r.random() < 0.15:
        conditions.append(f"({by_kind[Type.INT][0]} = 1 OR {by_kind[Type.INT][-1]} > {r.randint(0, 2)})")
    if r.random() < 0.1:
        conditions.append(f"2 * {by_kind[Type.INT][0]} < {by_kind[Type.INT][-1]} + 3")
    conditions = [with_constants(r, one) if CONSTANT and r.random() < CONSTANT else one for one in conditions]
    columns = r.sample(by_kind[Type.INT] if shown == 1 else [n for n, _ in every], shown)
    distinct = r.choice(("DISTINCT ", ""))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    outputs = ", ".join(f"{name} AS o{at}" for at, name in enumerate(columns))
    from_ = ", ".join(f"{name} {alias}" for name, alias in named)
    return f"SELECT {distinct}{outputs} FROM {from_}{where}", sources


def _time(r: random.Random, left: str, right: str) -> str:
    op, offset = r.choice(("<", "<", "<=", "=")), r.choice((0, 0, 0, 1, 3))
    return f"{left} {op} {right}" if not offset else f"{left} + INTERVAL '{offset} us' {op} {right}"
