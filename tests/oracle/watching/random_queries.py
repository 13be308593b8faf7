"""Random files of SQL whose alerts call similar or window functions, and recordings for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.oracle.watching.random_recordings import RandomRecording

SECOND = 1_000_000


class RandomQueries:
    """Two streams `s` and `t`, three patterns and one alert, made from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = np.random.default_rng([seed, 7])
        self.recordings = {"s": RandomRecording(2 * seed, 130), "t": RandomRecording(2 * seed + 1, 130)}
        self.keyed = all(one.keyed for one in self.recordings.values())
        patterns = [self._pattern(name) for name in ("p0", "p1", "p2")]
        self.most = min(float(np.std(values)) for values in patterns)
        self.first = tuple(patterns[0])
        self.derived: list[str] = []
        alert = self._alert()
        self.sql = ";\n".join(
            [
                *(self._stream(name) for name in self.recordings),
                *(self._created(f"p{i}", values) for i, values in enumerate(patterns)),
                *self.derived,
                f"CREATE ALERT q WITH (allow_unbounded = true) AS {alert};\n",
            ]
        )
        self.of = {"distinct": "DISTINCT" in alert, "grouped": "GROUP BY" in alert, "join": "b.ts" in alert}
        self.of["over"] = "OVER" in alert
        self.random = random

    def write(self, folder: Path) -> dict[str, list[str]]:
        """Write the recordings; returns the files of each stream."""
        found = {}
        for name, recording in self.recordings.items():
            (folder / name).mkdir(exist_ok=True)
            found[name] = recording.write(folder / name)
        return found

    def _stream(self, name: str) -> str:
        key, delay = "KEY" if self.keyed else "", self.recordings[name].delay // SECOND
        return (
            f"CREATE STREAM {name} (k VARCHAR {key}, ts TIMESTAMP, value DOUBLE, level INT,"
            f" WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND) WITH (keys = 3, rate = '100/s')"
        )

    def _pattern(self, name: str) -> list[float]:
        """A pattern like some windows of `s`."""
        (pattern, *_) = self.recordings["s"].patterns(lambda value, level: value)
        return list(pattern.values)

    def _created(self, name: str, values: list[float]) -> str:
        gap = self.recordings["s"].max_gap // SECOND
        return f"CREATE PATTERN {name} VALUES ({', '.join(map(repr, values))}) WITH (max_gap = '{gap} s')"

    def _arguments(self, alias: str) -> str:
        """The arguments of a call of `similar` over a source."""
        random = self.random
        value = random.choice(["value", "value", "value", "level"])
        factor = random.choice(["", "", " * -2.0"])
        asked = random.choice(["'p0'", "'p1'", "ANY", "ANY"])
        epsilon = self.most * float(random.choice([0.1, 0.5, 0.9]))
        scale = random.choice(["", ", scale => (1, 1)", ", scale => (0.5, 2)", ", scale => (0.3, NULL)"])
        shift = random.choice(["", "", ", shift => (-5, 50)"])
        if random.random() < 0.4:
            distance = self.recordings["s"].distance(self.first, lambda value, level: value)
            if distance < 0.99 * float(np.std(self.first)):
                return f"{alias}.value, 'p0', {distance!r}"
        return f"{alias}.{value}{factor}, {asked}, {epsilon!r}{scale}{shift}"

    def _over(self, alias: str) -> str:
        """A condition with a window function."""
        over = f"OVER ({f'PARTITION BY {alias}.k ' if self.keyed else ''}ORDER BY {alias}.ts"
        rows = self.random.choice(["3 PRECEDING AND 1 PRECEDING", "4 PRECEDING AND CURRENT ROW"])
        recent = f"RANGE BETWEEN INTERVAL '{self.random.integers(1, 20)}' SECOND PRECEDING AND CURRENT ROW"
        return str(
            self.random.choice(
                [
                    f"{alias}.value - lag({alias}.value) {over}) > 1",
                    f"({alias}.value - lag({alias}.value, 2) {over}))"
                    f" / extract(epoch FROM {alias}.ts - lag({alias}.ts, 2) {over})) > 0.2",
                    f"avg({alias}.value) {over} ROWS BETWEEN {rows}) < {alias}.value",
                    f"stddev({alias}.value) {over} ROWS BETWEEN {rows}) < 1",
                    f"count(*) FILTER (WHERE {alias}.level > 1) {over} {recent}) > 3",
                    f"{alias}.value - min({alias}.value) {over} {recent}) > 2",
                    f"sum({alias}.level) {over} {recent}) > 5",
                    f"lag({alias}.k, 1, 'none') {over}) <> {alias}.k OR {alias}.level > 2",
                ]
            )
        )

    def _condition(self, alias: str) -> str:
        """A condition over the columns of `similar` or of window functions."""
        random = self.random
        if random.random() < 0.3:
            return f"({self._over(alias)})"
        arguments = self._arguments(alias)
        less = self.most * float(random.choice([0.05, 0.2]))
        more = random.choice(
            [
                "",
                "",
                f" AND similarity({arguments}) < {less!r}",
                f" AND scale({arguments}) > 0.9",
                f" AND (shift({arguments}) < 3 OR {alias}.level = 1)",
                f" AND pattern({arguments}) <> 'p1'",
                f" AND {alias}.level < 3",
                f" AND similar({self._arguments(alias)})",
                f" AND ({self._over(alias)})",
            ]
        )
        if random.random() < 0.1:
            return f"NOT similar({arguments})"
        return f"similar({arguments}){more}"

    def _alert(self) -> str:
        random = self.random
        kind = random.integers(8)
        condition, arguments = self._condition("a"), self._arguments("a")
        if kind == 0:
            return f"SELECT a.k, a.ts, similarity({arguments}) AS d FROM s a WHERE {condition}"
        if kind == 1:
            self.derived.append(
                f"CREATE STREAM d AS SELECT a.k, a.ts, a.value AS v, scale({arguments}) AS w FROM s a"
                f" WHERE {condition}"
            )
            return "SELECT x.k, x.ts, x.v FROM d x WHERE x.w > 0.4 OR x.w IS NULL"
        if kind == 2:
            slide = int(random.choice([5, 20]))
            counted, filtered = "count(*)", f" WHERE {condition}"
            if random.random() < 0.5:
                counted, filtered = f"count(*) FILTER (WHERE {condition})", ""
            return (
                f"SELECT a.window_end, a.k, {counted} AS n, avg(similarity({arguments}) * 2) AS d,"
                f" max(a.level) AS l FROM HOP(s, ts, INTERVAL '{slide}' SECOND, INTERVAL '40' SECOND) a"
                f"{filtered} GROUP BY a.window_end, a.k"
            )
        if kind == 3:
            return (
                f"SELECT DISTINCT a.k, a.level FROM s a, t b WHERE {condition} AND b.level = a.level"
                " AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND AND a.level < 4 AND a.k = b.k"
            )
        other = str(random.choice(["s", "t", "t"]))
        where = [condition, f"ABS(a.ts - b.ts) <= INTERVAL '{random.choice([1, 5, 30])}' SECOND"]
        if random.random() < 0.8:
            where.append("a.k = b.k")
        more = [
            "b.level > 1",
            "b.value > a.value",
            self._condition("b"),
            f"b.value > similarity({arguments})",
        ]
        where.append(str(random.choice(more)))
        return f"SELECT a.k, a.ts, b.ts AS other, b.value FROM s a, {other} b WHERE {' AND '.join(where)}"
