"""Random series with plateaus, rounding, offsets, spikes and gaps, and patterns that some windows match."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Range = tuple[float | None, float | None]


class Shape(NamedTuple):
    """Arguments of a pattern."""

    values: Floats
    epsilon: float
    scale: Range | None
    shift: Range | None


def series(random: np.random.Generator, count: int) -> Floats:
    """A random walk of `count` readings, and what sensors and transmission make of it."""
    walk = random.normal(size=count).cumsum()
    kinds = (
        lambda: walk,
        lambda: np.round(walk),
        lambda: np.repeat(walk, 5)[:count],
        lambda: walk + 1e9,
        lambda: np.where(random.random(count) < 0.01, random.choice([1e12, -1e9, 1e5]), walk),
        lambda: np.where(random.random(count) < 0.005, random.choice([np.nan, np.inf, -np.inf]), walk),
        lambda: np.round(3 * np.sin(np.arange(count) / 7) + 0.05 * walk, 1),
        lambda: (walk + 10.0 ** random.integers(-3, 9)) * 10.0 ** random.integers(-9, 9),
    )
    found: Floats = kinds[random.integers(len(kinds))]()
    return found


def shapes(random: np.random.Generator, readings: Floats, count: int) -> list[Shape]:
    """Up to `count` patterns of all variants: half of them changed windows of the series, half random."""
    made = []
    deviation = float(np.std(readings[np.isfinite(readings)]))
    for _ in range(count):
        n = int(random.choice([2, 3, 4, 5, 8, 13, 40]))
        if random.random() < 0.5:
            at = random.integers(0, len(readings) - n)
            if not np.isfinite(readings[at : at + n]).all():
                continue
            values = readings[at : at + n] * random.choice([1, 1, 2, 0.1]) + random.choice([0, 0, 5, -3])
            values = values + random.normal(size=n) * random.choice([0, 0.1]) * np.std(values)
        else:
            values = random.normal(size=n).cumsum() * deviation
        if np.ptp(values) == 0:
            continue
        made.append(variant(random, values))
    return made


def variant(random: np.random.Generator, values: Floats) -> Shape:
    """A pattern with random tolerance and ranges. With scales from 0 on, not every window matches."""
    deviation, mean = float(values.std()), float(values.mean())
    scale = (None, (1, 1), (0.5, 2), (0, 1.5), (0.8, None))[random.integers(5)]
    shift = (None, (0, 0), (-deviation, deviation), (mean - deviation, None))[random.integers(4)]
    most = 0.95 if scale in (None, (0, 1.5)) else 1.3
    share = min(float(random.choice([0, 0.01, 0.1, 0.3, 0.7, 0.95, 1.2])), most)
    return Shape(values, share * deviation, scale, shift)


def ends(given: Range | None, least: float) -> tuple[float, float]:
    """A range with numbers for the ends that are left open."""
    low, high = given or (None, None)
    return (least if low is None else low), (inf if high is None else high)
