"""Aggregates of windows that end by watermarks, beside the aggregates of DuckDB over a stored table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.harness import Cell, Result, Say, medians
from tamis.expressions.vectors import Vector
from tamis.planning.physical.lowering import standing_evaluator

NAME = "windows"
TUPLES = 1_000_000
STATIONS = 1_000
BATCH = 65_536
RATE = 1_000  # tuples of all stations together in a second
DELAY = 2_000_000
MINUTE = 60_000_000
COLUMNS = ("aggregates", "windows", "tuples/s", "most entries", "rows", "DuckDB, tuples/s", "ratio")
STREAM = (
    "CREATE STREAM s (k VARCHAR, ts TIMESTAMP, x DOUBLE, n BIGINT,"
    " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
)
TUMBLE = "TUMBLE(s, ts, INTERVAL '1' MINUTE)"
HOP = "HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)"
CUMULATE = "CUMULATE(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)"
SESSION = "SESSION(s PARTITION BY k, ts, INTERVAL '2' SECOND)"
GAP = 2_000_000
KINDS = {TUMBLE: "tumbling", HOP: "hopping", CUMULATE: "cumulative", SESSION: "sessions"}
ASKED = (
    ("count(*), sum(x), avg(x), min(x), max(x)", TUMBLE),
    ("count(*), sum(n), max(n)", TUMBLE),
    ("median(x), count(DISTINCT n)", TUMBLE),
    ("count(*), sum(x), avg(x), min(x), max(x)", HOP),
    ("count(*), sum(x), avg(x), min(x), max(x)", CUMULATE),
    ("count(*), sum(x), avg(x), min(x), max(x)", SESSION),
    ("count(*), sum(n), max(n)", SESSION),
)


@dataclass(frozen=True)
class _Tuples:
    """In the order in which they come, at most two seconds late, and the watermark behind each."""

    columns: dict[str, Vector]
    reached: NDArray[np.int64]

    @property
    def table(self) -> pa.Table:
        """For DuckDB."""
        return pa.table({name: pa.array(one.data.tolist()) for name, one in self.columns.items()})


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    tuples = _tuples(TUPLES // 50 if quick else TUPLES)
    repeats = 1 if quick else 5
    rows: list[dict[str, Cell]] = []
    with duckdb.connect(":memory:", config={"threads": 1}) as base:
        base.register("given", tuples.table)
        base.execute("CREATE TABLE s AS SELECT * FROM given")
        for select, window in ASKED:
            say(f"{select} of {window}")
            rows.append(_row(select, window, tuples, base, repeats))
    return Result(
        NAME,
        "Aggregates of windows",
        COLUMNS,
        rows,
        {"tuples": len(tuples.reached), "stations": STATIONS, "batch": BATCH, "quick": quick},
        (
            f"rates are for CPU time on one core, median of {repeats} runs; Tamis and DuckDB alternate",
            f"the stream has {len(tuples.reached):,} tuples of {STATIONS:,} stations, about {RATE:,} a"
            f" second; tuples are up to {DELAY // 1_000_000} s late",
            "a window is one minute long; hopping windows start every 10 s, cumulative windows have a row"
            " every 10 s; a session has no gap of more than 2 s; a group is one station",
            f"Tamis gets batches of {BATCH:,} tuples, each followed by a watermark, gives rows when windows"
            " end, and computes exact sums",
            "DuckDB has all tuples in its own table and runs on one thread; its sums of DOUBLE depend on the"
            " order of the tuples",
            "most entries: the largest number of entries after a batch",
            "ratio: rate of Tamis / rate of DuckDB",
        ),
    )


def _row(
    select: str, window: str, tuples: _Tuples, base: duckdb.DuckDBPyConnection, repeats: int
) -> dict[str, Cell]:
    works: dict[str, Callable[[], tuple[int, int]]] = {
        "ours": partial(_ours, select, window, tuples),
        "theirs": partial(_theirs, select, window, base),
    }
    found = medians(works, repeats)
    (mine, (rows, most)), (its, (expected, _)) = found["ours"], found["theirs"]
    if rows != expected:
        raise AssertionError(f"{rows} rows, and DuckDB has {expected}")
    count = len(tuples.reached)
    return {
        "aggregates": select,
        "windows": KINDS[window],
        "tuples/s": count / mine,
        "most entries": most,
        "rows": rows,
        "DuckDB, tuples/s": count / its,
        "ratio": its / mine,
    }


def _ours(select: str, window: str, tuples: _Tuples) -> tuple[int, int]:
    """The number of rows, and the most entries after a batch."""
    query = standing_evaluator(
        f"{STREAM} CREATE ALERT q AS SELECT window_end, k, {select} FROM {window} GROUP BY window_end, k",
        "q",
    )
    rows = most = 0
    for first in range(0, len(tuples.reached), BATCH):
        part = slice(first, first + BATCH)
        batch = {name: Vector(one.data[part]) for name, one in tuples.columns.items()}
        reached = tuples.reached[part]
        query.take("s", batch, len(reached))
        rows += len(query.advance("s", int(reached[-1])))
        most = max(most, query.entries())
    return rows + len(query.advance("s", 2**62)), most


def _theirs(select: str, window: str, base: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The number of rows, and all tuples."""
    if window == SESSION:
        # Gaps and islands.
        timed = "SELECT *, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before FROM s"
        begins = f"CASE WHEN before IS NULL OR ts - before > {GAP} THEN ts END"
        runs = f"SELECT *, max({begins}) OVER (PARTITION BY k ORDER BY ts) AS first FROM ({timed})"
        found = base.sql(f"SELECT first, max(ts) + {GAP}, k, {select} FROM ({runs}) GROUP BY first, k")
        return len(found.fetchnumpy()["k"]), TUPLES
    start = f"ts // {MINUTE} * {MINUTE} AS window_start"
    if window == HOP:
        slide = MINUTE // 6
        first = f"ts // {slide} * {slide}"
        start = f"unnest(range({first} - {MINUTE - slide}, {first} + 1, {slide})) AS window_start"
    if window == CUMULATE:
        step = MINUTE // 6
        ends = f"(ts % {MINUTE} // {step} + 1) * {step}, {MINUTE} + 1, {step}"
        start = f"ts // {MINUTE} * {MINUTE} + unnest(range({ends})) AS window_start"
    found = base.sql(
        f"SELECT window_start, k, {select} FROM (SELECT *, {start} FROM s) GROUP BY window_start, k"
    )
    return len(found.fetchnumpy()["k"]), TUPLES


def _tuples(count: int) -> _Tuples:
    r = np.random.default_rng(1)
    ts = np.sort(r.integers(0, count * 1_000_000 // RATE, count)) - r.integers(0, DELAY, count)
    ts += 10 * MINUTE
    stations = np.array([f"station {number}" for number in range(STATIONS)], np.object_)
    columns = {
        "k": stations[r.integers(0, STATIONS, count)],
        "ts": ts,
        "x": r.normal(20, 5, count),
        "n": r.integers(0, 1_000_000, count),
    }
    reached = np.maximum.accumulate(ts) - DELAY
    return _Tuples({name: Vector(data) for name, data in columns.items()}, reached)
