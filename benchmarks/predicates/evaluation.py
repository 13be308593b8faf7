"""Evaluation as in Figures 16 to 18 and Table 8 of kuntschke-2006."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.plots import evaluation
from benchmarks.predicates.evaluators import EVALUATORS, Columns
from benchmarks.predicates.generators import covering, items

NAME = "predicates.evaluation"
WAYS = ("Tamis", "index", "SE", "IE", "IE+SC", "IE, library")
COLUMNS = ("figure", "dimensions", "boxes", "selectivity", "overlap", *(f"{way}, M items/s" for way in WAYS))
ITEMS = 1_000_000
# The rate of the library doesn't depend on the number of items.
ITEMS_OF_LIBRARY = 50_000
# Limit of boxes times items for the scan. With more boxes, the scan gets fewer items.
LOOKS = 100_000_000


class Setting(NamedTuple):
    """One point of a figure."""

    figure: str
    dimensions: int = 3
    boxes: int = 100
    share: float = 0.01
    overlap: float = 0.5


SETTINGS = (
    *(Setting("16", dimensions=d) for d in (1, 2, 3, 4, 6, 8, 10)),
    *(Setting("17", boxes=n) for n in (10, 50, 100, 500, 1000, 5000)),
    *(Setting("18", share=share) for share in (0.01, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0)),
    *(
        Setting("Table 8", share=share, overlap=overlap)
        for share in (0.1, 0.75)
        for overlap in (0.0, 0.15, 0.25, 0.3, 0.5)
    ),
)
QUICK = (Setting("16", dimensions=2), Setting("18", share=0.5))


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    repeats, count = (1, 20_000) if quick else (3, ITEMS)
    rows = []
    for setting in QUICK if quick else SETTINGS:
        say(f"{setting.figure}: {setting.dimensions} dimensions, {setting.boxes} boxes, {setting.share:.0%}")
        rows.append(_row(setting, count, repeats))
    return Result(
        NAME,
        "Evaluating predicates: Figures 16 to 18 and Table 8",
        COLUMNS,
        rows,
        {"items": count, "repeats": repeats, "quick": quick},
        (
            f"rates are millions of data items for a second of CPU time on one core, median of {repeats}"
            " runs; the methods alternate",
            f"there are {count:,} uniformly distributed items; the library gets {ITEMS_OF_LIBRARY:,}, and SE"
            " gets fewer if there are very many boxes; all methods have the same result",
            "index: the bitmap index; SE (standard evaluation): scans the boxes, the largest first; Tamis:"
            " chooses between these two by the first items",
            "IE (indexed evaluation) and IE+SC (with short circuit): a compiled, packed R-tree",
            "IE, library: the R*-tree of libspatialindex, called once for all items",
        ),
        publish=lambda: evaluation(rows),
    )


def _row(setting: Setting, count: int, repeats: int) -> dict[str, Cell]:
    r = np.random.default_rng(1)
    predicate = covering(r, setting.dimensions, setting.boxes, setting.share, setting.overlap)
    columns = items(r, setting.dimensions, count)
    parts = {way: _part(columns, _count(way, setting, count)) for way in WAYS}
    made = {way: EVALUATORS[way](predicate) for way in WAYS}
    few = _part(columns, 1000)
    for way in WAYS:
        made[way].any(few)
    found = medians({way: partial(made[way].any, parts[way]) for way in WAYS}, repeats)
    reference = found["Tamis"][1]
    for way, (_, holds) in found.items():
        if not np.array_equal(holds, reference[: len(holds)]):
            raise AssertionError(f"{way} finds others")
    rates: dict[str, Cell] = {
        f"{way}, M items/s": _count(way, setting, count) / seconds / 1e6
        for way, (seconds, _) in found.items()
    }
    return {
        "figure": setting.figure,
        "dimensions": setting.dimensions,
        "boxes": setting.boxes,
        "selectivity": setting.share,
        "overlap": setting.overlap,
        **rates,
    }


def _count(way: str, setting: Setting, count: int) -> int:
    if way == "IE, library":
        return min(count, ITEMS_OF_LIBRARY)
    return min(count, LOOKS // setting.boxes) if way == "SE" else count


def _part(columns: Columns, count: int) -> Columns:
    return {name: values[:count] for name, values in columns.items()}
