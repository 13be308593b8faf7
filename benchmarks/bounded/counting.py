"""Bounded queries that count duplicates, in batches and tuple by tuple."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.expressions.vectors import Vector
from tamis.planning.explain import explain
from tamis.planning.physical.lowering import standing_evaluator
from tamis.query.parse import catalog_of

NAME = "bounded.counting"
BATCH = 25_000  # of each stream
SINGLE = 1_000  # tuples one by one
HIGHEST = 1_000_000
COLUMNS = (
    "query",
    "items",
    "tuples",
    "tuples/s",
    "rows a tuple",
    "one by one, tuples/s",
    "speedup",
    "entries",
    "bound",
)

STREAMS = """
CREATE STREAM bids (item INT, price BIGINT, grade INT CHECK (grade BETWEEN 1 AND 5), weight DOUBLE);
CREATE STREAM asks (item INT, price BIGINT, grade INT CHECK (grade BETWEEN 1 AND 5), weight DOUBLE);
"""
JOINED = "FROM bids b, asks a WHERE a.item = b.item AND b.item BETWEEN 1 AND {items}"
ALONE = "FROM bids b WHERE b.item BETWEEN 1 AND {items}"
# By query: the numbers of items, and the SQL. A join without aggregates has many items, since with few items
# it would have too many rows.
QUERIES: Mapping[str, tuple[tuple[int, ...], str]] = {
    "join": ((10_000,), f"SELECT b.item {JOINED}"),
    "join, by grades": ((10_000,), f"SELECT b.item, a.grade {JOINED} AND a.grade <= b.grade"),
    "count(*), sum(a.price) of the join": (
        (100, 10_000),
        f"SELECT b.item, count(*) AS n, sum(a.price) AS s {JOINED} GROUP BY b.item",
    ),
    "count(*), sum(price)": (
        (100, 10_000),
        f"SELECT b.item, count(*) AS n, sum(b.price) AS s {ALONE} GROUP BY b.item",
    ),
    "avg, max of DOUBLE": (
        (100, 10_000),
        f"SELECT b.item, avg(b.weight) AS a, max(b.weight) AS g {ALONE} GROUP BY b.item",
    ),
    "min, max, HAVING": (
        (100, 10_000),
        f"SELECT b.item, min(b.price) AS l, max(b.price) AS g {ALONE} GROUP BY b.item"
        " HAVING max(b.price) > 900000",
    ),
    "count(DISTINCT grade), median(grade)": (
        (100, 10_000),
        f"SELECT b.item, count(DISTINCT b.grade) AS n, median(b.grade) AS m {ALONE} GROUP BY b.item",
    ),
}


@dataclass(frozen=True)
class _Taken:
    seconds: float
    tuples: int
    rows: int
    entries: int


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    batches = 2 if quick else 40
    rows: list[dict[str, Cell]] = []
    for query, (sizes, sql) in QUERIES.items():
        for items in sizes:
            say(f"{query}, {items:,} items")
            text = f"{STREAMS} CREATE ALERT counted AS {sql.format(items=items)};"
            _taken(text, items, 2, 100)  # compiled beforehand
            ours = _taken(text, items, batches, BATCH)
            single = _taken(text, items, SINGLE, 1)
            rate, alone = ours.tuples / ours.seconds, single.tuples / single.seconds
            rows.append(
                {
                    "query": query,
                    "items": items,
                    "tuples": ours.tuples,
                    "tuples/s": rate,
                    "rows a tuple": ours.rows / ours.tuples,
                    "one by one, tuples/s": alone,
                    "speedup": rate / alone,
                    "entries": ours.entries,
                    "bound": explain(catalog_of(text), "counted").memory.bound,
                }
            )
    return Result(
        NAME,
        "Bounded queries that count duplicates",
        COLUMNS,
        rows,
        {"batch": BATCH, "single": SINGLE, "quick": quick},
        (
            f"tuples/s: for CPU time on one core; batches of {BATCH:,} tuples of each stream alternate",
            f"one by one: the same query with batches of one tuple, over {SINGLE:,} tuples",
            "speedup: tuples/s / tuples/s one by one",
            "the joins combine bids and asks of the same item; the other queries read bids only; aggregates"
            " are grouped by item",
            "rows a tuple: rows of the result for each tuple; for a join without aggregates this number grows"
            " with the number of tuples",
        ),
    )


def _taken(text: str, items: int, batches: int, size: int) -> _Taken:
    query = standing_evaluator(text, "counted")
    tuples, rows, seconds = 0, 0, 0.0
    for stream, batch in _batches(items, batches, size):
        if stream in query.streams:
            began = time.process_time()
            rows += len(query.take(stream, batch, size))
            seconds += time.process_time() - began
            tuples += size
    return _Taken(seconds, tuples, rows, query.entries())


def _batches(items: int, batches: int, size: int) -> Iterator[tuple[str, dict[str, Vector]]]:
    """The same in every run, of both streams alternately."""
    r = np.random.default_rng(6)
    for number in range(batches):
        columns = {
            "item": r.integers(1, items + 1, size),
            "price": r.integers(0, HIGHEST, size),
            "grade": r.integers(1, 6, size),
            "weight": r.normal(20, 5, size),
        }
        yield ("bids", "asks")[number % 2], {name: Vector(data) for name, data in columns.items()}
