"""Aggregates of windows: the rows are DuckDB's over all tuples that came in time, in whatever batches they
come and wherever the state is dumped and loaded; and what is kept never passes the bound.
"""

from __future__ import annotations

import random

import duckdb
import numpy as np
from tests.oracle.brackets import SEED, cases

from tamis.evaluation.standing.windowed import WindowedGroups
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog, StreamDef
from tamis.query.parse import catalog_of

Tuple = tuple[int, str | None, int | None, int | None, float | None, str | None, bool | None]
Row = tuple[object, ...]

NAMES = ("ts", "k", "a", "b", "x", "v", "f")
_DUCKDB = "ts BIGINT, k VARCHAR, a INT, b BIGINT, x DOUBLE, v VARCHAR, f BOOLEAN, mark BIGINT"
_EMPTY = -(2**60)
_CONDITIONS = (
    "a > 0",
    "x >= 0.5 OR a = 2",
    "k = 'p'",
    "v IN ('y', 'z')",
    "f",
    "b <> 1",
    "x IS NULL OR x < 1",
)
_CALLS = (
    "count(*)",
    "count(x)",
    "count(v)",
    "sum(a)",
    "sum(b)",
    "sum(x)",
    "avg(a)",
    "avg(x)",
    "min(b)",
    "max(x)",
)
_CALLS += (
    "min(v)",
    "max(f)",
    "max(ts)",
    "median(x)",
    "median(a)",
    "count(DISTINCT v)",
    "count(DISTINCT x)",
    "count(DISTINCT f)",
)


def test_the_rows_of_windows_are_those_of_duckdb() -> None:
    reference = duckdb.connect(":memory:")
    reference.execute(f"CREATE TABLE s ({_DUCKDB})")
    productive = late = 0
    tried = cases(0.03)
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        rows, missed = _play(r, reference, f"case {case} of seed {SEED}")
        productive += rows > 0
        late += missed > 0
    assert productive > tried // 2
    assert late > tried // 50


def _play(r: random.Random, reference: duckdb.DuckDBPyConnection, case: str) -> tuple[int, int]:
    slide = r.choice((1, 2, 3, 5, 8))
    size = slide * r.choice((1, 1, 1, 2, 3, 7))
    delay = r.choice((0, 0, 1, 4, 12))
    rate = r.random() < 0.5
    catalog = catalog_of(_stream(delay, rate))
    select, condition, group = _query(r)
    window = f"TUMBLE(s, ts, INTERVAL '{size} us')"
    if size > slide or r.random() < 0.2:
        window = f"HOP(s, ts, INTERVAL '{slide} us', INTERVAL '{size} us')"
    sql = f"{_stream(delay, rate)} CREATE ALERT q AS SELECT {select} FROM {window}{condition}{group}"
    case = f"{case}: {sql}"
    catalog = catalog_of(sql)
    alert = catalog.alerts["q"]
    tuples = _tuples(r, rate)
    found, marks, missed = _rows(r, alert, catalog, tuples, delay, case)
    expected = _expected(reference, (select, condition, group), (slide, size), tuples, marks)
    assert sorted(map(_comparable, found)) == sorted(map(_comparable, expected)), case
    ends = [row[0] for row in found]
    assert ends == sorted(ends), case  # type: ignore[type-var]
    counted = _late(reference, condition, (slide, size))
    assert missed == counted, case
    return len(found), missed


def _stream(delay: int, rate: bool) -> str:
    declared = "keys = 3, rate = '1/2us', max_stall = '1us'" if rate else "keys = 3, max_stall = '1us'"
    return (
        "CREATE STREAM s (ts TIMESTAMP, k VARCHAR KEY, a INT CHECK (a BETWEEN 0 AND 2), b BIGINT, x DOUBLE,"
        f" v VARCHAR, f BOOLEAN, WATERMARK FOR ts AS ts - INTERVAL '{delay} us') WITH ({declared});"
    )


def _query(r: random.Random) -> tuple[str, str, str]:
    """SELECT, which begins with the window, WHERE, and GROUP BY with HAVING."""
    windows = r.choice((["window_start"], ["window_end"], ["window_start", "window_end"]))
    by = r.sample(("k", "a", "b", "x", "v", "f"), r.choice((0, 0, 1, 1, 2)))
    calls = r.sample(_CALLS, r.randint(1, 4))
    outputs = [*windows, *(f"{one} AS g{i}" for i, one in enumerate(by))]
    outputs += [f"{one} AS o{i}" for i, one in enumerate(calls)]
    where = [
        one if " OR " not in one else f"({one})" for one in r.sample(_CONDITIONS, r.choice((0, 0, 1, 2)))
    ]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    grouped = [*windows, *by]
    r.shuffle(grouped)
    having = r.choice(("", "", " HAVING count(*) > 1", " HAVING max(x) > 0.25 OR min(a) IS NULL"))
    return ", ".join(outputs), condition, f" GROUP BY {', '.join(grouped)}{having}"


