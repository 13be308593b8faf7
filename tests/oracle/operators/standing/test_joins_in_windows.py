"""Aggregates over joins by time in windows: two and three streams, and windows of each kind.

The rows are DuckDB's. A combination counts if all of its tuples came before its time was decided.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from tests.oracle.operators.standing.interleaved_runs import (
    catalog_with,
    comparable,
    declared,
    expected,
    in_windows,
    play,
)
from tests.oracle.random_cases import SEED, cases

_AGGREGATES = (
    *("count(*)", "avg(d)", "sum(m)", "max(d)", "min(m)", "count(d)", "count(DISTINCT m)"),
    *("sum(m + 1) FILTER (WHERE d > 0)", "bool_or(d > 1)", "median(m)"),
)
_SELECT = "{time}.ts, a.k, b.n AS m, a.x - b.x AS d, a.n AS n"


@dataclass(frozen=True)
class _Case:
    """Statements and the alert for Tamis, SQL for DuckDB, and how much later the tuples of each stream may be
    than those whose event time the rows have.
    """

    statements: str
    alert: str
    reference: str
    follows: Sequence[tuple[str, int]]
    within: int | None = None  # the size of the windows that tuples share


def _case(r: random.Random) -> _Case:
    """A join of two or three sources, in windows over the event time of one of them."""
    streams = {"a": r.choice("sst"), "b": r.choice("stt")}
    ranges = {"b": _range(r)}
    if r.random() < 0.3:
        streams["c"], ranges["c"] = r.choice("st"), _range(r)
    time = r.choice(list(streams))
    keys = {alias: r.random() < 0.8 for alias in ranges}
    conditions = [f"a.k = {alias}.k" for alias, keyed in keys.items() if keyed]
    conditions += r.sample(["a.x > b.x", "a.n > 0", "b.n <> 2", "a.n = b.n"], r.choice((0, 0, 1, 2)))
    tamis = [f"{one}.ts BETWEEN {_after(lo)} AND {_after(hi)}" for one, (lo, hi) in ranges.items()]
    duckdb_ = [f"{one}.ts BETWEEN a.ts + {lo} AND a.ts + {hi}" for one, (lo, hi) in ranges.items()]
    decided = [f"{time}.ts >= {alias}.clock" for alias in streams]
    read = (
        f"SELECT {_SELECT.format(time=time)} FROM {', '.join(f'{s} {a}' for a, s in streams.items())} WHERE "
    )
    pairs = read + " AND ".join((*conditions, *tamis))
    reference = read + " AND ".join((*conditions, *duckdb_, *decided))
    table = r.random() < 0.2
    by = r.choice(("window_end", "k, window_end", "k, window_end", "n, window_start", "k, m, window_end"))
    by = f"region, {by}" if table else by
    shown = ", ".join(
        f"{one} AS c{i}" for i, one in enumerate((by.split(", ")[-1], *r.sample(_AGGREGATES, 2)))
    )
    tail = r.choice(("", " AND d > 0", " AND n > 0 AND m IS NOT NULL")) + f" GROUP BY {by}"
    tail += r.choice(("", " HAVING count(*) > 1"))
    slide = r.choice((1, 3, 5, 20))
    size = slide * r.choice((1, 1, 2, 3))
    shown = f"{', '.join(by.split(', ')[:-1])}{', ' if ',' in by else ''}{shown}"
    rows = in_windows(f"({reference})", "ts", slide, size)
    area = ", d area WHERE k = area.key" if table else " WHERE TRUE"
    follows = [(stream, _later(ranges, alias, time)) for alias, stream in streams.items()]
    asked = f"SELECT {shown} FROM {rows}{area}{tail}"
    if r.random() < 0.3:
        # The windows stand on one side of the join.
        sides = (_call(s, slide, size) if alias == time else s for alias, s in streams.items())
        sources = ", ".join(f"{side} {alias}" for side, alias in zip(sides, streams, strict=True))
        joins = " AND ".join((*conditions, *tamis))
        direct = _direct(f"SELECT {shown} FROM {sources}{area} AND {joins}{tail}")
        return _Case("", direct, asked, follows)
    call = _call("p", slide, size)
    if r.random() < 0.2:
        shown, tail, area = (
            f"k, window_end, {r.choice(_AGGREGATES)} AS c",
            f"{tail[: tail.index(' GROUP')]}",
            "",
        )
        pairs, reference = (f"SELECT * FROM ({one}) p WHERE TRUE{tail}" for one in (pairs, reference))
        call, tail = f"SESSION(p, ts, INTERVAL '{size} us')", " GROUP BY k, window_start, window_end"
        asked = f"SELECT {shown} FROM {_sessions(reference, size)}{tail}"
    named = r.random() < 0.5
    asking = f"SELECT {shown} FROM {call} p{area}{tail}"
    if named:
        return _Case(f"CREATE STREAM p AS {pairs};", asking, asked, follows)
    return _Case("", f"WITH p AS ({pairs}) {asking}", asked, follows)


def _in_shared_windows(r: random.Random) -> _Case:
    """A join of two or three sources that are all in the same windows."""
    streams = {"a": r.choice("sst"), "b": r.choice("stt")} | (
        {"c": r.choice("st")} if r.random() < 0.3 else {}
    )
    others = [alias for alias in streams if alias != "a"]
    size = r.choice((2, 5, 20, 50))
    conditions = [f"a.k = {alias}.k" for alias in others if r.random() < 0.8]
    conditions += [
        f"a.{(edge := r.choice(('window_start', 'window_end')))} = {alias}.{edge}" for alias in others
    ]
    conditions += r.sample(["a.x > b.x", "a.n > 0", "b.n <> 2", "a.n = b.n"], r.choice((0, 0, 1)))
    later = dict.fromkeys(others, size - 1)
    bound = ""
    lo, hi = _range(r)
    if len(others) == 1 and lo < size and hi > -size and r.random() < 0.5:
        later["b"] = min(later["b"], hi)
        bound = f" AND b.ts BETWEEN {_after(lo)} AND {_after(hi)}"
    by = r.choice(("{}.window_end", "a.k, {}.window_end", "a.k, {}.window_start", "b.n, {}.window_end"))
    by = by.format(r.choice(list(streams)))
    shown = ", ".join((by, *(f"{one} AS c{i}" for i, one in enumerate(r.sample(_AGGREGATES, 2)))))
    tail = f" GROUP BY {by}" + r.choice(("", " HAVING count(*) > 1"))
    call = f"TUMBLE({{}}, ts, INTERVAL '{size} us')"
    tamis = ", ".join(f"{call.format(stream)} {alias}" for alias, stream in streams.items())
    rows = {
        alias: in_windows(f"(SELECT * FROM {stream})", "ts", size, size) for alias, stream in streams.items()
    }
    duckdb_ = ", ".join(f"{one} {alias}" for alias, one in rows.items())
    asked = f"SELECT {shown} FROM {{}} WHERE {' AND '.join(conditions)}{{}}{tail}"
    asked = re.sub(
        r"(?<![.\w])[md](?![.\w(])", lambda at: {"m": "b.n", "d": "(a.x - b.x)"}[at.group()], asked
    )
    decided = "".join(f" AND a.ts >= {alias}.clock" for alias in streams)
    if bound:
        decided += f" AND b.ts BETWEEN a.ts + {lo} AND a.ts + {hi}"
    follows = [(stream, later.get(alias, 0)) for alias, stream in streams.items()]
    return _Case("", asked.format(tamis, bound), asked.format(duckdb_, decided), follows, size)


def _sessions(rows: str, gap: int) -> str:
    """SQL of rows in the sessions of their keys."""
    before = f"SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) > {gap} AS apart FROM ({rows})"
    runs = f"SELECT *, count(*) FILTER (WHERE apart) OVER (PARTITION BY k ORDER BY ts) AS run FROM ({before})"
    ends = "min(ts) OVER (PARTITION BY k, run) AS window_start"
    return f"(SELECT *, {ends}, max(ts) OVER (PARTITION BY k, run) + {gap} AS window_end FROM ({runs}))"


def _call(stream: str, slide: int, size: int) -> str:
    if slide == size:
        return f"TUMBLE({stream}, ts, INTERVAL '{size} us')"
    return f"HOP({stream}, ts, INTERVAL '{slide} us', INTERVAL '{size} us')"


def _direct(sql: str) -> str:
    """The query over the columns of the joined streams."""
    meant = {"k": "a.k", "m": "b.n", "d": "(a.x - b.x)", "n": "a.n"}
    return re.sub(r"(?<![.\w])[kmdn](?![.\w(])(?! area)", lambda found: meant[found.group()], sql)


def _range(r: random.Random) -> tuple[int, int]:
    """The least and the greatest time of a source after that of `a`."""
    lo, hi = sorted((r.randint(-12, 8), r.randint(-8, 12)))
    return lo, hi


def _after(distance: int) -> str:
    sign = "-" if distance < 0 else "+"
    return f"a.ts {sign} INTERVAL '{abs(distance)} us'"


def _later(ranges: Mapping[str, tuple[int, int]], one: str, other: str) -> int:
    """How much later a tuple of one source may be than one of the other."""
    if one == other:
        return 0
    return ranges.get(one, (0, 0))[1] - ranges.get(other, (0, 0))[0]


@pytest.mark.parametrize("make", [_case, _in_shared_windows])
def test_the_rows_are_those_of_duckdb(make: Callable[[random.Random], _Case], tmp_path: Path) -> None:
    reference = duckdb.connect(":memory:")
    productive = late = 0
    tried = cases(0.002)
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        delays = r.choice((0, 1, 4, 12)), r.choice((0, 1, 4, 12))
        statements = declared(tmp_path, delays, rate=(rate := r.random() < 0.5))
        asked = make(r)
        catalog = catalog_with(f"{statements} {asked.statements}", asked.alert)
        run = play(r, catalog, rate=rate, follows=asked.follows, within=asked.within)
        found = expected(reference, tmp_path, run, asked.reference)
        assert comparable(run.rows) == comparable(found), (case, asked, run)
        productive += bool(run.rows)
        late += run.late > 0
    assert productive > tried // 4
    assert late > 0
