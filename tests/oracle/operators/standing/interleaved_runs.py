"""Random runs of a standing query over two streams and a table, for comparison with DuckDB.

The tuples of both streams come in one order, with watermarks between them; the state is dumped and loaded at
random points. In DuckDB a stream has the watermark of each tuple's arrival as `mark`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
from tests.operators import compile_query

from tamis.expressions.vectors import Vector
from tamis.operators.contract import CountsLate, Rows, StandingEvaluator
from tamis.planning.explain import explain
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

Tuple = tuple[int, str | None, int | None, float | None]  # ts, k, n, x
Row = tuple[object, ...]

NAMES = ("ts", "k", "n", "x")
_ARROW = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.int64(), pa.int64())
_END = 2**62
_TABLE = "key,region,low,factor\np,north,0,1.5\nq,north,1,\nq,south,2,0.5\n,west,0,1\nother,west,2,-2\n"


def declared(directory: Path, delays: tuple[int, int], *, rate: bool) -> str:
    """CREATE STREAM s and t, and CREATE TABLE d, whose file is written."""
    path = directory / "d.csv"
    path.write_text(_TABLE)
    options = "keys = 3, max_stall = '1us', max_ahead = '0'" + (", rate = '1/2us'" if rate else "")
    streams = (
        f"CREATE STREAM {name} (ts TIMESTAMP, k VARCHAR KEY, n INT CHECK (n BETWEEN 0 AND 3), x DOUBLE,"
        f" WATERMARK FOR ts AS ts - INTERVAL '{delay} us') WITH ({options});"
        for name, delay in zip("st", delays, strict=True)
    )
    table = "CREATE TABLE d (key VARCHAR, region VARCHAR, low INT, factor DOUBLE)"
    return f"{' '.join(streams)} {table} WITH (path = '{path}');"


def windowed(stream: str, slide: int, size: int) -> tuple[str, str]:
    """A stream in windows in FROM: for Tamis, and for DuckDB. A tuple is not in windows that had ended."""
    call = f"HOP({stream}, ts, INTERVAL '{slide} us', INTERVAL '{size} us')"
    if slide == size:
        call = f"TUMBLE({stream}, ts, INTERVAL '{size} us')"
    return call, in_windows(f"(SELECT * FROM {stream})", "ts", slide, size, "WHERE window_end > mark")


def in_windows(rows: str, time: str, slide: int, size: int, condition: str = "") -> str:
    """SQL of rows in the windows that contain their time."""
    first = f"CAST(floor({time}::HUGEINT / {slide}) AS BIGINT)"
    # DuckDB divides as DOUBLE, which is close enough: WHERE leaves the windows that contain the time.
    starts = f"unnest(range(({first} - {size // slide} - 2) * {slide}, ({first} + 3) * {slide}, {slide}))"
    each = f"SELECT *, {starts} AS window_start FROM {rows}"
    ends = f"SELECT *, window_start + {size} AS window_end FROM ({each})"
    inside = f"SELECT * FROM ({ends}) WHERE window_start <= {time} AND {time} < window_end"
    return f"(SELECT * FROM ({inside}) {condition})"


@dataclass
class Run:
    """The rows of a random run, and its input: the tuples of each stream, and the watermark of its stream
    when each of them came. `clocks`: the time that a query in application time, or a join in windows, had
    reached then.
    """

    rows: list[Row] = field(default_factory=list)
    tuples: dict[str, list[Tuple]] = field(default_factory=lambda: {"s": [], "t": []})
    marks: dict[str, list[int]] = field(default_factory=lambda: {"s": [], "t": []})
    clocks: dict[str, list[int]] = field(default_factory=lambda: {"s": [], "t": []})
    late: int = 0


def play(
    r: random.Random,
    catalog: Catalog,
    *,
    rate: bool,
    slides: Sequence[tuple[str, int]] = (),
    follows: Sequence[tuple[str, int]] = (),
    within: int | None = None,
) -> Run:
    """Run the alert q of a catalogue over random tuples. The entries never exceed its bound.

    `slides` has what a query in application time reads: a stream, and the slide of the windows whose rows it
    reads, or 0 for the tuples themselves. `follows` has what a join in windows reads: a stream, and how much
    later its tuples may be than those whose event time the rows have. If its tuples share windows, `within`
    is the size of these.
    """
    alert = catalog.alerts["q"]
    memory = explain(catalog, "q").memory
    assert memory.verdict == "bounded"
    run = Run()
    query = fresh(catalog)
    delays = {name: catalog.streams[name].delay for name in "st"}
    now = r.choice((0, -30, 10**9, -(10**15) - 7))
    mark = dict.fromkeys("st", -(2**60))
    seen: set[tuple[str, str | None, int]] = set()
    for _ in range(r.choice((1, 4, 15, 40))):
        now, batches = _arrivals(r, now, seen, rate=rate)
        for name, batch in batches.items():
            if not batch or name not in query.streams:
                continue
            run.tuples[name] += batch
            run.marks[name] += [mark[name]] * len(batch)
            reached = [_reached(mark[of], slide) for of, slide in slides]
            reached += [mark[of] - later for of, later in follows]
            clock = min(reached, default=-_END)
            if within is not None:
                clock = max(clock, min(mark[of] for of, _ in follows) // within * within)
            run.clocks[name] += [clock] * len(batch)
            run.rows += listed(query.take(name, _columns(catalog, name, batch), len(batch)))
        if r.random() < 0.9:
            for name in r.sample("st", 2):
                if name in query.streams:
                    mark[name] = now - delays[name]
                    run.rows += listed(query.advance(name, mark[name]))
            if memory.bound is not None:
                assert query.entries() <= memory.bound, (alert.sql, run.tuples, memory)
        if r.random() < 0.2:
            state, query = query.dump(), fresh(catalog)
            query.load(state)
    for name in sorted(query.streams):
        run.rows += listed(query.advance(name, _END))
    run.late = query.late if isinstance(query, CountsLate) else 0
    return run


def _reached(mark: int, slide: int) -> int:
    """The watermark of the rows of windows: the last moment of the next window that ends."""
    return (mark // slide + 1) * slide - 1 if slide else mark


def fresh(catalog: Catalog) -> StandingEvaluator:
    """The alert q without tuples."""
    found = compile_query(catalog.alerts["q"].query, catalog)
    assert found is not None
    return found


def _arrivals(
    r: random.Random, now: int, seen: set[tuple[str, str | None, int]], *, rate: bool
) -> tuple[int, dict[str, list[Tuple]]]:
    """The time after some arrivals, and the tuples that arrive. With `rate`, at most one of a key in any two
    microseconds.
    """
    found: dict[str, list[Tuple]] = {"s": [], "t": []}
    for _ in range(r.choice((1, 1, 3, 8))):
        now += r.choice((0, 0, 1, 1, 2, 9)) if r.random() < 0.97 else r.choice((50, 10**7))
        name, k = r.choice("sst"), r.choice(("p", "q", "r"))
        ts = now - (0 if r.random() < 0.7 else r.randint(0, 25))
        if rate and any((name, k, at) in seen for at in (ts - 1, ts, ts + 1)):
            continue
        seen.add((name, k, ts))
        found[name].append(
            (ts, k, r.choice((None, 0, 1, 2, 3)), r.choice((None, 0.5, 0.0, -1.25, 3.0, 0.125)))
        )
    return now, found


def _columns(catalog: Catalog, stream: str, tuples: Sequence[Tuple]) -> dict[str, Vector]:
    definition = catalog.streams[stream]
    columns = zip(*tuples, strict=True)
    return {
        name: Vector.from_list(list(values), column.type)
        for name, values in zip(NAMES, columns, strict=True)
        if (column := definition.column(name)) is not None
    }


def listed(rows: Rows) -> list[Row]:
    """The rows as tuples."""
    return list(zip(*(vector.to_list() for vector in rows.columns.values()), strict=True))


def expected(reference: duckdb.DuckDBPyConnection, directory: Path, run: Run, sql: str) -> list[Row]:
    """The rows of DuckDB over the whole input of a run."""
    for name in "st":
        columns = [*map(list, zip(*run.tuples[name], strict=True))] or [[] for _ in NAMES]
        table = pa.table(
            [
                pa.array(one, kind)
                for one, kind in zip([*columns, run.marks[name], run.clocks[name]], _ARROW, strict=True)
            ],
            [*NAMES, "mark", "clock"],
        )
        reference.register(f"given_{name}", table)
        reference.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given_{name}")
    reference.execute(
        f"CREATE OR REPLACE TABLE d AS SELECT * FROM read_csv('{directory / 'd.csv'}', nullstr = '')"
    )
    return reference.execute(sql).fetchall()


def comparable(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Rows in an order of their own; -0.0 is 0.0."""
    return sorted(
        tuple(repr(value + 0.0 if isinstance(value, float) else value) for value in row) for row in rows
    )


def catalog_with(statements: str, alert: str) -> Catalog:
    """The catalogue of the statements and of the alert q."""
    return catalog_of(f"{statements} CREATE ALERT q AS {alert};")
