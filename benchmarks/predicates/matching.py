"""Matching as in Figures 9 to 15 of kuntschke-2006."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tests.oracle.predicates.paper_methods import match

from benchmarks.harness import Cell, Result, Say
from benchmarks.plots import matching
from benchmarks.predicates.generators import pairs
from tamis.errors import RefusedError
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

NAME = "predicates.matching"
METHODS = (
    "exact",
    "hsr",
    "hcr",
    "bfs",
    "bfs-indexed",
    "dfs",
    "dfs-indexed",
    "mix",
    "mix-indexed",
)
COLUMNS = ("figures", "dimensions", "query", "stream", "bounded", *(f"{method}, ms" for method in METHODS))
# CPU seconds for one method of one point, and the fewest pairs.
SECONDS, LEAST = 0.6, 10


class Setting(NamedTuple):
    """One point of some figures."""

    figures: str
    dimensions: int = 6
    query: int = 2
    stream: int = 20
    bounded: bool = True
    methods: Sequence[str] = METHODS


LARGE = tuple(method for method in METHODS if not method.startswith("bfs"))
SETTINGS = (
    *(Setting("9, 12", dimensions=d, bounded=b) for b in (True, False) for d in (2, 4, 6, 8, 10)),
    *(Setting("10, 13", query=m, bounded=b) for b in (True, False) for m in (1, 2, 4, 8)),
    *(Setting("11, 14", stream=n, bounded=b) for b in (True, False) for n in (5, 10, 20, 30, 40)),
    *(Setting("15", stream=n, methods=LARGE) for n in (50, 100, 200, 500)),
)
QUICK = (Setting("9, 12", dimensions=2), Setting("15", stream=50, methods=LARGE))


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    rows = []
    for method in METHODS:  # compiled beforehand
        _try((parse("a < 2 AND b < 9 OR a > 1 AND b < 9 OR b > 8"), parse("a < 5 AND b < 12")), method)
    for setting in QUICK if quick else SETTINGS:
        say(f"Figure {setting.figures}: {setting.dimensions} dimensions, {setting.query} by {setting.stream}")
        rows.append(_row(setting, SECONDS / 20 if quick else SECONDS))
    return Result(
        NAME,
        "Matching predicates: Figures 9 to 15",
        COLUMNS,
        rows,
        {"seconds": SECONDS, "quick": quick},
        (
            "times are CPU milliseconds for a pair of predicates on one core, mean",
            "the pairs combine 60 queries with 20 streams, in random order; the methods alternate, and each"
            f" stops after all pairs or after {SECONDS} s",
            "query, stream: number of boxes of each predicate",
            "bounded: whether each box bounds all dimensions; if not, each box bounds a random choice of"
            " them",
            "all methods make the quick check first; exact is the method that Tamis uses",
            "an empty cell is a method that was not run or gave up; breadth-first runs out of memory in the"
            " paper, too",
        ),
        publish=lambda: matching(rows),
    )


def _row(setting: Setting, budget: float) -> dict[str, Cell]:
    given = pairs(
        np.random.default_rng(1), setting.dimensions, setting.query, setting.stream, bounded=setting.bounded
    )
    spent = dict.fromkeys(setting.methods, 0.0)
    counts = dict.fromkeys(setting.methods, 0)
    for number, pair in enumerate(given):
        for method in setting.methods:
            if spent[method] < budget or number < LEAST:
                began = time.process_time()
                if not _try(pair, method):
                    spent[method] = float("inf")
                spent[method] += time.process_time() - began
                counts[method] += 1
    means = {method: spent[method] / counts[method] * 1000 for method in setting.methods}
    return {
        "figures": setting.figures,
        "dimensions": setting.dimensions,
        "query": setting.query,
        "stream": setting.stream,
        "bounded": "yes" if setting.bounded else "no",
        **{f"{method}, ms": mean if np.isfinite(mean) else None for method, mean in means.items()},
    }


def _try(pair: tuple[Predicate, Predicate], method: str) -> bool:
    try:
        match(*pair, method)
    except RefusedError:
        return False
    return True
