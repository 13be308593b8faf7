"""Many series in columns."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.similarity import KeyedPatterns, Pattern, Patterns

PATTERNS = [
    Pattern("ramp", [0.0, 1.0, 2.0], epsilon=0.1),
    Pattern("peak", [0.0, 1.0, 0.0, 0.0], epsilon=0.1, scale=(0.5, 2)),
]


def interleaved(random: np.random.Generator, keys: int, count: int) -> tuple[Any, Any]:
    readings = np.where(random.random(count) < 0.02, nan, random.integers(0, 3, count))
    return random.integers(0, keys, count), readings


def test_each_series_is_watched_alone() -> None:
    random = np.random.default_rng(1)
    keys, readings = interleaved(random, 9, 5000)
    watched = KeyedPatterns(PATTERNS)
    found: list[Any] = []
    for at in range(0, 5000, 777):
        part = slice(at, at + 777)
        matches = watched.push(keys[part], readings[part])
        assert (np.diff(matches.row) >= 0).all()
        found += zip(
            keys[part][matches.row].tolist(),
            [PATTERNS[number].name for number in matches.pattern],
            *(column.tolist() for column in matches[3:]),
            matches.end.tolist(),
            strict=True,
        )
    alone = [
        (key, *match[:1], *match[2:], match.end)
        for key in range(9)
        for match in Patterns(PATTERNS).push(readings[keys == key])
    ]
    assert sorted(found) == sorted(alone)
    assert {name for _, name, *_ in found} == {"ramp", "peak"}


def test_the_row_of_a_match_is_that_of_its_last_reading() -> None:
    matches = KeyedPatterns(PATTERNS).push([7, 0, 7, 0, 7], [1.0, 5.0, 2.0, 5.0, 3.0])
    assert (matches.row.tolist(), matches.end.tolist(), matches.pattern.tolist()) == ([4], [2], [0])


def test_state_of_many_series_continues_with_other_patterns() -> None:
    random = np.random.default_rng(2)
    keys, readings = interleaved(random, 5, 400)
    more = [*PATTERNS, Pattern("long", [0.0, 1.0, 0.0, 2.0, 1.0, 0.0], epsilon=0.5)]
    before, after, whole = KeyedPatterns(PATTERNS), KeyedPatterns(more), KeyedPatterns(more)
    before.push(keys[:200], readings[:200])
    after.load(before.dump())
    whole.push(keys[:200], readings[:200])
    found, expected = (k.push(keys[200:], readings[200:]) for k in (after, whole))
    short, expected_short = found.pattern < 2, expected.pattern < 2
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[short].tolist() == theirs[expected_short].tolist()
    # The long pattern lacks readings only for the first windows of each series.
    rows, expected_rows = set(found.row[~short].tolist()), set(expected.row[~expected_short].tolist())
    assert rows <= expected_rows
    assert all(row < 50 for row in expected_rows - rows)
    assert len(rows) > 0


def test_a_forgotten_series_starts_anew() -> None:
    watched = KeyedPatterns(PATTERNS)
    watched.push([0, 0, 1, 1], [0.0, 1.0, 0.0, 1.0])
    watched.forget([0, 99])
    matches = watched.push([0, 1], [2.0, 2.0])
    assert (matches.row.tolist(), matches.end.tolist()) == ([1], [2])


def test_memory_does_not_grow_with_readings() -> None:
    watched = KeyedPatterns(PATTERNS)
    watched.push(np.zeros(10, np.int64), np.arange(10.0))
    size = len(watched.dump())
    watched.push(np.zeros(10_000, np.int64), np.arange(10_000.0))
    assert len(watched.dump()) == size


@pytest.mark.parametrize(
    ("keys", "readings", "message"),
    [
        ([0], [1.0, 2.0], "shapes"),
        ([[0]], [[1.0]], "shapes"),
        ([-1], [1.0], "key -1 is negative"),
        (["a"], [1.0], "columns of numbers"),
        ([2**70], [1.0], "columns of numbers"),
        ([0], ["warm"], "columns of numbers"),
    ],
)
def test_other_columns_are_refused(keys: Any, readings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        KeyedPatterns(PATTERNS).push(keys, readings)


def test_patterns_in_thousands_of_words_are_all_found() -> None:
    """More patterns than one word of the summary has bits for; each finds itself."""
    random = np.random.default_rng(3)
    values = random.normal(size=(5000, 8))
    watched = KeyedPatterns(Pattern(str(i), v, epsilon=1e-6) for i, v in enumerate(values))
    keys = np.repeat(np.arange(5000), 8)
    found = watched.push(keys, values.ravel())
    assert found.pattern.tolist() == list(range(5000))
    assert found.row.tolist() == list(range(7, 40_000, 8))
