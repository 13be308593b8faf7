"""Random aggregates of windows over random tuples, and their rows as DuckDB computes them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa
from tests.operators import compile_query

from tamis.declarations.streams import StreamDef
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows
from tamis.operators.windows.groups import WindowedGroups
from tamis.planning.explain import explain
from tamis.query.model import Catalog, WindowGroupBy

Tuple = tuple[int, str | None, int | None, int | None, float | None, str | None, bool | None]
Row = tuple[object, ...]

NAMES = ("ts", "k", "a", "b", "x", "v", "f")
_ARROW = (pa.int64(), pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.int64())
_CONDITIONS = (
    "a > 0",
    "x >= 0.5 OR a = 2",
    "k = 'p'",
    "v IN ('y', 'z')",
    "f",
    "b <> 1",
    "x IS NULL OR x < 1",
)
_CALLS = (
    *("count(*)", "count(x)", "count(v)", "sum(a)", "sum(b)", "sum(x)", "avg(a)", "avg(x)", "min(b)"),
    *("max(x)", "min(v)", "max(f)", "max(ts)", "median(x)", "median(a)"),
    *("count(DISTINCT v)", "count(DISTINCT x)", "count(DISTINCT f)"),
    *(
        "count(1)",
        "sum(2)",
        "avg(x * 1.5 + 2)",
        "sum(2 * a - 1)",
        "max(-x)",
        "min(a > 1 OR f)",
        "count(x + a)",
    ),
    *("median(x + a)", "count(DISTINCT 2 * a)", "max(CASE WHEN f THEN v ELSE 'none' END)", "sum(x / 2)"),
    *("count(*) FILTER (WHERE x > 0)", "sum(x) FILTER (WHERE a = 1 OR f)", "min(v) FILTER (WHERE NOT f)"),
    *("count(DISTINCT v) FILTER (WHERE a > 0)", "avg(b) FILTER (WHERE FALSE)", "median(x) FILTER (WHERE f)"),
    *("count(*) FILTER (WHERE v = 'y')", "sum(a + 1) FILTER (WHERE x IS NULL)"),
    *("bool_and(f)", "bool_or(x > 0)", "bool_or(f) FILTER (WHERE a = 1)"),
    *("percentile_cont(0.25) WITHIN GROUP (ORDER BY x)", "percentile_cont(1) WITHIN GROUP (ORDER BY -a)"),
    *("percentile_disc(0.29) WITHIN GROUP (ORDER BY x)", "percentile_disc(0.75) WITHIN GROUP (ORDER BY ts)"),
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FILTER (WHERE b <> 5)",
)
# Aggregates that DuckDB writes in another way. Of equal times, first has the least value, last the greatest.
_WRITTEN = {
    "first(x ORDER BY ts)": "arg_min(x, {'t': ts, 'x': x})",
    "last(v ORDER BY ts) FILTER (WHERE a > 0)": "arg_max(v, {'t': ts, 'v': v}) FILTER (WHERE a > 0)",
    "first(f ORDER BY ts DESC)": "arg_max(f, {'t': ts, 'f': f})",
    "last(2 * a ORDER BY -x)": "arg_max(2 * a, CASE WHEN x IS NOT NULL THEN {'t': -x, 'a': 2 * a} END)",
    "arg_min(b, v)": "arg_min(b, CASE WHEN v IS NOT NULL THEN {'v': v, 'b': b} END)",
    "arg_max(ts, f)": "arg_max(ts, CASE WHEN f IS NOT NULL THEN {'f': f, 't': ts} END)",
}
# Aggregates whose exact value is computed from all values.
_SPREADS = (
    "stddev(x)",
    "stddev_pop(a)",
    "variance(b)",
    "var_pop(x)",
    "var_samp(x) FILTER (WHERE f)",
    "stddev_samp(b)",
)
_EXPRESSIONS = (
    *("a + 1", "-x", "NOT f", "f AND a > 0", "2 * x - a"),
    "CASE WHEN x > 0 THEN 'high' WHEN x <= 0 THEN 'low' END",
)


@dataclass(frozen=True)
class Parts:
    """Of a query: SELECT, which begins with the window, also for DuckDB, WHERE, and GROUP BY with HAVING.

    `spreads`: the columns that have a variance or a standard deviation, for DuckDB a list of values.
    """

    select: str
    reference: str
    spreads: dict[int, str]
    condition: str
    group: str
    delay: int
    rate: bool


@dataclass(frozen=True)
class Windows:
    """Windows with their slide, size and offset in microseconds."""

    slide: int
    size: int
    offset: int
    cumulative: bool

    @property
    def sql(self) -> str:
        """As it stands in FROM."""
        lengths = [self.slide, self.size]
        name = "CUMULATE" if self.cumulative else "HOP"
        if self.slide == self.size and not self.cumulative:
            name, lengths = "TUMBLE", [self.size]
        lengths += [self.offset] if self.offset else []
        intervals = [f"INTERVAL '{one} us'" for one in lengths]
        return f"{name}(s, ts, {', '.join(intervals)})"


@dataclass(frozen=True)
class Lower:
    """What queries have in common that edges aggregate together: groups, conditions, and the stream."""

    by: tuple[str, ...]
    condition: str
    delay: int
    rate: bool

    @staticmethod
    def drawn(r: random.Random) -> Lower:
        """Random ones."""
        return Lower(_by(r), _condition(r), r.choice((0, 0, 1, 4, 12)), r.random() < 0.5)


def random_case(r: random.Random, lower: Lower | None = None) -> tuple[str, Parts, Windows]:
    """A random query, perhaps with a certain lower half, with its windows."""
    slide = r.choice((1, 2, 3, 5, 8))
    size = slide * r.choice((1, 1, 1, 2, 3, 7))
    offset = r.choice((0, 0, 0, 1, -3, 7, -40))
    window = Windows(slide, size, offset, size > slide and r.random() < 0.5)
    if lower is None:
        parts = Parts(*_query(r, window), r.choice((0, 0, 1, 4, 12)), r.random() < 0.5)
    else:
        parts = Parts(*_query(r, window, lower), lower.delay, lower.rate)
    alias = " u" if lower is not None and r.random() < 0.5 else ""
    alert = f"CREATE ALERT q AS SELECT {parts.select} FROM {window.sql}{alias}{parts.condition}{parts.group}"
    return f"{_stream(parts.delay, parts.rate)} {alert}", parts, window


@dataclass(frozen=True)
class WindowQuery:
    """A query over the stream `s`, with the delay of its watermark."""

    sql: str
    catalog: Catalog
    delay: int

    @cached_property
    def bound(self) -> int | None:
        """The bound that is said."""
        memory = explain(self.catalog, "q").memory
        assert memory.verdict == "bounded"
        return memory.bound

    @property
    def query(self) -> WindowGroupBy:
        """The query."""
        query = self.catalog.alerts["q"].query
        assert isinstance(query, WindowGroupBy)
        return query

    def fresh(self) -> WindowedGroups:
        """The query, without tuples yet."""
        operator = compile_query(self.query, self.catalog)
        assert isinstance(operator, WindowedGroups)
        return operator


def _stream(delay: int, rate: bool) -> str:
    declared = "keys = 3, max_stall = '1us', max_ahead = '0'" + (", rate = '1/2us'" if rate else "")
    return (
        "CREATE STREAM s (ts TIMESTAMP, k VARCHAR KEY, a INT CHECK (a BETWEEN 0 AND 2), b BIGINT, x DOUBLE,"
        f" v VARCHAR, f BOOLEAN, WATERMARK FOR ts AS ts - INTERVAL '{delay} us') WITH ({declared});"
    )


def _query(
    r: random.Random, window: Windows, lower: Lower | None = None
) -> tuple[str, str, dict[int, str], str, str]:
    windows = ["window_start", "window_end"][window.cumulative and r.random() < 0.5 :]
    if not window.cumulative:
        windows = r.choice((["window_start"], ["window_end"], ["window_start", "window_end"]))
    by = list(_by(r) if lower is None else r.sample(lower.by, len(lower.by)))
    calls = r.sample((*_CALLS, *_WRITTEN, *_WRITTEN, *_SPREADS, *_SPREADS), r.randint(1, 4))
    outputs = [*windows, *(f"{one} AS g{i}" for i, one in enumerate(by))]
    spreads = {len(outputs) + i: one for i, one in enumerate(calls) if one in _SPREADS}
    lists = {one: re.sub(r"^[a-z_]+", "list", one) for one in _SPREADS}
    reference = [
        *outputs,
        *(f"{({**_WRITTEN, **lists}).get(one, one)} AS o{i}" for i, one in enumerate(calls)),
    ]
    outputs += [f"{one} AS o{i}" for i, one in enumerate(calls)]
    condition = _condition(r) if lower is None else lower.condition
    grouped = [*windows, *(f"g{i}" if r.random() < 0.2 else one for i, one in enumerate(by))]
    r.shuffle(grouped)
    havings = ("count(*) > 1", "max(x) > 0.25 OR min(a) IS NULL", "count(*) FILTER (WHERE f) > 0")
    having = r.choice(("", "", *(f" HAVING {one}" for one in havings)))
    return (
        ", ".join(outputs),
        ", ".join(reference),
        spreads,
        condition,
        f" GROUP BY {', '.join(grouped)}{having}",
    )


def _by(r: random.Random) -> tuple[str, ...]:
    return tuple(r.sample(("k", "a", "b", "x", "v", "f", *_EXPRESSIONS), r.choice((0, 0, 1, 1, 2))))


def _condition(r: random.Random) -> str:
    where = [
        one if " OR " not in one else f"({one})" for one in r.sample(_CONDITIONS, r.choice((0, 0, 1, 2)))
    ]
    return f" WHERE {' AND '.join(where)}" if where else ""


def random_tuples(r: random.Random, rate: bool) -> list[Tuple]:
    """Tuples with disorder, ties, NULLs, gaps, and negative times. With `rate`, at most one of a key in any
    two microseconds."""
    now = r.choice((0, -30, 10**9, -(10**15) - 7))
    tuples: list[Tuple] = []
    seen: set[tuple[str | None, int]] = set()
    for _ in range(r.choice((0, 1, 5, 20, 60))):
        now += r.choice((0, 0, 1, 1, 2, 9)) if r.random() < 0.97 else r.choice((50, 10**7))
        ts = now - (0 if r.random() < 0.7 else r.randint(0, 25))
        k = r.choice(("p", "q", "r"))
        if rate and any((k, at) in seen for at in (ts - 1, ts, ts + 1)):
            continue
        seen.add((k, ts))
        a = r.choice((None, 0, 1, 2))
        b = r.choice((None, 1, -1, 2**63 - 1, -(2**63), 5))
        x = r.choice((None, 0.5, -0.0, 0.0, -1.25, 1e6, 0.125))
        tuples.append((ts, k, a, b, x, r.choice((None, "", "y", "z")), r.choice((None, True, False))))
    return tuples


def rows_of(found: Rows) -> list[Row]:
    return list(zip(*(vector.to_list() for vector in found.columns.values()), strict=True))


def batch_of(stream: StreamDef, tuples: list[Tuple]) -> dict[str, Vector]:
    columns = zip(*tuples, strict=True) if tuples else [()] * len(NAMES)
    return {
        name: Vector.from_list(values, column.type)
        for name, values in zip(NAMES, columns, strict=True)
        if (column := stream.column(name)) is not None
    }


def expected_rows(
    reference: duckdb.DuckDBPyConnection,
    query: Parts,
    window: Windows,
    tuples: list[Tuple],
    marks: list[int],
) -> list[Row]:
    columns = [*map(list, zip(*tuples, strict=True))] if tuples else [[] for _ in NAMES]
    table = pa.table(
        [pa.array(one, kind) for one, kind in zip([*columns, marks], _ARROW, strict=True)], [*NAMES, "mark"]
    )
    reference.register("given", table)
    reference.execute("CREATE OR REPLACE TABLE s AS SELECT *, row_number() OVER () AS row FROM given")
    return [
        tuple(
            _spread(query.spreads[i], value) if i in query.spreads else _fitting(value)
            for i, value in enumerate(row)
        )
        for row in reference.execute(
            f"SELECT {query.reference} FROM (SELECT * FROM ({_windows(window)}) WHERE window_end > mark)"
            f"{query.condition}{query.group}"
        ).fetchall()
    ]


def _windows(window: Windows) -> str:
    slide, size, offset = window.slide, window.size, window.offset
    if window.cumulative:
        starts = f"{offset} + {_multiples(size, offset, 1)}"
        each = f"SELECT *, unnest(range({slide}, {size + slide}, {slide})) AS length"
        each = f"{each} FROM (SELECT *, {starts} AS window_start FROM s)"
        ends = f"SELECT * EXCLUDE length, window_start + length AS window_end FROM ({each})"
    else:
        each = f"SELECT *, {offset} + {_multiples(slide, offset, size // slide)} AS window_start FROM s"
        ends = f"SELECT *, window_start + {size} AS window_end FROM ({each})"
    return f"SELECT * FROM ({ends}) WHERE window_start <= ts AND ts < window_end"


def _multiples(distance: int, offset: int, before: int) -> str:
    """Multiples of a distance near a time, some of them too many: WHERE leaves the windows with the tuple.
    DuckDB's / is of DOUBLEs.
    """
    first = f"CAST(floor((ts - {offset})::HUGEINT / {distance}) AS BIGINT)"
    return f"unnest(range(({first} - {before} - 2) * {distance}, ({first} + 3) * {distance}, {distance}))"


def late_tuples(reference: duckdb.DuckDBPyConnection, condition: str, window: Windows) -> int:
    found = reference.execute(
        f"SELECT count(DISTINCT row) FROM ({_windows(window)})"
        f"{condition}{' AND' if condition else ' WHERE'} window_end <= mark"
    ).fetchall()
    return int(found[0][0])


def _spread(call: str, values: list[Any] | None) -> float | None:
    """A variance or a standard deviation by its definition, correctly rounded."""
    numbers = [Fraction(one) for one in values or () if one is not None]
    divisor = len(numbers) - ("_pop" not in call)
    if not numbers or divisor == 0:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    exact = sum(((one - mean) ** 2 for one in numbers), Fraction(0)) / divisor
    if not call.startswith("stddev"):
        return exact.numerator / exact.denominator
    with localcontext() as context:
        context.prec = 200
        return float((Decimal(exact.numerator) / Decimal(exact.denominator)).sqrt())


def _fitting(value: object) -> object:
    """DuckDB adds BIGINTs to more than 64 bits."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def comparable(row: Row) -> tuple[tuple[int, str], ...]:
    return tuple((0, "") if value is None else (1, repr(_plain(value))) for value in row)


def _plain(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value
