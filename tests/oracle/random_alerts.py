"""Random files of SQL with alerts over one to four streams, and random recordings for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

START = datetime(2024, 2, 28, 23, 59, 30, tzinfo=UTC)
SECOND = 1_000_000
TEXTS = ("a", "b", "B", "", "it's")

Row = dict[str, Any]


class RandomFile:
    """One file of SQL and the rows of its streams, made from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        r = self.random
        self.tick = r.choice((1, 250_000, SECOND, SECOND, SECOND))  # what times are multiples of
        self.key_type = r.choice(("VARCHAR", "INT"))
        self.keys = r.choice((1, 1, 2, 3))
        self.streams = [f"s{i}" for i in range(r.randint(1, 3))]
        self.delays = {name: r.choice((0, 2, 1_000)) for name in self.streams}
        self.derived = {f"d{i}": r.choice(self.streams) for i in range(r.choice((0, 0, 1)))}
        self.alone: set[str] = set()  # streams that some alert reads without a partner
        self.alerts = [self._alert(f"q{i}") for i in range(r.choice((1, 1, 1, 2, 3)))]
        functions = [
            "CREATE FUNCTION heat(t DOUBLE, h DOUBLE) RETURNS DOUBLE AS t + 0.5 * h - t / (10 + abs(h))"
        ]
        created = [self._stream(name) for name in self.streams]
        created += [self._derived(name, base) for name, base in self.derived.items()]
        self.sql = ";\n".join(functions + created + self.alerts) + ";\n"
        self.rows = {name: self._rows(name) for name in self.streams}

    # --- SQL

    def _stream(self, name: str) -> str:
        return (
            f"CREATE STREAM {name} (k {self.key_type} KEY, ts TIMESTAMP, "
            "x DOUBLE CHECK (x BETWEEN -20 AND 20), y DOUBLE CHECK (y >= 0.5 AND y <= 9), z DOUBLE, "
            "n INT, m BIGINT CHECK (m BETWEEN 0 AND 6), ok BOOLEAN, w VARCHAR, "
            f"WATERMARK FOR ts AS ts - {self._interval(self.delays[name])}) "
            "WITH (keys = 3, rate = '100/s')"
        )

    def _derived(self, name: str, base: str) -> str:
        return f"CREATE STREAM {name} AS SELECT * FROM {base} t WHERE {self._filter('t')}"

    def _interval(self, ticks: int) -> str:
        micros = ticks * self.tick
        return f"INTERVAL '{micros // SECOND}.{micros % SECOND:06d}' SECOND"

    def _alert(self, name: str) -> str:
        r = self.random
        size = r.choice((1, 2, 2, 2, 2, 2, 3, 3, 4))
        aliases = ["a", "b", "c", "d"][:size]
        sources = [r.choice([*self.streams, *self.derived]) for _ in aliases]
        if size == 1:
            self.alone |= {self.derived.get(source, source) for source in sources}
        where = self._keys(aliases) + self._bounds(aliases)
        where += [self._filter(alias) for alias in aliases if r.random() < 0.2]
        where += [self._threshold(aliases) for _ in range(2 if r.random() < 0.1 else 1)]
        if size > 1 and r.random() < 0.12:
            a, b = r.sample(aliases, 2)
            where.append(r.choice((f"{a}.n <> {b}.n", f"{a}.w < {b}.w", f"{a}.x > {b}.x", f"{a}.m = {b}.n")))
        if r.random() < 0.04:
            where.append(r.choice(("1 < 2", "2 < 1", "1 = 1 AND 3 > 2")))
        r.shuffle(where)
        select = ", ".join(f"{alias}.ts AS ts_{alias}, {alias}.x AS x_{alias}" for alias in aliases)
        options = ["allow_unbounded = true"]
        if r.random() < 0.25:
            options.append(f"max_delay = '{r.choice((0, 1, 3, 10)) * self.tick} us'")
        if size == 1 and r.random() < 0.6:
            options.append(f"within = '{r.choice((1, 3, 10)) * self.tick} us'")
        joined = f"{sources[0]} {aliases[0]}"
        if r.random() < 0.5 or size == 1:
            joined += "".join(f", {s} {a}" for s, a in zip(sources[1:], aliases[1:], strict=True))
            condition = "WHERE " + "\n  AND ".join(where)
        else:
            joined += "".join(
                f" JOIN {s} {a} ON {where.pop()}" if a == aliases[-1] else f" JOIN {s} {a} ON 0 = 0"
                for s, a in zip(sources[1:], aliases[1:], strict=True)
            )
            condition = "WHERE " + "\n  AND ".join(where) if where else ""
        return (
            f"CREATE ALERT {name} WITH ({', '.join(options)}) AS\nSELECT {select}\nFROM {joined}\n{condition}"
        )

    def _keys(self, aliases: Sequence[str]) -> list[str]:
        r = self.random
        column = r.choice(("k", "k", "k", "k", "k", "k", "k", "ok", "w", "m"))
        pairs = [(aliases[r.randrange(i)], aliases[i]) for i in range(1, len(aliases))]
        if r.random() < 0.12:
            pairs = pairs[1:]
        out = [f"{x}.{column} = {y}.{column}" for x, y in (r.sample(pair, 2) for pair in pairs)]
        if pairs and r.random() < 0.15:
            x, y = pairs[0]
            out.append(f"{x}.{r.choice(('m', 'w'))} = {y}.{r.choice(('m', 'w'))}")
            if out[-1].split(".")[1][0] != out[-1][-1]:  # text is not compared with numbers
                out.pop()
        return out

    def _bounds(self, aliases: Sequence[str]) -> list[str]:
        r = self.random
        size = len(aliases)
        if size == 1:
            return []
        shape = r.choice(("chain", "star", "clique", "random"))
        pairs = {
            "chain": [(i - 1, i) for i in range(1, size)],
            "star": [(0, i) for i in range(1, size)],
            "clique": [(i, j) for j in range(size) for i in range(j)],
            "random": [(r.randrange(i), i) for i in range(1, size)],
        }[shape]
        symmetric = r.random() < 0.6
        width = r.choice((3, 6, 12) if size < 4 else (2, 4))
        out = []
        for i, j in pairs:
            x, y = r.sample((aliases[i], aliases[j]), 2)
            lo, hi = (-width, width) if symmetric else sorted(r.randint(-width, width) for _ in "ab")
            out += self._bound(x, y, lo, hi)
        return out

    def _bound(self, x: str, y: str, lo: int, hi: int) -> list[str]:
        """lo <= x.ts - y.ts <= hi in ticks, in one of the forms of SQL."""
        r = self.random
        low, high = self._moved(f"{y}.ts", lo), self._moved(f"{y}.ts", hi)
        form = r.choice(
            ("between", "two", "strict", "difference", "abs", "one-sided" if r.random() < 0.2 else "two")
        )
        if form == "abs" and lo == -hi and hi > 0:
            return [f"ABS({x}.ts - {y}.ts) {r.choice(('<', '<='))} {self._interval(hi)}"]
        if form == "between":
            return [f"{x}.ts BETWEEN {low} AND {high}"]
        if form == "strict":
            return [f"{x}.ts > {low}", f"{high} > {x}.ts"]
        if form == "difference":
            return [
                f"{x}.ts - {y}.ts <= {self._signed(hi)}",
                f"{self._signed(lo)} <= {x}.ts - {y}.ts",
            ]
        if form == "one-sided":
            return [f"{x}.ts >= {low}"]
        return [f"{low} <= {x}.ts", f"{x}.ts <= {high}"]

    def _moved(self, time: str, ticks: int) -> str:
        if ticks == 0:
            return time
        return f"{time} {'-' if ticks < 0 else '+'} {self._interval(abs(ticks))}"

    def _signed(self, ticks: int) -> str:
        return f"- {self._interval(-ticks)}" if ticks < 0 else self._interval(ticks)

    def _filter(self, a: str) -> str:
        return self.random.choice(
            (
                f"{a}.x > {self._number(-12, 3)}",
                f"{a}.ok",
                f"NOT {a}.ok",
                f"{a}.w IN ('a', 'b', '')",
                f"({a}.n <> 2 OR {a}.y < 3)",
                f"{a}.z IS NOT NULL",
                f"{a}.y BETWEEN 1 AND 7.5",
                f"CASE WHEN {a}.ok THEN {a}.x ELSE {a}.y END > 0",
                f"ln({a}.x + 15) > 1",
                f"{a}.n >= 1",
                f"floor({a}.x) >= {self._number(-9, 2)}",
                f"{a}.n % 3 <> 1",
                f"coalesce({a}.z, 0) < 5",
                f"{a}.w IS DISTINCT FROM 'a'",
                f"{a}.x BETWEEN SYMMETRIC {self._number(3, 20)} AND -9",
                f"nullif({a}.w, '') IS NOT NULL",
                f"lower({a}.w) LIKE '{self.random.choice(('a%', '_', '%s'))}'",
                f"length(concat({a}.w, {a}.n)) < 4",
                f"{a}.w || 'x' NOT ILIKE 'B%'",
                f"extract(second FROM {a}.ts) > 20",
                f"date_trunc('minute', {a}.ts) > TIMESTAMP '2024-02-28 23:59:00'",
            )
        )

    def _value(self, a: str) -> str:
        return self.random.choice(
            (
                *(f"{a}.{c}" for c in "xxxxxxxxxyyyyzn"),
                f"abs({a}.x)",
                f"({a}.x + {a}.y)",
                f"{a}.x * {self._number(-2, 3)}",
                f"heat({a}.x, {a}.y)",
                f"least({a}.x, {a}.y)",
                f"greatest({a}.x, 0)",
                f"CASE WHEN {a}.ok THEN {a}.x ELSE 0 - {a}.y END",
                f"ln({a}.y)",
                f"exp({a}.x / 10)",
                f"sqrt({a}.y)",
                f"power({a}.x, 2)",
                f"CASE WHEN {a}.z IS NULL THEN 0 ELSE {a}.x END",
                f"{a}.x * {a}.y",
                f"{self.random.choice(('floor', 'ceil', 'round', 'trunc', 'sign'))}({a}.x)",
                f"round({a}.x + {a}.y, {self.random.randint(-1, 2)})",
                f"CAST({a}.x AS {self.random.choice(('INT', 'BIGINT', 'DOUBLE'))})",
                f"coalesce({a}.z, {a}.x)",
                f"{a}.x % 4",
                f"mod({a}.n, 2)",
                f"nullif({a}.n, 0)",
                f"length({a}.w)",
                f"{a}.x / extract(hour FROM {a}.ts)",
                f"CAST(CAST({a}.n AS VARCHAR) AS DOUBLE)",
            )
        )

    def _combined(self, aliases: Sequence[str]) -> str:
        r = self.random
        values = [self._value(alias) for alias in aliases]
        if len(values) == 1:
            return values[0]
        form = r.random()
        if form < 0.12:
            return f"{r.choice(('least', 'greatest'))}({', '.join(values)})"
        if form < 0.2:
            first = aliases[0]
            return f"CASE WHEN {first}.ok THEN {' + '.join(values)} ELSE {' - '.join(values)} END"
        if form < 0.26:
            return f"abs({' - '.join(values)})"
        if form < 0.3:
            return f"heat({values[0]}, {values[1]})"
        if form < 0.36:
            return f"{r.choice(('floor', 'ceil', 'round', 'trunc'))}({r.choice('+-*').join(values)})"
        if form < 0.38:
            return f"coalesce({', '.join(values)})"
        if form < 0.4:
            a, b = aliases[:2]
            return f"{r.choice('+-').join(values)} + extract(epoch FROM {a}.ts - {b}.ts)"
        if form < 0.42:
            return f"{r.choice('+-').join(values)} + length({aliases[0]}.w || {aliases[1]}.w)"
        text = values[0]
        for value in values[1:]:
            text = f"{text} {r.choice('+++++++------***/')} {value}"
        return text

    def _threshold(self, aliases: Sequence[str]) -> str:
        r = self.random
        comparison = r.choice((">", ">=", "<", "<="))
        high = self._number(0, 9) if comparison.startswith(">") else self._number(-6, 4)
        test = f"{self._combined(aliases)} {comparison} {high}"
        if r.random() < 0.12:
            return f"({test} OR {self._combined(aliases)} > {self._number(3, 12)})"
        if r.random() < 0.05:
            return f"NOT ({test})"
        return test

    def _number(self, low: int, high: int) -> str:
        r = self.random
        return str(r.randint(low, high)) if r.random() < 0.5 else str(round(r.uniform(low, high), 2))

    # --- data

    def _rows(self, stream: str) -> list[Row]:
        r = self.random
        count = r.choice((40, 70, 70, 100)) if r.random() < 0.95 else r.randint(0, 2)
        nulls = r.choice((0.0, 0.0, 0.08))
        rough = r.random() < 0.5  # many equal values
        at, rows = 0, []
        for _ in range(count):
            at += r.choice((0, 0, 0, 1, 1, 2))
            behind = r.choice((1, 5, 20)) if r.random() < 0.06 else 0
            x = float(r.randint(-6, 6)) if rough else r.gauss(0, 6)
            row: Row = {
                "k": r.choice(TEXTS[: self.keys]) if self.key_type == "VARCHAR" else r.randint(1, self.keys),
                "ts": (at - behind) * self.tick + (r.randint(0, 1) if self.tick > 1 and not rough else 0),
                "x": x,
                "y": float(r.randint(1, 9)) if rough else r.uniform(0.4, 9),
                "z": r.choice((-1.5, 0.0, 3.25, 1e6)),
                "n": r.randint(-2, 4),
                "m": r.randint(0, 6 if r.random() < 0.97 else 7),
                "ok": r.random() < 0.6,
                "w": r.choice(TEXTS),
            }
            for name in row:
                if r.random() < nulls and not (name == "k" and stream in self.alone):
                    row[name] = None
            rows.append(row)
        return rows

    def write(self, folder: Path) -> dict[str, list[str]]:
        """The recordings of all streams in some format, in one or two files; text of times as may be."""
        r = self.random
        files: dict[str, list[str]] = {}
        for name, rows in self.rows.items():
            iso, form = r.random() < 0.5, r.choice(("csv", "ndjson", "parquet"))
            shown = [{**row, "ts": _iso(row["ts"], r) if iso else _micros(row["ts"])} for row in rows]
            parts = [shown] if r.random() < 0.7 else [shown[::2], shown[1::2]]
            files[name] = []
            for i, part in enumerate(parts):
                path = folder / f"{name}-{i}.{form}"
                _write(part, path, form, self._schema(iso))
                files[name].append(str(path))
        return files

    def _schema(self, iso: bool) -> pa.Schema:
        return pa.schema(
            {
                "k": pa.string() if self.key_type == "VARCHAR" else pa.int32(),
                "ts": pa.string() if iso else pa.int64(),
                **dict.fromkeys("xyz", pa.float64()),
                **dict.fromkeys("nm", pa.int64()),
                "ok": pa.bool_(),
                "w": pa.string(),
            }
        )


def _micros(ticks: int | None) -> int | None:
    return None if ticks is None else int(START.timestamp()) * SECOND + ticks


def _iso(ticks: int | None, r: random.Random) -> str | None:
    if ticks is None:
        return None
    moment = START + timedelta(microseconds=ticks)
    if r.random() < 0.1:
        return moment.replace(tzinfo=None).isoformat(sep=" ")
    return moment.isoformat().replace("+00:00", "Z")


def _write(rows: list[Row], path: Path, form: str, schema: pa.Schema) -> None:
    table = pa.Table.from_pylist(rows, schema)
    if form == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif form == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        # An object need not name every field; some object must.
        kept = [{n: v for n, v in row.items() if v is not None or row is rows[0]} for row in rows]
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in kept))
