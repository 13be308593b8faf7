"""Readings a second through 10,000 patterns, beside STUMPY and BLAS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.similarity.peers import by_mass, by_product
from benchmarks.similarity.workloads import Floats, made, series, walks
from tamis.similarity import KeyedPatterns

NAME = "similarity.watching"
LENGTH = 128
EPSILONS = (0.05, 0.1, 0.2, 0.3)
WAYS = ("Tamis", "BLAS", "BLAS, float32", "STUMPY")
COLUMNS = ("epsilon", "matches", *(f"{way}, readings/s" for way in WAYS), "Tamis : BLAS", "Tamis : STUMPY")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count, readings, few = (200, 3000, 5) if quick else (10_000, 50_000, 5)
    repeats = 1 if quick else 3
    patterns = walks(count, LENGTH, seed=1)
    rows: list[dict[str, Cell]] = []
    for epsilon in EPSILONS[1:2] if quick else EPSILONS:
        say(f"epsilon {epsilon:g} of the deviation")
        rows.append(_row(patterns, series(readings, patterns, epsilon), epsilon, few, repeats))
    return Result(
        NAME,
        f"{count:,} patterns of {LENGTH} readings in one series",
        COLUMNS,
        rows,
        {"patterns": count, "length": LENGTH, "readings": readings, "repeats": repeats, "quick": quick},
        (
            f"readings in a second of one core's CPU time, medians of {repeats} alternating runs",
            "epsilon: as a share of each pattern's deviation; any scale and shift; random walks, in which a"
            " changed pattern stands each 1,000 readings",
            f"BLAS: products of all normal forms, for the first {_few(readings):,} readings; it finds the"
            " same number of matches. With float32 it is not exact.",
            f"STUMPY {version('stumpy')}: `mass`, one call a pattern; {few} patterns were measured over all"
            " readings, with the same number of matches. The rate is that of all patterns.",
        ),
    )


def _few(readings: int) -> int:
    return min(readings, 5000)


def _row(patterns: Floats, readings: Floats, epsilon: float, few: int, repeats: int) -> dict[str, Cell]:
    part = readings[: _few(len(readings))]
    works: dict[str, Callable[[], int]] = {
        "Tamis": partial(_watch, KeyedPatterns(made(patterns, epsilon)), readings),
        "Tamis, first": partial(_watch, KeyedPatterns(made(patterns, epsilon)), part),
        "Tamis, few": partial(_watch, KeyedPatterns(made(patterns[:few], epsilon)), readings),
        "BLAS": partial(by_product, part, patterns, epsilon),
        "BLAS, float32": partial(by_product, part, patterns, epsilon, np.float32),
        "STUMPY": partial(by_mass, readings, patterns[:few], epsilon),
    }
    for work in works.values():
        work()  # STUMPY compiles at its first call
    found = medians(works, repeats)
    for one, other in (("BLAS", "Tamis, first"), ("STUMPY", "Tamis, few")):
        if found[one][1] != found[other][1]:
            raise AssertionError(f"{one} finds {found[one][1]} matches, Tamis {found[other][1]}")
    seconds = {name: time for name, (time, _) in found.items()}
    rates = {
        "Tamis": len(readings) / seconds["Tamis"],
        "BLAS": len(part) / seconds["BLAS"],
        "BLAS, float32": len(part) / seconds["BLAS, float32"],
        "STUMPY": len(readings) / (seconds["STUMPY"] * len(patterns) / few),
    }
    return {
        "epsilon": epsilon,
        "matches": found["Tamis"][1],
        **{f"{way}, readings/s": rates[way] for way in WAYS},
        "Tamis : BLAS": rates["Tamis"] / rates["BLAS"],
        "Tamis : STUMPY": rates["Tamis"] / rates["STUMPY"],
    }


def _watch(watched: KeyedPatterns, readings: Floats) -> int:
    watched.forget([0])
    return len(watched.push(np.zeros(len(readings), np.int64), readings).row)
