"""ASOF JOIN that is decided by watermarks, beside the ASOF JOIN of DuckDB over stored tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import duckdb

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.late_streams import DELAY, EVERY, STATIONS, STREAMS, TUPLES, Streams, store, two_streams
from tamis.expressions.vectors import Vector
from tamis.planning.physical.lowering import standing_evaluator

NAME = "latest_values"
BATCH = 65_536  # tuples of each stream between two watermarks
COLUMNS = ("join", "tuples/s", "most entries", "rows", "DuckDB, tuples/s", "ratio")
ON = "a.k = b.k AND a.ts >= b.ts"
ASKED = {
    "ASOF JOIN": f"SELECT a.k, a.x, b.x AS y FROM a ASOF JOIN b ON {ON}",
    "with a threshold": f"SELECT a.k, a.x, b.x AS y FROM a ASOF JOIN b ON {ON} WHERE a.x - b.x > 15",
    "LEFT, at most 1 s old": f"""SELECT a.k, b.x AS y FROM a LEFT ASOF JOIN b ON {ON}
        AND b.ts >= a.ts - INTERVAL '1' SECOND""",
    "with the tuple before": """SELECT a.k, a.x - b.x AS d FROM a ASOF JOIN a b
        ON a.k = b.k AND a.ts > b.ts""",
}
# DuckDB's, where it is written in another way.
THEIRS = {
    "LEFT, at most 1 s old": f"""SELECT a.k, CASE WHEN b.ts >= a.ts - 1000000 THEN b.x END AS y
        FROM a ASOF LEFT JOIN b ON {ON}""",
}


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count = TUPLES // 50 if quick else TUPLES
    streams = two_streams(count)
    repeats = 1 if quick else 5
    rows: list[dict[str, Cell]] = []
    with duckdb.connect(":memory:", config={"threads": 1}) as base:
        store(base, streams)
        for name in ASKED:
            say(name)
            rows.append(_row(name, streams, base, repeats))
    return Result(
        NAME,
        "Latest values",
        COLUMNS,
        rows,
        {"tuples": count, "stations": STATIONS, "batch": BATCH, "quick": quick},
        (
            f"rates are for CPU time on one core, median of {repeats} runs; Tamis and DuckDB alternate",
            f"each stream has {count:,} tuples of {STATIONS:,} stations, {1_000_000 // EVERY:,} a second;"
            f" tuples are up to {DELAY // 1_000_000} s late",
            "tuples/s: of all streams that the join reads, together",
            f"Tamis gets batches of {BATCH:,} tuples of each stream, followed by the watermarks, and gives"
            " rows when these have passed them",
            "DuckDB has all tuples in its own tables and runs on one thread",
            "most entries: the largest number of entries after a batch",
            "ratio: rate of Tamis / rate of DuckDB",
        ),
    )


def _row(name: str, streams: Streams, base: duckdb.DuckDBPyConnection, repeats: int) -> dict[str, Cell]:
    works: dict[str, Callable[[], tuple[int, int]]] = {
        "ours": partial(_ours, ASKED[name], streams),
        "theirs": partial(_theirs, THEIRS.get(name, ASKED[name]), base),
    }
    found = medians(works, repeats)
    (mine, (rows, most)), (its, (expected, _)) = found["ours"], found["theirs"]
    if rows != expected:
        raise AssertionError(f"{rows} rows, and DuckDB has {expected}")
    read = 1 if "JOIN a b" in ASKED[name] else 2
    count = read * len(streams["a"]["ts"])
    return {
        "join": name,
        "tuples/s": count / mine,
        "most entries": most,
        "rows": rows,
        "DuckDB, tuples/s": count / its,
        "ratio": its / mine,
    }


def _ours(sql: str, streams: Streams) -> tuple[int, int]:
    """The number of rows, and the most entries after a batch."""
    query = standing_evaluator(f"{STREAMS} CREATE ALERT q AS {sql}", "q")
    rows = most = 0
    for first in range(0, len(streams["a"]["ts"]), BATCH):
        for name in sorted(query.streams):
            columns = streams[name]
            batch = {key: Vector(one.data[first : first + BATCH]) for key, one in columns.items()}
            query.take(name, batch, len(batch["ts"]))
        for name in sorted(query.streams):
            reached = int(streams[name]["ts"].data[: first + BATCH].max()) - DELAY
            rows += len(query.advance(name, reached))
        most = max(most, query.entries())
    return rows + sum(len(query.advance(name, 2**62)) for name in sorted(query.streams)), most


def _theirs(sql: str, base: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The number of rows, and all tuples."""
    return len(base.sql(sql).fetchnumpy()["k"]), TUPLES
