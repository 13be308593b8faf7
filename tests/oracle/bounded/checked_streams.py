"""Random streams without time whose CHECKs are over several columns, have OR, or are over DOUBLEs.

DuckDB has the streams as tables with the same CHECKs, so that it says which tuples are admitted.
"""

from __future__ import annotations

import random

import duckdb

TYPES = {"a": "INT", "b": "INT", "x": "DOUBLE", "y": "DOUBLE", "v": "VARCHAR"}
DUCKDB_TYPES = {"INT": "BIGINT"}
NUMBERS = (0.5, 1.5, 2.5)
COLUMNS = {"s": tuple(f"{name}1" for name in TYPES), "t": tuple(f"{name}2" for name in TYPES)}


class CheckedStreams:
    """Two streams: `sql` for Tamis, and an empty table of the same name in DuckDB for each."""

    def __init__(self, r: random.Random) -> None:
        self.reference = duckdb.connect()
        self.sql = ""
        for stream, columns in COLUMNS.items():
            declared = [
                f"{column} {kind}{' NOT NULL' if r.random() < 0.5 else ''}"
                + (f" CHECK ({_check(r, columns, column)})" if r.random() < 0.7 else "")
                for column, kind in zip(columns, TYPES.values(), strict=True)
            ]
            self.sql += f"CREATE STREAM {stream} ({', '.join(declared)});\n"
            body = ", ".join(declared).replace(" INT", " BIGINT")
            self.reference.execute(f"CREATE TABLE {stream} ({body})")

    def admits(self, stream: str, values: tuple[object, ...]) -> bool:
        """True if DuckDB admits the tuple to the table of the stream, where it then is."""
        places = ", ".join("?" for _ in values)
        try:
            self.reference.execute(f"INSERT INTO {stream} VALUES ({places})", values)
        except duckdb.ConstraintException:
            return False
        return True


def tuple_of(r: random.Random) -> tuple[object, ...]:
    """Random values of a stream's columns, with NULLs."""
    values = [
        r.randint(-1, 4),
        r.randint(-1, 4),
        r.choice((*NUMBERS, 7.25)),
        r.choice((*NUMBERS, 7.25)),
        r.choice("pqr"),
    ]
    return tuple(None if r.random() < 0.1 else value for value in values)


def query(r: random.Random) -> str:
    """A query whose memory mostly rests on the CHECKs."""
    sources = r.choice((["s x"], ["s x", "t y"], ["s x", "t y"], ["s x", "s y"]))
    names = [f"{one.split()[1]}.{column}" for one in sources for column in COLUMNS[one.split()[0]]]
    conditions = [_condition(r, names) for _ in range(r.randint(0, 2))]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    shown = r.sample(names, r.randint(1, 2))
    if r.random() < 0.25:
        numbers = [name for name in names if name[2] in "abxy"]
        calls = [f"{f}({r.choice(numbers)})" for f in r.sample(("min", "max", "count", "sum"), 2)]
        outputs = f"{shown[0]} AS o0, {calls[0]} AS o1, {calls[1]} AS o2"
        return f"SELECT {outputs} FROM {', '.join(sources)}{where} GROUP BY {shown[0]}"
    outputs = ", ".join(f"{one} AS o{at}" for at, one in enumerate(shown))
    return f"SELECT {r.choice(('DISTINCT ', 'DISTINCT ', ''))}{outputs} FROM {', '.join(sources)}{where}"


def _condition(r: random.Random, names: list[str]) -> str:
    kind = r.choice("aaxv")
    own = [name for name in names if name[2] in {"a": "ab", "x": "xy", "v": "v"}[kind]]
    left, right = r.choice(own), r.choice(own)
    if kind == "v":
        return f"{left} = {right}"
    if left == right or r.random() < 0.4:
        return r.choice((f"{left} IS NOT NULL", f"{left} <= 2", f"{left} > 0"))
    return f"{left} {r.choice(('<', '<=', '=', '>'))} {right}"


def _check(r: random.Random, columns: tuple[str, ...], column: str) -> str:
    a, b, x, y, v = columns
    if column in (a, b):
        return r.choice(
            (
                f"{a} <= {b}",
                f"{a} BETWEEN 0 AND {b}",
                f"{b} <= 3",
                f"{a} >= 0 AND {b} <= 3",
                f"{a} = {b} + 1",
                f"{a} BETWEEN 0 AND 2 OR {b} = 1",
                f"{b} IN (1, 2) AND {a} < 4",
                f"{a} - {b} < 2",
            )
        )
    if column == v:
        return r.choice((f"{v} IN ('p', 'q')", f"{v} = 'p' OR {a} > 2", f"{v} <> 'r'"))
    return r.choice(
        (
            f"{x} IN (0.5, 1.5)",
            f"{y} IN (0.5, 2.5) AND {x} < {y}",
            f"{x} <= {y}",
            f"{x} = 0.5 OR {x} = 1.5 OR {a} = 2",
            f"{y} = 1.5",
            f"{x} = {y}",
        )
    )
