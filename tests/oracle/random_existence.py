"""Random alerts with EXISTS, NOT EXISTS and NO READING, and their rows by nested loops."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
Row = Mapping[str, Any]  # k, ts in microseconds, x, y
Rows = Mapping[str, Row]  # by alias
Condition = tuple[str, Callable[[Rows], bool]]  # SQL, and the same in Python

STREAMS = ("a", "b", "c")
DELAY = 3  # seconds, of every watermark


def _greater(left: float | None, right: float | None) -> bool:
    return left is not None and right is not None and left > right


def _bound(r: random.Random, later: str, earlier: str, least: int = -8) -> Condition:
    """A bound on both ends, in whole seconds, closed or strict."""
    low = r.randint(least, 4)
    high = low + r.choice((0, 1, 3, 6, 12))
    if high > low and r.random() < 0.3:  # strict at the lower end
        sql = (
            f"{later}.ts > {earlier}.ts + INTERVAL '{low} seconds'"
            f" AND {later}.ts <= {earlier}.ts + INTERVAL '{high} seconds'"
        )
        return sql, lambda rows: low * SECOND < rows[later]["ts"] - rows[earlier]["ts"] <= high * SECOND
    sql = (
        f"{later}.ts BETWEEN {earlier}.ts + INTERVAL '{low} seconds'"
        f" AND {earlier}.ts + INTERVAL '{high} seconds'"
    )
    return sql, lambda rows: low * SECOND <= rows[later]["ts"] - rows[earlier]["ts"] <= high * SECOND


def _equal(one: str, other: str, column: str) -> Condition:
    def holds(rows: Rows) -> bool:
        value = rows[one][column]
        return value is not None and value == rows[other][column]

    return f"{one}.{column} = {other}.{column}", holds


def _filter(r: random.Random, alias: str) -> Condition:
    level = r.randint(0, 6)
    return f"{alias}.x > {level}", lambda rows: _greater(rows[alias]["x"], level)


def _across(r: random.Random, one: str, other: str) -> Condition:
    """A condition over two streams: monotone, in a range, or with no omission to prove."""
    level = r.randint(-2, 4)
    kind = r.choice(("difference", "sum", "near"))

    def values(rows: Rows) -> tuple[float | None, float | None]:
        return rows[one]["x"], rows[other]["x"]

    if kind == "near":

        def near(rows: Rows) -> bool:
            x, y = values(rows)
            return x is not None and y is not None and abs(x - y) < level + 3

        return f"abs({one}.x - {other}.x) < {level + 3}", near
    sign = 1 if kind == "sum" else -1

    def holds(rows: Rows) -> bool:
        x, y = values(rows)
        return x is not None and y is not None and x + sign * y > level

    return f"{one}.x {'+' if sign > 0 else '-'} {other}.x > {level}", holds


@dataclass
class Test:
    """EXISTS or NOT EXISTS. `equated`: the columns of rows that must not be NULL, by alias."""

    streams: dict[str, str]  # alias -> stream
    conditions: list[Condition]
    negated: bool
    form: str = "exists"  # "exists", "left", "anti", "semi", "silence"
    sql: str = ""
    equated: list[tuple[str, str]] = field(default_factory=list)

    def holds(self, row: Rows, recordings: Mapping[str, Sequence[Row]]) -> bool:
        """Tell if a row of the outer query passes the test."""
        if any(row[alias][column] is None for alias, column in self.equated):
            return False
        pools = [recordings[stream] for stream in self.streams.values()]
        found = any(
            all(holds({**row, **dict(zip(self.streams, some, strict=True))}) for _, holds in self.conditions)
            for some in itertools.product(*pools)
        )
        return found is not self.negated


class RandomExistence:
    """One alert `q` over random recordings: its `sql`, the recordings by stream, and its rows."""

    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.late = r.random() < 0.3
        self.recordings = {name: self._recording(r.choice((8, 20, 35))) for name in STREAMS}
        self.sources = {"p": "a"}
        self.conditions: list[Condition] = []
        if r.random() < 0.2:
            self.sources["q"] = "b"
            self.conditions += [_equal("p", "q", "k"), _bound(r, "q", "p")]
            if r.random() < 0.5:
                self.conditions.append(_across(r, "p", "q"))
        if r.random() < 0.5:
            self.conditions.append(_filter(r, "p"))
        self.tests = [self._test(i) for i in range(r.choice((1, 1, 2)))]
        if len(self.sources) == 1 and r.random() < 0.25:
            self.tests = [self._silence()]
        self.sql = self._text()

    def _recording(self, size: int) -> list[Row]:
        r = self.random
        rows: list[Row] = []
        for time in sorted(r.randint(0, 60) for _ in range(size)):
            ahead = r.random() < 0.05 and self.late
            jitter = r.randint(-DELAY, 0) if r.random() < 0.4 else r.choice((20, 0)) if ahead else 0
            rows.append(
                {
                    "k": r.choice(("u", "v", "v", None) if r.random() < 0.1 else ("u", "v")),
                    "ts": START + (time + jitter) * SECOND,
                    "x": None if r.random() < 0.05 else r.randint(0, 32) / 4,
                    "y": None if r.random() < 0.05 else float(r.randint(0, 2)),
                }
            )
        return rows

    def _test(self, number: int) -> Test:
        r = self.random
        names = {f"n{number}": r.choice(STREAMS)}
        if r.random() < 0.15:
            names[f"m{number}"] = r.choice(STREAMS)
        conditions: list[Condition] = []
        equated = []
        for alias in names:
            outer = r.choice(list(self.sources))
            conditions.append(_equal(alias, outer, "k"))
            equated.append((outer, "k"))
            conditions.append(_bound(r, alias, outer))
            if len(self.sources) > 1:
                other = next(one for one in self.sources if one != outer)
                if r.random() < 0.2:
                    conditions.append(_bound(r, alias, other))
            if r.random() < 0.4:
                conditions.append(_filter(r, alias))
            if r.random() < 0.6:
                conditions.append(_across(r, alias, outer))
            if r.random() < 0.15:
                conditions.append(_equal(alias, outer, "y"))
                equated.append((outer, "y"))
        if len(names) > 1 and r.random() < 0.5:
            conditions.append(_across(r, *names))
        if r.random() < 0.15:
            conditions.append(_filter(r, r.choice(list(self.sources))))
        negated = r.random() < 0.6
        forms = ["exists"] if len(names) > 1 else ["exists", *(("left", "anti") if negated else ("semi",))]
        test = Test(names, conditions, negated, r.choice(forms), equated=equated if negated else [])
        condition = " AND ".join(sql for sql, _ in conditions)
        tables = ", ".join(f"{stream} {alias}" for alias, stream in names.items())
        test.sql = f"{'NOT ' if negated else ''}EXISTS (SELECT 1 FROM {tables} WHERE {condition})"
        return test

    def _silence(self) -> Test:
        """NO READING, as such or written out, whose readings may have a filter of a subquery."""
        r = self.random
        length = r.choice((1, 2, 3, 5, 8))
        conditions = [
            _equal("later", "p", "k"),
            ("", lambda rows: 0 < rows["later"]["ts"] - rows["p"]["ts"] <= length * SECOND),
        ]
        test = Test({"later": "a"}, conditions, True, "silence", equated=[("p", "k")])
        test.sql = f"NO READING FOR INTERVAL '{length}' SECOND"
        if r.random() < 0.4:
            level = r.randint(0, 4)
            test.form = "filtered silence"
            self.conditions.append((f"p.x > {level}", lambda rows: _greater(rows["p"]["x"], level)))
            test.conditions.append(("", lambda rows: _greater(rows["later"]["x"], level)))
            self.level = level
        return test

    @property
    def silent(self) -> bool:
        """Tell if its rows are silences, for which one of several last tuples of one time is enough."""
        return "silence" in self.tests[0].form

    def _text(self) -> str:
        streams = "".join(
            f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP NOT NULL, x DOUBLE, y DOUBLE,"
            f" WATERMARK FOR ts AS ts - INTERVAL '{DELAY}' SECOND);\n"
            for name in STREAMS
        )
        (first, table), *more = self.sources.items()
        where = [sql for sql, _ in self.conditions if sql]
        tables = f"{table} {first}"
        if self.tests[0].form == "filtered silence":
            tables = f"(SELECT * FROM {table} WHERE x > {self.level}) {first}"
            where.remove(f"p.x > {self.level}")
        for alias, stream in more:
            tables += f", {stream} {alias}"
        joins = ""
        for test in self.tests:
            if test.form in ("left", "anti", "semi"):
                ((alias, stream),) = test.streams.items()
                condition = " AND ".join(sql for sql, _ in test.conditions)
                joins += f" {test.form.upper()} JOIN {stream} {alias} ON {condition}"
                if test.form == "left":
                    where.append(f"{alias}.k IS NULL")
            else:
                where.append(test.sql)
        if joins and more:  # a comma binds less than JOIN
            tables = tables.replace(",", " CROSS JOIN")
        if self.random.random() < 0.5:
            where.reverse()
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        return f"{streams}CREATE ALERT q AS SELECT p.k, p.ts, p.x FROM {tables}{joins}{condition};"

    def rows(
        self,
        witnesses: Mapping[str, Sequence[Row]] | None = None,
        outer: Mapping[str, Sequence[Row]] | None = None,
    ) -> Iterator[dict[str, Row]]:
        """The rows of the alert by nested loops: for each alias its tuple. `witnesses`: the tuples under
        EXISTS and NOT EXISTS, `outer`: those of rows; by default all.
        """
        witnesses, outer = witnesses or self.recordings, outer or self.recordings
        for some in itertools.product(*(outer[stream] for stream in self.sources.values())):
            row = dict(zip(self.sources, some, strict=True))
            passes = all(holds(row) for _, holds in self.conditions)
            if passes and all(test.holds(row, witnesses) for test in self.tests):
                yield row

    def write(self, folder: Path) -> dict[str, list[str]]:
        """The files of the recordings, by stream."""
        found = {}
        for name, rows in self.recordings.items():
            path = folder / f"{name}.ndjson"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            found[name] = [str(path)]
        return found
