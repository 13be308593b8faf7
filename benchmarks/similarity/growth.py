"""Time per reading as patterns, their length, epsilon and keys grow."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.plots import similarity_growth
from benchmarks.similarity.workloads import made, series, walks
from tamis.similarity import KeyedPatterns

NAME = "similarity.growth"
COLUMNS = ("grows", "patterns", "length", "epsilon", "keys", "ns per reading", "readings/s", "bytes per key")


class Setting(NamedTuple):
    """One point of a curve."""

    grows: str
    patterns: int = 10_000
    length: int = 128
    epsilon: float = 0.1
    keys: int = 1


SETTINGS = (
    *(Setting("patterns", patterns=count) for count in (10, 100, 1000, 10_000, 100_000)),
    *(Setting("length", length=n) for n in (16, 32, 64, 128, 256, 512)),
    *(Setting("epsilon", epsilon=share) for share in (0.01, 0.03, 0.1, 0.2, 0.3)),
    *(Setting("keys", patterns=1000, keys=keys) for keys in (1, 10, 100, 1000, 10_000)),
)
QUICK = (Setting("patterns", patterns=100), Setting("keys", patterns=100, keys=10))


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    readings, repeats = (5000, 1) if quick else (50_000, 3)
    rows: list[dict[str, Cell]] = []
    for setting in QUICK if quick else SETTINGS:
        say(", ".join(f"{name} {value}" for name, value in setting._asdict().items()))
        rows.append(_row(setting, max(readings, 256 * setting.keys if not quick else 0), repeats))
    return Result(
        NAME,
        "Time per reading",
        COLUMNS,
        rows,
        {"readings": readings, "repeats": repeats, "quick": quick},
        (
            f"CPU time of one core, medians of {repeats} runs over {readings:,} readings or more",
            "random walks; any scale and shift",
            "epsilon: as a share of each pattern's deviation",
            "keys: their readings come in turn, in batches of 10,000; bytes per key: the state in memory",
        ),
        publish=lambda: similarity_growth(rows),
    )


def _row(setting: Setting, readings: int, repeats: int) -> dict[str, Cell]:
    patterns = walks(setting.patterns, setting.length, seed=1)
    values = series(readings, patterns, setting.epsilon)
    if setting.keys > 1:
        each = readings // setting.keys
        values = values[: each * setting.keys].reshape(setting.keys, each).T.ravel()
    keys = np.arange(len(values)) % setting.keys
    watched = KeyedPatterns(made(patterns, setting.epsilon))
    watch = partial(_watch, watched, keys, values)
    watch()
    seconds = medians({"Tamis": watch}, repeats)["Tamis"][0] / len(values)
    return {
        **setting._asdict(),
        "ns per reading": 1e9 * seconds,
        "readings/s": 1 / seconds,
        "bytes per key": watched.bytes_per_key,
    }


def _watch(watched: KeyedPatterns, keys: np.ndarray[tuple[int], np.dtype[np.int64]], values: object) -> None:
    column = np.asarray(values, dtype=np.float64)
    for at in range(0, len(keys), 10_000):
        watched.push(keys[at : at + 10_000], column[at : at + 10_000])
