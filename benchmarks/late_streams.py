"""Two streams with tuples out of order, for queries by time beside DuckDB over stored tables."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa

from tamis.expressions.vectors import Vector

TUPLES = 500_000  # of each stream
STATIONS = 1_000
EVERY = 1_000  # microseconds between two tuples of a stream
DELAY = 2_000_000
STREAMS = "".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE,"
    " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
    for name in ("a", "b")
)
Streams = Mapping[str, dict[str, Vector]]  # in the order in which the tuples come


def two_streams(count: int) -> Streams:
    """The streams a and b, of `count` tuples each; no two tuples of a stream have the same time."""
    return {name: _tuples(count, seed) for seed, name in enumerate(("a", "b"))}


def store(base: duckdb.DuckDBPyConnection, streams: Streams) -> None:
    """Store each stream as a table of its name, with times as microseconds."""
    for name, columns in streams.items():
        base.register("given", pa.table({key: pa.array(one.data.tolist()) for key, one in columns.items()}))
        base.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        base.unregister("given")


def _tuples(count: int, seed: int) -> dict[str, Vector]:
    r = np.random.default_rng(seed)
    ts = np.arange(1, count + 1) * EVERY + 10 * DELAY
    ts = ts[np.argsort(ts + r.integers(0, DELAY, count), kind="stable")]
    stations = np.array([f"station {number}" for number in range(STATIONS)], np.object_)
    return {
        "k": Vector(stations[r.integers(0, STATIONS, count)]),
        "ts": Vector(ts),
        "x": Vector(r.normal(20, 5, count)),
    }
