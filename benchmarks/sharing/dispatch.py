"""The filters of all queries of a stream in one pass, beside one filter after the other."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.sharing.filters import FIRST, LAST, filters, names
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.filter_dispatch import Bools, Dispatch

NAME = "sharing.dispatch"
COUNTS = (1, 10, 100, 500)
SHARES = (0.001, 0.1)
DIMENSIONS = 3
BATCH = 2_000
Columns = dict[str, Vector]
COLUMNS = ("filters", "selectivity of each", "in one pass, ns/tuple", "one by one, ns/tuple", "speedup")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    random = np.random.default_rng(1)
    batch = _batch(random)
    repeats = 1 if quick else 15
    rows: list[dict[str, Cell]] = []
    for share in SHARES:
        for count in COUNTS[:2] if quick else COUNTS:
            say(f"{count} filters of {share:.1%} each")
            rows.append(_row(filters(random, count, DIMENSIONS, share), share, batch, repeats))
    return Result(
        NAME,
        "Filters of many queries on one stream",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "batch": BATCH, "repeats": repeats, "quick": quick},
        (
            f"CPU time on one core in batches of {BATCH:,} tuples, median of {repeats} runs of each method;"
            " the methods alternate",
            "each method evaluates all filters and finds the tuples for which at least one filter holds",
            f"each filter is a box over {DIMENSIONS} attributes",
            "one by one: evaluates each filter as an expression over columns, as Tamis does for filters that"
            " aren't boxes",
            "speedup: time one by one / time in one pass",
        ),
    )


def _row(given: list[Expr], share: float, batch: Columns, repeats: int) -> dict[str, Cell]:
    dispatch = Dispatch(given)
    _in_one_pass(dispatch, batch)
    works = {"pass": partial(_in_one_pass, dispatch, batch), "turn": partial(_in_turn, given, batch)}
    found = medians(works, repeats)
    (together, some), (apart, same) = found["pass"], found["turn"]
    if not np.array_equal(some, same):
        raise AssertionError("both ways must find the same")
    per_tuple = 1e9 / BATCH
    return {
        "filters": len(given),
        "selectivity of each": share,
        "in one pass, ns/tuple": together * per_tuple,
        "one by one, ns/tuple": apart * per_tuple,
        "speedup": apart / together,
    }


def _in_one_pass(dispatch: Dispatch, batch: Columns) -> Bools:
    found: Bools = np.logical_or.reduce(dispatch.over(batch, BATCH).found, axis=0)
    return found


def _in_turn(given: list[Expr], batch: Columns) -> Bools:
    columns = {("", name): column for name, column in batch.items()}
    out = np.zeros(BATCH, np.bool_)
    for filter_ in given:
        out |= holds(filter_, columns, BATCH)
    return out


def _batch(random: np.random.Generator) -> Columns:
    return {name: Vector(random.uniform(FIRST, LAST, BATCH)) for name in names(DIMENSIONS)}
