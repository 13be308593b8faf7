"""A bounded query over two streams without time, beside Spark's join of them, by the number of tuples."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Cell, Result, Say
from tamis.errors import UnavailableError
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.planning.physical.lowering import standing_evaluator
from tamis.query.parse import catalog_of

NAME = "bounded.evaluating"
ITEMS = (100, 10_000, 100_000)
HIGHEST = 1_000_000
BATCH = 25_000  # of each stream, or a fortieth of all
# The most tuples that Spark joins, by number of items. Ten million tuples of 10,000 items would have over
# a billion joined pairs.
LARGEST_PEER = {10_000: 1_000_000, 100_000: 10_000_000}
PATIENCE = 3_600.0
ROOT = Path(__file__).resolve().parents[2]
COLUMNS = (
    "tuples",
    "items",
    "tuples/s",
    "entries",
    "bound",
    "state, KB",
    "Spark, tuples/s",
    "Spark, rows of state",
)

SQL = """
CREATE STREAM bids (item INT, price BIGINT);
CREATE STREAM asks (item INT, price BIGINT);
CREATE ALERT crossed AS SELECT DISTINCT b.item FROM bids b, asks a
WHERE a.item = b.item AND a.price <= b.price AND b.item BETWEEN 1 AND {items};
"""


@dataclass(frozen=True)
class _Taken:
    seconds: float
    rows: int
    entries: int
    state: int  # bytes


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    sizes = (100_000,) if quick else (100_000, 1_000_000, 10_000_000)
    _ours(2 * BATCH, ITEMS[0])  # compiled beforehand
    rows: list[dict[str, Cell]] = []
    for items, size in product(ITEMS, sizes):
        say(f"{size:,} tuples of {items:,} items")
        ours = _ours(size, items)
        peer = _peer(size, items) if size <= LARGEST_PEER.get(items, 0) else {}
        if peer and peer["rows"] != ours.rows:
            raise AssertionError(f"Spark gives {peer['rows']} rows, not {ours.rows}")
        rows.append(
            {
                "tuples": size,
                "items": items,
                "tuples/s": size / ours.seconds,
                "entries": ours.entries,
                "bound": explain(catalog_of(SQL.format(items=items)), "crossed").memory.bound,
                "state, KB": ours.state / 1000,
                "Spark, tuples/s": size / peer["seconds"] if peer else None,
                "Spark, rows of state": int(peer["state"]) if peer else None,
            }
        )
    return Result(
        NAME,
        "A bounded join of two streams without time",
        COLUMNS,
        rows,
        {"batch": BATCH, "quick": quick},
        (
            "the query: SELECT DISTINCT b.item FROM bids b, asks a WHERE a.item = b.item AND a.price <="
            " b.price, with limits for item; prices are random",
            f"the batches of the two streams alternate; a batch has {BATCH:,} tuples, or a fortieth of all if"
            " this is more, because Spark's store copies its map for each batch",
            "tuples/s: all tuples / CPU time for all tuples",
            "entries, state: after the last tuple; state is the size of the saved evaluator",
            "Spark: its stream-stream join without watermark, and dropDuplicates; one task at a time; CPU"
            " time of the JVM without its start",
            "Tamis and Spark give the same number of rows",
        ),
    )


def _batches(size: int, items: int) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """The same in every run, of both streams alternately."""
    r = np.random.default_rng(6)
    batch = max(BATCH, size // 40)
    for _ in range(size // (2 * batch)):
        for stream in ("bids", "asks"):
            yield (
                stream,
                {"item": r.integers(1, items + 1, batch), "price": r.integers(0, HIGHEST, batch)},
            )


def _ours(size: int, items: int) -> _Taken:
    query = standing_evaluator(SQL.format(items=items), "crossed")
    rows, seconds = 0, 0.0
    for stream, columns in _batches(size, items):
        batch = {name: Vector(data) for name, data in columns.items()}
        began = time.process_time()
        rows += len(query.take(stream, batch, len(columns["item"])))
        seconds += time.process_time() - began
    return _Taken(seconds, rows, query.entries(), len(query.dump()))


def _peer(size: int, items: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tamis-bench-bounded-") as temporary:
        directory = Path(temporary)
        for number, (stream, columns) in enumerate(_batches(size, items)):
            (directory / stream).mkdir(exist_ok=True)
            pq.write_table(pa.table(columns), directory / stream / f"{number:06}.parquet")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bounded.spark", str(directory), str(directory / "checkpoint")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode:
            raise UnavailableError(f"Spark ended with {done.returncode}: {done.stderr[-2000:]}")
        found: dict[str, float] = orjson.loads(done.stdout.splitlines()[-1])
        if found["tuples"] != size:
            raise AssertionError(f"Spark read {found['tuples']} tuples, not {size}")
        return found
