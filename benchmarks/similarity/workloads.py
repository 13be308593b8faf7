"""Series and patterns of the similarity benchmarks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.similarity import Pattern

Floats = npt.NDArray[np.float64]

# One pattern, scaled, moved and changed by noise, stands in the series each so many readings.
EVERY = 1000


def walks(count: int, n: int, seed: int) -> Floats:
    """Random walks of `n` steps, of shape (count, n)."""
    steps: Floats = np.random.default_rng(seed).normal(size=(count, n))
    return steps.cumsum(axis=1)


def series(readings: int, patterns: Floats, epsilon: float) -> Floats:
    """A random walk in which changed patterns stand, some within `epsilon` (of their deviation), some not."""
    random = np.random.default_rng(2)
    found: Floats = random.normal(size=readings).cumsum()
    n = patterns.shape[1]
    for start in range(n, readings - n, max(EVERY, 2 * n)):
        pattern = patterns[random.integers(len(patterns))]
        noise = random.normal(size=n) * pattern.std() * epsilon * random.uniform(0.5, 1.2)
        found[start : start + n] = (pattern + noise) * random.uniform(0.5, 2) + found[start]
    return found


def made(patterns: Floats, epsilon: float) -> list[Pattern]:
    """Patterns with an epsilon of a share of their deviations, and any scale and shift."""
    return [
        Pattern(str(number), values, epsilon=epsilon * float(values.std()))
        for number, values in enumerate(patterns)
    ]
