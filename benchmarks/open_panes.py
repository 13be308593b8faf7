"""Partial aggregates that an edge adds to, beside those of the operator of a query.

The operator adds a batch to its tables at once, which is made for few batches of many tuples. An edge adds
each poll of its source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Cell, Result, Say, medians
from tamis.declarations.aggregates import Aggregate
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Columns, Vector
from tamis.operators.windows.group_rows import GroupRows
from tamis.operators.windows.open_panes import OpenPanes
from tamis.plan.nodes import Grouping

NAME = "open_panes"
BATCHES = 60
GROUPS, BATCH = 1_000, 5_000
MINUTE = 60_000_000
COLUMNS = ("aggregates", "edge, µs a reading", "operator, µs a reading", "ratio")
K = Column("", "k", Type.VARCHAR)
X, N = Column("", "x", Type.DOUBLE), Column("", "n", Type.BIGINT)
ASKED = {
    "avg(x)": (("avg", X),),
    "min(x), max(x), stddev(x)": (("min", X), ("max", X), ("stddev_samp", X)),
    "sum(n), var_pop(n)": (("sum", N), ("var_pop", N)),
    "median(x)": (("median", X),),
}

Batches = list[tuple[NDArray[np.int64], Columns]]


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    batches = _batches(2 if quick else BATCHES)
    rows = []
    for name, calls in ASKED.items():
        say(name)
        aggregates = tuple(Aggregate(function, column, False, Type.DOUBLE) for function, column in calls)
        rows.append(_row(name, Grouping((K,), aggregates, ()), batches, 1 if quick else 5))
    return Result(
        NAME,
        "Partial aggregates at an edge",
        COLUMNS,
        rows,
        {"groups": GROUPS, "batch": BATCH, "batches": len(batches), "quick": quick},
        (
            f"CPU time on one core, {len(batches)} batches of {BATCH:,} readings; {GROUPS:,} groups have 10"
            " readings a second each, in panes of a minute",
            "ratio: time of the operator / time of the edge",
        ),
    )


def _row(name: str, grouping: Grouping, batches: Batches, repeats: int) -> dict[str, Cell]:
    works: dict[str, Callable[[], int]] = {
        "edge": partial(_edge, grouping, batches),
        "operator": partial(_operator, grouping, batches),
    }
    _edge(grouping, batches[:1])  # loads the kernels
    (edge, rows), (operator, expected) = medians(works, repeats).values()
    if rows != expected:
        raise AssertionError(f"{rows} rows, and the operator has {expected}")
    readings = len(batches) * BATCH
    return dict(
        zip(COLUMNS, (name, edge / readings * 1e6, operator / readings * 1e6, operator / edge), strict=True)
    )


def _edge(grouping: Grouping, batches: Batches) -> int:
    panes = OpenPanes(grouping)
    for starts, columns in batches:
        panes.add(starts, columns, BATCH)
    return len(panes.take())


def _operator(grouping: Grouping, batches: Batches) -> int:
    of = GroupRows(grouping)
    tables = of.empty()
    for starts, columns in batches:
        tables = of.added(tables, starts, of.counted(columns, BATCH))
    return len(tables[0])


def _batches(count: int) -> Batches:
    r = np.random.default_rng(1)
    names = np.array([f"sensor {number}" for number in range(GROUPS)], np.object_)
    batches: Batches = []
    for number in range(count):
        times = (number * BATCH + np.arange(BATCH)) * 1_000_000 // (10 * GROUPS)
        columns = {
            "k": names[r.integers(0, GROUPS, BATCH)],
            "x": r.normal(20, 5, BATCH).round(2),
            "n": r.integers(-(2**60), 2**60, BATCH),
        }
        batches.append(
            (times // MINUTE * MINUTE, {("", name): Vector(data) for name, data in columns.items()})
        )
    return batches
