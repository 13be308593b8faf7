"""Matching and relaxing as in Table 7 and section 6.2 of kuntschke-2006."""

from __future__ import annotations

import numpy as np
from tests.oracle.predicates.paper_methods import match

from benchmarks.harness import Cell, Result, Say
from benchmarks.predicates.generators import FIRST, LAST, names, pairs, predicate
from tamis.predicates.selectivity import Uniform, selectivity

NAME = "predicates.relaxing"
METHODS = {"HSR": "hsr-unchecked", "HSR+QC": "hsr", "HCR": "hcr", "EM": "exact"}
COLUMNS = ("method", "pA", "pB", "pC", "pD", "matched pairs")
DIMENSIONS = 6


def run(quick: bool, say: Say) -> Result:
    """Measure: the shares are exact, not those of a million items."""
    say("selectivities of a predicate that is relaxed four times")
    r = np.random.default_rng(1)
    stream = predicate(r, DIMENSIONS, 20, normal=False, distinct=4)
    queries = [predicate(r, DIMENSIONS, 2, normal=True, distinct=6) for _ in range(4)]
    spread = dict.fromkeys(names(DIMENSIONS), Uniform(FIRST, LAST))
    say("pairs that match without relaxation")
    given = pairs(r, 3, 3, 30, bounded=False)[: 60 if quick else None]
    rows: list[dict[str, Cell]] = []
    for name, method in METHODS.items():
        row: dict[str, Cell] = {"method": name}
        relaxed = stream
        for column, query in zip(COLUMNS[1:5], queries, strict=True):
            relaxed = match(relaxed, query, method).relaxed
            row[column] = 100 * selectivity(relaxed, spread)
        row["matched pairs"] = sum(match(*pair, method).implied for pair in given)
        rows.append(row)
    return Result(
        NAME,
        "Relaxing predicates: Table 7, and pairs that match",
        COLUMNS,
        rows,
        {"pairs": len(given), "quick": quick},
        (
            "pA to pD: selectivity in % of the stream's predicate after it was relaxed for one, two, three"
            " and four queries; computed exactly for uniformly distributed items",
            f"matched pairs: number of pairs, of {len(given):,}, in which the method finds that the query's"
            " predicate implies the stream's; the predicates have 3 dimensions, 3 boxes for the query and 30"
            " for the stream",
        ),
    )
