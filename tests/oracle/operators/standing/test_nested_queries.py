"""Queries over rows of aggregates: filters, windows of windows, and joins by time. The rows are DuckDB's."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from tests.oracle.operators.standing.interleaved_runs import (
    catalog_with,
    comparable,
    declared,
    expected,
    in_windows,
    play,
    windowed,
)
from tests.oracle.random_cases import SEED, also_long, cases

_AGGREGATES = ("avg(x)", "max(n)", "sum(n)", "count(*)", "min(x)", "sum(n + 1)", "count(x)")


@dataclass(frozen=True)
class _Inner:
    """Rows of aggregates: the SELECT for Tamis and for DuckDB, with the columns k, e (the end of the window)
    and v, and the slide of its windows.
    """

    stream: str
    select: str
    reference: str
    slide: int


def _inner(r: random.Random, stream: str) -> _Inner:
    slide = r.choice((1, 2, 3, 5))
    call, rows = windowed(stream, slide, size := slide * r.choice((1, 1, 2, 3)))
    condition = r.choice(("", "", " WHERE n > 0", " WHERE x < 1 OR n = 2"))
    having = r.choice(("", "", " HAVING count(*) > 1"))
    column, back = r.choice((("window_end", 0), ("window_end", 0), ("window_start", size)))
    aggregate = r.choice(_AGGREGATES)
    tail = f"{condition} GROUP BY k, {column}{having}"
    return _Inner(
        stream,
        f"SELECT k, {column} AS e, {aggregate} AS v FROM {call}{tail}",
        f"SELECT k, {column} AS e, {column} + {back} - 1 AS moment, {aggregate} AS v FROM {rows}{tail}",
        slide,
    )


@dataclass(frozen=True)
class _Case:
    """Statements and the alert for Tamis, SQL for DuckDB, and what a query in application time reads."""

    statements: str
    alert: str
    reference: str
    slides: Sequence[tuple[str, int]]


def _filter(r: random.Random) -> _Case:
    inner = _inner(r, "s")
    where = r.choice(("v > 0.5", "v >= 1 AND k <> 'p'", "v IS NULL OR v < 1"))
    shown = "k, e, v * 2 AS w"
    asked = r.choice(("derived", "subquery", "with", "twice"))
    statements, alert = "", f"SELECT {shown} FROM ({inner.select}) AS m WHERE {where}"
    if asked == "with":
        alert = f"WITH m AS ({inner.select}) SELECT {shown} FROM m WHERE {where}"
    elif asked != "subquery":
        statements, alert = f"CREATE STREAM m AS {inner.select};", f"SELECT {shown} FROM m WHERE {where}"
    if asked == "twice":
        statements += f" CREATE STREAM high AS SELECT * FROM m WHERE {where};"
        alert = f"SELECT {shown} FROM high"
    reference = f"SELECT {shown} FROM ({inner.reference}) m WHERE {where}"
    return _Case(statements, alert, reference, (("s", inner.slide),))


def _windows(r: random.Random) -> _Case:
    """Windows of windows; the rows of the first are in those of the second that contain their last moment."""
    inner = _inner(r, "s")
    while "window_start" in inner.select:
        inner = _inner(r, "s")
    slide = r.choice((1, 2, 4, 6, 10))
    size = slide * r.choice((1, 1, 2))
    call = f"HOP(m, e, INTERVAL '{slide} us', INTERVAL '{size} us')"
    rows = in_windows(f"({inner.reference})", "moment", slide, size)
    by = r.choice((["window_end"], ["window_end", "k"], ["window_end", "d.region"]))
    table = " JOIN d ON m.k = d.key" if "d.region" in by or r.random() < 0.2 else ""
    call, rows = f"{call} m{table}", f"{rows} m{table}"
    shown = ", ".join(
        f"{one} AS c{i}" for i, one in enumerate([*by, r.choice(("max(v)", "count(*)", "avg(v)")), "min(v)"])
    )
    tail = f" WHERE v > 0 GROUP BY {', '.join(by)}{r.choice(('', ' HAVING count(*) > 1'))}"
    statements = f"CREATE STREAM m AS {inner.select};"
    if r.random() < 0.3:
        # A third query reads the rows of the second one.
        inside = f"SELECT {shown} FROM {{}}{tail}"
        outer = in_windows(f"(SELECT *, c0 - 1 AS moment FROM ({inside.format(rows)}))", "moment", 12, 12)
        return _Case(
            f"{statements} CREATE STREAM b AS {inside.format(call)};",
            "SELECT window_end, min(c1) AS low FROM TUMBLE(b, c0, INTERVAL '12 us') GROUP BY window_end",
            f"SELECT window_end, min(c1) AS low FROM {outer} b GROUP BY window_end",
            (),
        )
    return _Case(statements, f"SELECT {shown} FROM {call}{tail}", f"SELECT {shown} FROM {rows}{tail}", ())


def _join(r: random.Random) -> _Case:
    """A join by time with tuples of a stream, or with other rows of aggregates."""
    inner = _inner(r, "s")
    low, high = sorted((r.randint(-9, 6), r.randint(-6, 9)))
    bound = "{} BETWEEN m.e - INTERVAL '{} us' AND m.e + INTERVAL '{} us'"
    keys = r.choice(("o.k = m.k AND ", "o.k = m.k AND ", ""))
    where = r.choice(("", " WHERE o.x > m.v", " WHERE m.v > 0"))
    statements = f"CREATE STREAM m AS {inner.select};"
    if r.random() < 0.3:
        other = _inner(r, r.choice("st"))
        where = where.replace("o.x", "o.v")
        statements += f" CREATE STREAM o AS {other.select};"
        condition = f" ON {keys}{bound.format('o.e', -low, high)}"
        shown, asked, rows = "m.k, m.e, m.v, o.v AS w, o.e AS f", "o", f"({other.reference})"
        slides = (("s", inner.slide), (other.stream, other.slide))
    else:
        stream = r.choice("ttts")
        condition = f" ON {keys}{bound.format('o.ts', -low, high)}"
        shown, asked = "m.k, m.e, m.v, o.x, o.ts", stream
        rows = f"(SELECT * FROM {stream} WHERE ts >= clock)"
        slides = (("s", inner.slide), (stream, 0))
    reference = condition.replace(f"INTERVAL '{-low} us'", str(-low)).replace(
        f"INTERVAL '{high} us'", str(high)
    )
    return _Case(
        statements,
        f"SELECT {shown} FROM m JOIN {asked} o{condition}{where}",
        f"SELECT {shown} FROM ({inner.reference}) m JOIN {rows} o{reference}{where}",
        slides,
    )


@pytest.mark.parametrize("make", [_filter, _windows, _join])
@pytest.mark.parametrize("times", also_long(30))
def test_the_rows_are_those_of_duckdb(
    make: Callable[[random.Random], _Case], times: int, tmp_path: Path
) -> None:
    reference = duckdb.connect(":memory:")
    productive = late = 0
    tried = cases(0.0015) * times
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        delays = r.choice((0, 1, 4, 12)), r.choice((0, 1, 4, 12))
        statements = declared(tmp_path, delays, rate=(rate := r.random() < 0.5))
        asked = make(r)
        catalog = catalog_with(f"{statements} {asked.statements}", asked.alert)
        run = play(r, catalog, rate=rate, slides=asked.slides)
        found = expected(reference, tmp_path, run, asked.reference)
        assert comparable(run.rows) == comparable(found), (case, asked, run)
        productive += bool(run.rows)
        late += run.late > 0
    assert productive > tried // 4
    assert late > 0