def _tuples(r: random.Random, rate: bool) -> list[Tuple]:
    """Tuples with disorder, ties, NULLs, gaps, and negative times. With `rate`, at most one of a key in any
    two microseconds."""
    now = r.choice((0, -30, 10**9, -(10**15) - 7))
    tuples: list[Tuple] = []
    seen: set[tuple[str | None, int]] = set()
    for _ in range(r.choice((0, 1, 5, 20, 60))):
        now += r.choice((0, 0, 1, 1, 2, 9)) if r.random() < 0.97 else r.choice((50, 10**7))
        ts = now - (0 if r.random() < 0.7 else r.randint(0, 25))
        k = r.choice(("p", "q", "r"))
        if rate and any((k, at) in seen for at in (ts - 1, ts, ts + 1)):
            continue
        seen.add((k, ts))
        a = r.choice((None, 0, 1, 2))
        b = r.choice((None, 1, -1, 2**63 - 1, -(2**63), 5))
        x = r.choice((None, 0.5, -0.0, 0.0, -1.25, 1e6, 0.125))
        tuples.append((ts, k, a, b, x, r.choice((None, "", "y", "z")), r.choice((None, True, False))))
    return tuples


def _rows(
    r: random.Random, alert: AlertDef, catalog: Catalog, tuples: list[Tuple], delay: int, case: str
) -> tuple[list[Row], list[int], int]:
    """All rows; for each tuple the watermark when it came; and how many were late."""
    query = WindowedGroups(alert.query, catalog)
    memory = explain(catalog, alert).memory
    assert memory.verdict == "bounded", case
    rows: list[Row] = []
    marks: list[int] = []
    mark, at = _EMPTY, 0
    most = r.choice((1, 1, 4, 100))
    while at < len(tuples):
        batch = tuples[at : at + r.randint(1, most)]
        at += len(batch)
        assert len(query.take("s", _batch(catalog.streams["s"], batch), len(batch))) == 0, case
        marks += [mark] * len(batch)
        if r.random() < 0.9:
            mark = max(mark, max(one[0] for one in tuples[:at]) - delay)
            rows += _listed(query, mark)
            if memory.bound is not None:
                assert query.entries() <= memory.bound, (case, query.entries(), memory)
        if r.random() < 0.2:
            state, query = query.dump(), WindowedGroups(alert.query, catalog)
            query.load(state)
    rows += _listed(query, 2**62)
    assert query.entries() == 0, case
    return rows, marks, query.late


def _listed(query: WindowedGroups, mark: int) -> list[Row]:
    found = query.advance("s", mark)
    assert (found.completed == -1).all()
    assert len(query.advance("s", mark)) == 0
    columns = [vector.to_list() for vector in found.columns.values()]
    return list(zip(*columns, strict=True))


def _batch(stream: StreamDef, tuples: list[Tuple]) -> dict[str, Vector]:
    columns = zip(*tuples, strict=True)
    return {
        name: Vector.from_list(values, column.type)
        for name, values in zip(NAMES, columns, strict=True)
        if (column := stream.column(name)) is not None
    }


def _expected(
    reference: duckdb.DuckDBPyConnection,
    query: tuple[str, str, str],
    window: tuple[int, int],
    tuples: list[Tuple],
    marks: list[int],
) -> list[Row]:
    reference.execute("DELETE FROM s")
    if tuples:
        marked = [(*one, mark) for one, mark in zip(tuples, marks, strict=True)]
        reference.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?, ?)", marked)
    select, condition, group = query
    return [
        tuple(_fitting(value) for value in row)
        for row in reference.execute(
            f"SELECT {select} FROM (SELECT * FROM ({_windows(*window)}) WHERE window_end > mark)"
            f"{condition}{group}"
        ).fetchall()
    ]


def _windows(slide: int, size: int) -> str:
    first = f"CAST(floor(ts::HUGEINT / {slide}) AS BIGINT)"
    # DuckDB's / is of DOUBLEs: near enough to begin with, and WHERE leaves what holds the tuple.
    starts = f"unnest(range(({first} - {size // slide} - 2) * {slide}, ({first} + 3) * {slide}, {slide}))"
    each = f"SELECT *, {starts} AS window_start FROM s"
    return (
        f"SELECT *, window_start + {size} AS window_end FROM ({each})"
        f" WHERE window_start <= ts AND ts < window_start + {size}"
    )


def _late(reference: duckdb.DuckDBPyConnection, condition: str, window: tuple[int, int]) -> int:
    found = reference.execute(
        f"SELECT count(DISTINCT row) FROM ({_windows(*window).replace('FROM s', ', rowid AS row FROM s')})"
        f"{condition}{' AND' if condition else ' WHERE'} window_end <= mark"
    ).fetchone()
    assert found is not None
    return int(found[0])


def _fitting(value: object) -> object:
    """DuckDB adds BIGINTs to more than 64 bits."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _comparable(row: Row) -> tuple[tuple[int, str], ...]:
    return tuple((0, "") if value is None else (1, repr(_plain(value))) for value in row)


def _plain(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value


def test_a_state_of_another_query_is_refused() -> None:
    assert np is not None
