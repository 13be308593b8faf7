"""Representatives of queries with DISTINCT, beside the synopses of differences that decide them, too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.bounded.representatives.proof import Represented, represented
from tamis.expressions.vectors import Vector
from tamis.operators.build import operator
from tamis.operators.contract import StandingEvaluator
from tamis.planning.physical.timeless import representatives, rows
from tamis.query.model import TimelessSelect
from tamis.query.parse import catalog_of

NAME = "bounded.representing"
ITEMS = (100, 10_000)
BATCH = 10_000  # of each stream
CONDITIONS = (
    "a.price <= b.price",
    "a.price != b.price",
    "a.price <= b.price AND a.fee <= b.price",
    # Only certificates bound the memory of these.
    "a.price + b.price > 1900",
    "abs(a.price - b.price) > 950",
    "a.price != b.price AND a.fee != b.fee",
)
BY_DIFFERENCES = 3  # so many conditions
COLUMNS = (
    "condition",
    "items",
    "tuples",
    "tuples/s",
    "by differences, tuples/s",
    "ratio",
    "entries",
    "bound",
)

SQL = """
CREATE STREAM bids (item INT KEY, price INT NOT NULL, fee INT NOT NULL) WITH (keys = {items});
CREATE STREAM asks (item INT KEY, price INT NOT NULL, fee INT NOT NULL) WITH (keys = {items});
CREATE ALERT q AS SELECT DISTINCT b.item FROM bids b, asks a WHERE a.item = b.item AND {condition};
"""


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    size = 40_000 if quick else 2_000_000
    found: list[dict[str, Cell]] = []
    for items, condition in product(ITEMS, CONDITIONS):
        say(f"{condition}, {items:,} items")
        catalog = catalog_of(SQL.format(items=items, condition=condition))
        query = catalog.alerts["q"].query
        assert isinstance(query, TimelessSelect)
        proof = represented(query, catalog)
        assert isinstance(proof, Represented), condition
        _taken(operator(representatives(query, proof, catalog)), 2 * BATCH, items)  # compiled beforehand
        mine = operator(representatives(query, proof, catalog))
        seconds, given = _taken(mine, size, items)
        other = None
        if condition in CONDITIONS[:BY_DIFFERENCES]:
            other, its = _taken(operator(rows(query, catalog)), size, items)
            if its != given:
                raise AssertionError(
                    f"{condition}: {its} rows by differences, and {given} by representatives"
                )
        found.append(
            {
                "condition": condition,
                "items": items,
                "tuples": size,
                "tuples/s": size / seconds,
                "by differences, tuples/s": None if other is None else size / other,
                "ratio": None if other is None else other / seconds,
                "entries": mine.entries(),
                "bound": proof.bound,
            }
        )
    return Result(
        NAME,
        "Representatives of joins with DISTINCT",
        COLUMNS,
        found,
        {"batch": BATCH, "quick": quick},
        (
            "the query: SELECT DISTINCT b.item FROM bids b, asks a WHERE a.item = b.item AND the condition;"
            " prices and fees are random whole numbers below 1,000",
            f"the batches of the two streams alternate; a batch has {BATCH:,} tuples",
            "tuples/s: all tuples / CPU time for all tuples, from empty state",
            "by differences: the same query with the synopses of differences, where they bound its memory;"
            " ratio: how many times as fast representatives are",
            "both give the same number of rows",
        ),
    )


def _taken(evaluator: StandingEvaluator, size: int, items: int) -> tuple[float, int]:
    """The CPU seconds for the tuples, and the number of rows."""
    batches = list(_batches(size, items))
    began, given = time.process_time(), 0
    for stream, batch in batches:
        given += len(evaluator.take(stream, batch, BATCH))
    return time.process_time() - began, given


def _batches(size: int, items: int) -> Iterator[tuple[str, dict[str, Vector]]]:
    r = np.random.default_rng(7)
    for _ in range(size // (2 * BATCH)):
        for stream in ("bids", "asks"):
            yield (
                stream,
                {
                    "item": Vector(r.integers(0, items, BATCH)),
                    "price": Vector(r.integers(0, 1_000, BATCH)),
                    "fee": Vector(r.integers(0, 1_000, BATCH)),
                },
            )
