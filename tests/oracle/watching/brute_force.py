"""The columns of a watch by following every reading from its arrival on, in exact arithmetic.

Shares with Tamis the watches and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import Any

from tests.oracle.similarity.direct_distance import least_square
from tests.oracle.similarity.random_series import ends

from tamis.declarations.watches import NamedPattern, Watch

# Closer to epsilon or to each other, relative to the greater of epsilon and deviation, rounding may decide.
NEAR = 1e-9


@dataclass(frozen=True)
class Reading:
    """One reading in the order of arrival; `value` of None is NULL."""

    file: int
    key: Any
    time: int
    value: float | None


@dataclass(frozen=True)
class Outcome:
    """A pattern that can be the nearest, up to rounding, and its least distance; None if none matches."""

    name: str | None
    distance: float = inf
    near: float = 0.0


Release = Callable[[int, bool], None]


def released(readings: Sequence[Reading], delay: int) -> tuple[list[int], list[int]]:
    """The numbers of the readings in the order in which they enter their series, and of the late ones.

    A reading enters when the watermark of its file has reached its time; at the end of a file all enter.
    """
    order: list[int] = []
    late: list[int] = []
    for file in sorted({reading.file for reading in readings}):
        held: list[int] = []
        watermark = -inf
        for number, reading in enumerate(readings):
            if reading.file != file:
                continue
            if reading.time < watermark:
                late.append(number)
                continue
            held.append(number)
            watermark = max(watermark, reading.time - delay)
            while ready := [n for n in held if readings[n].time <= watermark]:
                first = min(ready, key=lambda n: readings[n].time)
                held.remove(first)
                order.append(first)
        order += sorted(held, key=lambda n: readings[n].time)
    return order, late


def outcomes(watch: Watch, readings: Sequence[Reading], delay: int) -> list[list[Outcome]]:
    """For each reading all outcomes that rounding leaves open."""
    found = [[Outcome(None)] for _ in readings]
    series: dict[tuple[int, Any], list[Reading]] = defaultdict(list)
    known: dict[tuple[NamedPattern, tuple[float | None, ...]], float] = {}
    for number in released(readings, delay)[0]:
        reading = readings[number]
        so_far = series[reading.file, reading.key]
        so_far.append(reading)
        found[number] = _possible(
            [
                (pattern, distance)
                for pattern in watch.patterns
                if (distance := _distance(watch, pattern, so_far, known)) is not None
            ],
            watch,
        )
    return found


def _distance(
    watch: Watch,
    pattern: NamedPattern,
    series: Sequence[Reading],
    known: dict[tuple[NamedPattern, tuple[float | None, ...]], float],
) -> float | None:
    """The least distance of the latest window; None if it has gaps or too few readings."""
    window = series[-len(pattern.values) :]
    values = tuple(reading.value for reading in window)
    if len(window) < len(pattern.values):
        return None
    if any(b.time - a.time > pattern.max_gap for a, b in pairwise(window)):
        return None
    if not all(v is not None and isfinite(v) and abs(v) <= 1e150 for v in values):
        return None
    if (pattern, values) not in known:
        scale, shift = ends(watch.scale, 0.0), ends(watch.shift, -inf)
        square, at = least_square(list(pattern.values), list(values), scale, shift)  # type: ignore[arg-type]
        known[pattern, values] = sqrt(square) if at > 0 else inf
    return known[pattern, values]


def _size(pattern: NamedPattern, epsilon: float) -> float:
    q = [Fraction(v) for v in pattern.values]
    mean = sum(q) / len(q)
    return max(epsilon, sqrt(sum((v - mean) ** 2 for v in q) / len(q)))


def _possible(distances: Sequence[tuple[NamedPattern, float]], watch: Watch) -> list[Outcome]:
    """Every pattern that is the nearest after some change of distances by `NEAR`."""
    matching = []
    nearest = inf  # of those that surely match, at most
    for pattern, distance in distances:
        size = _size(pattern, watch.epsilon)
        near = NEAR * size
        if distance > watch.epsilon + near:
            continue
        matching.append(Outcome(pattern.name, min(distance, watch.epsilon), near))
        if distance <= watch.epsilon - near or distance <= 1e-14 * size:
            nearest = min(nearest, distance + near)
    found = [one for one in matching if one.distance - one.near <= nearest]
    return found if nearest < inf else [*found, Outcome(None)]
