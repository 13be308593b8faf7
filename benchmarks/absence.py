"""Anti-joins by time and silences, beside NOT EXISTS of DuckDB over stored tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import duckdb
import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.late_streams import DELAY, EVERY, STATIONS, STREAMS, TUPLES, Streams, store, two_streams
from tamis.operators.time_join.replay import replay
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

NAME = "absence"
SECOND = 1_000_000
COLUMNS = ("alert", "tuples/s", "retained, %", "rows", "DuckDB, tuples/s", "ratio")
NEAR = "b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts"
ASKED = {
    "NOT EXISTS": f"SELECT a.k, a.ts FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {NEAR})",
    "of high values": f"""SELECT a.k, a.ts FROM a
        WHERE a.x > 30 AND NOT EXISTS (SELECT 1 FROM b WHERE {NEAR})""",
    "with a comparison": f"""SELECT a.k, a.ts FROM a
        WHERE NOT EXISTS (SELECT 1 FROM b WHERE {NEAR} AND b.x > a.x)""",
    "NO READING for 5 s": "SELECT k, ts FROM a WHERE NO READING FOR INTERVAL '5' SECOND",
}
# DuckDB's, where it is written in another way.
THEIRS = {
    "NO READING for 5 s": f"""SELECT a.k, a.ts FROM a WHERE NOT EXISTS (SELECT 1 FROM a b
        WHERE b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {5 * SECOND})"""
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
        "Absence",
        COLUMNS,
        rows,
        {"tuples": count, "stations": STATIONS, "quick": quick},
        (
            f"rates are for CPU time on one core, median of {repeats} runs; Tamis and DuckDB alternate",
            f"each stream has {count:,} tuples of {STATIONS:,} stations, {SECOND // EVERY:,} a second; tuples"
            f" are up to {DELAY // SECOND} s late",
            "tuples/s: of all streams that the alert reads, together",
            "Tamis runs the filters and the omission of an edge, and the anti-join of the joiner over what is"
            " retained, as `tamis run` does",
            "DuckDB has all tuples in its own tables and runs on one thread",
            "retained: the share of the tuples that an edge publishes",
            "ratio: rate of Tamis / rate of DuckDB",
        ),
    )


def _row(name: str, streams: Streams, base: duckdb.DuckDBPyConnection, repeats: int) -> dict[str, Cell]:
    works: dict[str, Callable[[], tuple[int, float]]] = {
        "ours": _ours(ASKED[name], streams),
        "theirs": partial(_theirs, THEIRS.get(name) or _in_microseconds(ASKED[name]), base),
    }
    works["ours"]()  # the kernels are compiled
    found = medians(works, repeats)
    (mine, (rows, share)), (its, (expected, _)) = found["ours"], found["theirs"]
    if rows != expected:
        raise AssertionError(f"{rows} rows, and DuckDB has {expected}")
    count = (1 if name.startswith("NO READING") else 2) * len(streams["a"]["ts"])
    return {
        "alert": name,
        "tuples/s": count / mine,
        "retained, %": 100 * share,
        "rows": rows,
        "DuckDB, tuples/s": count / its,
        "ratio": its / mine,
    }


def _ours(sql: str, streams: Streams) -> Callable[[], tuple[int, float]]:
    """A run of Tamis, which gives the number of rows and the share of tuples that are retained."""
    catalog = catalog_of(f"{STREAMS} CREATE ALERT q AS {sql};")
    plan = first_plan(catalog)
    recordings = {
        name: Recording(catalog.streams[name], columns, np.zeros(len(columns["ts"]), np.bool_), {}, 0)
        for name, columns in streams.items()
    }

    def work() -> tuple[int, float]:
        found = replay(plan.definitions[0], plan.streams, recordings)
        return len(found), found.retained / found.tuples

    return work


def _in_microseconds(sql: str) -> str:
    return sql.replace("INTERVAL '2' SECOND", str(2 * SECOND))


def _theirs(sql: str, base: duckdb.DuckDBPyConnection) -> tuple[int, float]:
    """The number of rows; all tuples are stored."""
    return len(base.sql(sql).fetchnumpy()["k"]), 1.0
