"""Omission alone: tuples/s of its two forms, and how much it retains beside what the design expects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Cell, Result, Say, best
from tamis.omission import OmissionState, retained, retained_by_key

NAME = "omission"
COLUMNS = ("what", "tuples/s", "tuples", "per interval", "retained per interval", "design")

# Rows of a batch of the stream form: what an edge takes at a time unless it is told otherwise.
BATCH = 10_000
# A watermark trails the newest tuple by this many of a key's tuples.
BEHIND = 2
# What the design's page on omission says of a random walk by tuples per interval, and of independent values.
WALK = {16: 8.0, 256: 36.0, 16_384: 297.0}
INDEPENDENT = {16: 4.0, 256: 4.0}
# Tuples of a key in an omission interval where speed is measured.
INTERVAL = 100

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """Readings of `keys` keys, in order of time and interleaved; each key has one a tick."""

    codes: Ints
    times: Ints
    values: Floats
    keys: int


def walks(tuples: int, keys: int, random: np.random.Generator) -> Readings:
    """A random walk of every key."""
    steps = tuples // keys
    values = np.cumsum(random.normal(size=(steps, keys)), axis=0)
    times = np.repeat(np.arange(steps), keys)
    return Readings(np.tile(np.arange(keys), steps), times, values.ravel(), keys)


def batch(readings: Readings, interval: int) -> int:
    """All readings through the batch kernel; how many it retained."""
    return int(retained_by_key(readings.codes, readings.times, readings.values, interval).sum())


def stream(readings: Readings, interval: int) -> int:
    """All readings through the stream form, batch by batch, decided as its watermark moves; how many it
    published.
    """
    state = OmissionState(interval)
    ids = np.arange(len(readings.times))
    published = 0
    for start in range(0, len(ids), BATCH):
        part = slice(start, start + BATCH)
        times = readings.times[part]
        state.offer(readings.codes[part], times, readings.values[part], ids[part], 0)
        published += len(state.decide(int(times[-1]) - BEHIND, 0).published)
    return published + len(state.decide(2**62, 0).published)


def run(quick: bool, say: Say) -> Result:
    """Measure. A quick run is for looking whether it works: its figures are of too little."""
    tuples, repeats = (100_000, 1) if quick else (4_000_000, 5)
    random = np.random.default_rng(1)
    rows = _speed(tuples, repeats, random, say) + _retention(tuples, random, say)
    return Result(
        NAME,
        "Omission",
        COLUMNS,
        rows,
        {"tuples": tuples, "repeats": repeats, "batch": BATCH, "sides": "both", "quick": quick},
        (
            "tuples/s: of the fastest run, on one core, compilation not counted",
            "per interval: tuples of a key in an omission interval; design: the expected number of those",
        ),
    )


def _speed(tuples: int, repeats: int, random: np.random.Generator, say: Say) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for keys in (1, min(10_000, tuples // (4 * INTERVAL))):
        readings = walks(tuples, keys, random)
        for form, work in (("batch kernel", batch), ("stream form", stream)):
            what = f"{form}, 1 key" if keys == 1 else f"{form}, {keys:,} keys"
            say(what)
            seconds, kept = best(partial(work, readings, INTERVAL), repeats)
            speed = round(len(readings.times) / seconds)
            rows.append(_retained(what, len(readings.times), INTERVAL, kept) | {"tuples/s": speed})
    return rows


def _retention(tuples: int, random: np.random.Generator, say: Say) -> list[dict[str, Cell]]:
    say("tuples retained per interval")
    rows = []
    independent = random.normal(size=tuples)
    for kind, values, expected in (
        ("independent values", independent, INDEPENDENT),
        ("random walk", np.cumsum(independent), WALK),
    ):
        for interval, design in expected.items():
            if 4 * interval <= tuples:
                kept = int(retained(np.arange(tuples), values, interval).sum())
                row = _retained(f"{kind}, {interval:,} per interval", tuples, interval, kept)
                rows.append(row | {"design": design})
    return rows


def _retained(what: str, tuples: int, interval: int, kept: int) -> dict[str, Cell]:
    per_interval = round(kept / (tuples / interval), 2)
    return {"what": what, "tuples": tuples, "per interval": interval, "retained per interval": per_interval}
