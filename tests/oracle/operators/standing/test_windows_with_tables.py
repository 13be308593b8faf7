"""Aggregates of windows of a stream that is joined with tables: the rows are DuckDB's."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
from tests.oracle.operators.standing.interleaved_runs import (
    catalog_with,
    comparable,
    declared,
    expected,
    play,
    windowed,
)
from tests.oracle.random_cases import SEED, also_long, cases

_JOINS = (
    *("s.k = d.key", "s.k = d.key", "s.k = d.key AND s.n >= d.low", "s.n = d.low", "s.n > d.low"),
    *(
        "s.k = d.key AND s.n + 1 = d.low",
        "s.x * d.factor > 0",
        "s.k = d.key AND d.region = 'north'",
        "d.low = 2",
    ),
)
_GROUPS = ("s.k", "d.region", "d.key", "s.n", "d.low", "s.n - d.low", "d.low > 0", "s.n > d.low")
_CALLS = (
    *("count(*)", "sum(s.n - d.low)", "avg(s.x * d.factor)", "max(d.factor)", "min(d.region)", "avg(s.x)"),
    *("count(*) FILTER (WHERE s.n > d.low)", "median(s.n * d.low)", "count(DISTINCT d.region)", "sum(d.low)"),
    *("count(DISTINCT s.n + d.low)", "bool_or(s.x > d.factor)", "count(d.factor)"),
)


@pytest.mark.parametrize("times", also_long(30))
def test_the_rows_are_those_of_duckdb(times: int, tmp_path: Path) -> None:
    reference = duckdb.connect(":memory:")
    productive = late = 0
    tried = cases(0.003) * times
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        statements = declared(tmp_path, (r.choice((0, 1, 4, 12)), 0), rate=(rate := r.random() < 0.5))
        slide = r.choice((1, 2, 3, 5, 8))
        call, rows = windowed("s", slide, slide * r.choice((1, 1, 2, 3)))
        by = ["window_end", *r.sample(_GROUPS, r.choice((0, 1, 1, 2)))]
        calls = r.sample(_CALLS, r.randint(1, 3))
        condition = r.choice(_JOINS)
        having = r.choice(("", "", " HAVING count(*) > 1", " HAVING sum(s.n - d.low) > 0"))
        shown = ", ".join(f"{one} AS c{i}" for i, one in enumerate([*by, *calls]))
        first, second = (f"{call} s", "d") if r.random() < 0.8 else ("d", f"{call} s")
        tail = f" ON {condition} GROUP BY {', '.join(by)}{having}"
        catalog = catalog_with(statements, f"SELECT {shown} FROM {first} JOIN {second}{tail}")
        run = play(r, catalog, rate=rate)
        found = expected(reference, tmp_path, run, f"SELECT {shown} FROM {rows} s JOIN d{tail}")
        assert comparable(run.rows) == comparable(found), (case, shown, tail, run)
        ends = [row[0] for row in run.rows]
        assert ends == sorted(ends), (case, shown, tail)  # type: ignore[type-var]
        productive += bool(run.rows)
        late += run.late > 0
    assert productive > tried // 3
    assert late > 0
