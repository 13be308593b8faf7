"""Random recordings of a stream with keys, and watches that some of its windows match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from tests.oracle.similarity.direct_distance import least_square
from tests.oracle.similarity.random_series import Range, ends
from tests.oracle.watching.brute_force import Reading

from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import NamedPattern, Watch
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
Row = tuple[int, str, int, float | None, int]  # file, key, time, value, level


@dataclass(frozen=True)
class Value:
    """An expression that a watch compares, and the same in Python."""

    expr: Expr
    of: Callable[[float | None, int], float | None]


_VALUE, _LEVEL = Column("", "value", Type.DOUBLE), Column("", "level", Type.INT)
VALUES = (
    Value(_VALUE, lambda value, level: value),
    Value(_VALUE, lambda value, level: value),
    Value(
        Call("*", (_VALUE, Literal(-2.0, Type.DOUBLE)), Type.DOUBLE),
        lambda value, level: None if value is None else value * -2.0,
    ),
    Value(_LEVEL, lambda value, level: float(level)),
)


class RandomRecording:
    """Readings of one stream in one or two files, made from a seed. `delay` and times are microseconds."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.delay = int(random.choice([0, 2, 5])) * SECOND
        self.keyed = bool(random.random() < 0.8)
        self.max_gap = int(random.choice([4, 20, 3600])) * SECOND
        self.rows: list[Row] = []
        for file in range(int(random.choice([1, 1, 2]))):
            self.rows += self._file(file, count)

    def _file(self, file: int, count: int) -> list[Row]:
        random = self.random
        keys = random.choice(list("abc")[: int(random.integers(1, 4))], count)
        pauses = np.where(random.random(count) < 0.02, random.choice([5, 30, 4000], count), 1)
        times = START + np.cumsum(random.choice([0, 1, 1, 2], count) * pauses) * SECOND
        values = self._values(count)
        levels = random.integers(0, 4, count)
        # A reading is behind by up to twice the delay, so that some are late.
        behind = np.where(random.random(count) < 0.3, random.integers(0, 2 * self.delay + 1, count), 0)
        order = np.argsort(times + behind, kind="stable")
        return [
            (
                file,
                str(keys[at]),
                int(times[at]),
                None if np.isnan(values[at]) else float(values[at]),
                int(levels[at]),
            )
            for at in order
        ]

    def _values(self, count: int) -> Any:
        random = self.random
        walk = random.normal(size=count).cumsum()
        kind = random.integers(5)
        if kind == 0:
            values = np.round(walk)
        elif kind == 1:
            values = np.repeat(walk, 3)[:count]
        elif kind == 2:
            values = np.round(2 * np.sin(np.arange(count)), 1) + random.choice([0, 1e6])
        elif kind == 3:
            values = walk + 1e9
        else:
            values = random.integers(0, 3, count).astype(float)
        values[random.random(count) < 0.01] = np.nan
        return values

    @property
    def stream(self) -> StreamDef:
        """The stream of the readings."""
        key = "KEY" if self.keyed else ""
        return catalog_of(
            f"CREATE STREAM s (k VARCHAR {key}, ts TIMESTAMP, value DOUBLE, level INT,"
            f" WATERMARK FOR ts AS ts - INTERVAL '{self.delay // SECOND}' SECOND);"
        ).streams["s"]

    def recording(self, folder: Path) -> Recording:
        """The recording, from files of CSV."""
        return read_recording(self.stream, self.write(folder), as_arrived=True)

    def write(self, folder: Path) -> list[str]:
        """Write a file of CSV for each file of the recording."""
        paths = []
        for file in dict.fromkeys(row[0] for row in self.rows):
            lines = ["k,ts,value,level"]
            for of, key, time, value, level in self.rows:
                if of == file:
                    lines.append(f"{key},{time},{'' if value is None else repr(value)},{level}")
            paths.append(folder / f"{file}.csv")
            paths[-1].write_text("\n".join(lines) + "\n")
        return [str(path) for path in paths]

    def readings(self, value: Value) -> list[Reading]:
        """The readings of an expression, as the brute force takes them."""
        return [
            Reading(file, key if self.keyed else "", time, value.of(number, level))
            for file, key, time, number, level in self.rows
        ]

    def patterns(self, of: Callable[[float | None, int], float | None]) -> list[NamedPattern]:
        """Patterns that are changed windows of the readings, or random."""
        random = self.random
        known = np.array([v for row in self.rows if (v := of(row[3], row[4])) is not None])
        patterns: list[NamedPattern] = []
        while len(patterns) < random.integers(1, 5):
            n = int(random.choice([2, 3, 3, 4, 5, 7]))
            at = int(random.integers(0, len(known) - n))
            values = known[at : at + n] - known[at]
            if random.random() < 0.3:
                values = random.normal(size=n).cumsum()
            elif random.random() < 0.5:
                values = values * float(random.choice([2, 0.5])) + random.normal(size=n) * 0.1
            if np.ptp(values) > 0:
                gap = self.max_gap if random.random() < 0.7 else 3600 * SECOND
                patterns.append(NamedPattern(f"p{len(patterns)}", tuple(values.tolist()), gap))
        return patterns

    def distance(
        self,
        pattern: tuple[float, ...],
        of: Callable[[float | None, int], float | None],
        scale: Range | None = None,
        shift: Range | None = None,
    ) -> float:
        """The distance of a pattern from a random window. As epsilon, it lets rounding decide."""
        file, key, *_ = self.rows[int(self.random.integers(0, len(self.rows)))]
        series = [row for row in self.rows if row[0] == file and (row[1] == key or not self.keyed)]
        series.sort(key=lambda row: row[2])
        known = [v for row in series if (v := of(row[3], row[4])) is not None]
        at = int(self.random.integers(0, len(known) - len(pattern)))
        window = known[at : at + len(pattern)]
        square, _ = least_square(list(pattern), window, ends(scale, 0.0), ends(shift, -inf))
        return sqrt(square)

    def watch(self, value: Value) -> Watch:
        """A watch of an expression with random patterns and limits."""
        random = self.random
        patterns = self.patterns(value.of)
        ranges: tuple[Range | None, ...] = (None, (1, 1), (0.5, 2), (0.3, None))
        scale = ranges[int(random.integers(4))]
        shift = (None, None, (0, 0), (-5, 50))[int(random.integers(4))]
        # Less than the distance to any constant, so that some windows don't match.
        most = min(float(np.std(pattern.values)) for pattern in patterns)
        epsilon = float(random.choice([0.0, 0.1, 0.5, 0.9])) * most
        if random.random() < 0.3:
            found = self.distance(patterns[0].values, value.of, scale, shift)
            epsilon = found if found < 0.999 * most else epsilon
        return Watch(value.expr, "ANY", tuple(patterns), epsilon, scale, shift)
