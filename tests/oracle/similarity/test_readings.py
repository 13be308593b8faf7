"""Patterns in real readings: four motes' temperature and humidity, rounded by their sensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long
from tests.oracle.similarity.random_series import Floats, Shape, variant
from tests.oracle.similarity.test_matches import check, in_parts, patterns_of

from tamis.similarity import KeyedPatterns, Patterns

READINGS = Path(__file__).parents[3] / "demo" / "data" / "suthaharan-single-hop.csv"


@pytest.fixture(scope="module")
def motes() -> list[Floats]:
    """Humidity and temperature of each mote."""
    rows = np.loadtxt(READINGS, delimiter=",", skiprows=1)
    assert rows.shape == (18914, 6)
    return [rows[rows[:, 1] == mote, column] for mote in (1, 2, 3, 4) for column in (3, 4)]


@pytest.mark.parametrize("times", also_long(10))
def test_windows_like_those_of_other_motes(motes: list[Floats], times: int) -> None:
    random = np.random.default_rng([SEED, times])
    total = 0
    for number, readings in enumerate(motes):
        part = readings if times > 1 else readings[:1500]
        made: list[Shape] = []
        while len(made) < 5 * times:
            other = motes[(number + 2 * int(random.integers(4))) % len(motes)]
            n = int(random.choice([6, 12, 60, 128]))
            at = random.integers(0, len(other) - n)
            values = other[at : at + n] + random.choice([0, 0.005]) * random.normal(size=n)
            if np.ptp(values) > 0:
                made.append(variant(random, values))
        total += check(part, made, in_parts(random, Patterns(patterns_of(made)), part))[1]
    assert total > 0


def test_many_series_are_watched_as_each_alone(motes: list[Floats]) -> None:
    random = np.random.default_rng(SEED)
    made = [variant(random, motes[0][at : at + n]) for n in (6, 12, 60) for at in range(3000, 3400, 100)]
    made = [shape for shape in made if np.ptp(shape.values) > 0]
    count = min(map(len, motes))
    keys = np.tile(np.arange(len(motes)), count)
    readings = np.column_stack([readings[:count] for readings in motes]).ravel()
    together = KeyedPatterns(patterns_of(made))
    found: list[tuple[int, int, int]] = []
    for at in range(0, len(keys), 5003):
        part = slice(at, at + 5003)
        matches = together.push(keys[part], readings[part])
        found += zip(
            keys[part][matches.row].tolist(), matches.end.tolist(), matches.pattern.tolist(), strict=True
        )
    alone = [
        (key, match.end, int(match.pattern))
        for key, mine in enumerate(motes)
        for match in Patterns(patterns_of(made)).push(mine[:count])
    ]
    assert sorted(found) == sorted(alone)
    assert len(found) > len(motes)
