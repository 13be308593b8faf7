"""Random aggregates of windows and sessions of one relation, perhaps joined with the table r."""

from __future__ import annotations

import random

from tests.oracle.constant_conditions import with_constants
from tests.oracle.language.expressions import CONSTANT, condition, for_duckdb
from tests.oracle.language.readings import SECOND
from tests.oracle.language.relations import Relation, Windows

_CALLS = (
    "count(*)",
    "count(a.x)",
    "sum(a.x)",
    "avg(a.x)",
    "min(a.x)",
    "max(a.n)",
    "sum(a.n)",
    "avg(a.x * 1.5 + a.n)",
    "max(a.w)",
    "min(a.ok)",
    "median(a.x)",
    "count(DISTINCT a.n)",
    "count(DISTINCT a.w)",
    "bool_and(a.ok)",
    "bool_or(a.x > 0)",
    "stddev(a.x)",
    "var_pop(a.n)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY a.x)",
    "percentile_disc(0.75) WITHIN GROUP (ORDER BY a.x)",
    "sum(a.x) FILTER (WHERE a.ok)",
    "count(*) FILTER (WHERE a.n > 1 OR a.w = 'a')",
    "max(CASE WHEN a.ok THEN a.x ELSE -1 END)",
    "sum(a.x + coalesce(a.n, 0))",
)
# Aggregates that DuckDB writes in another way. Of equal times, first has the least value, last the greatest.
_WRITTEN = {
    "first(a.x)": "arg_min(a.x, {'t': a.MOMENT, 'x': a.x})",
    "last(a.w)": "arg_max(a.w, {'t': a.MOMENT, 'w': a.w})",
    "last(a.n ORDER BY a.x)": "arg_max(a.n, CASE WHEN a.x IS NOT NULL THEN {'x': a.x, 'n': a.n} END)",
    "arg_min(a.w, a.x)": "arg_min(a.w, CASE WHEN a.x IS NOT NULL THEN {'x': a.x, 'w': a.w} END)",
}
# The approximate quantile has seven binary digits, which are all digits of x in quarters.
_APPROXIMATE = {"approx_quantile(a.x, 0.5)": "percentile_disc(0.5) WITHIN GROUP (ORDER BY a.x)"}
_HAVING = (
    "count(*) > 1",
    "count(*) <= 3",
    "max(a.x) > 0.3 OR min(a.n) IS NULL",
    "avg(a.x) > -1.37",
    "sum(a.n) % 2 = 0",
    "count(*) FILTER (WHERE a.ok) > 0",
)


class Aggregation:
    """A SELECT with aggregates of windows of a relation: `sql` for Tamis, `duck` for DuckDB."""

    def __init__(self, r: random.Random, below: Relation, joined: tuple[str, str] | None = None) -> None:
        """`joined`: another stream `b` beside the windows, for Tamis and for DuckDB."""
        self._random, self._below = r, below
        session = joined is None and below.kind != "rows" and r.random() < 0.25
        table = not session and joined is None and r.random() < 0.25
        by = r.sample(("a.n", "a.ok", "a.w", "a.n % 2", "a.x > 0"), r.choice((0, 0, 1, 2)))
        if session or r.random() < 0.7:
            by.insert(0, "a.k")
        if table and r.random() < 0.5:
            by.append("r.region")
        calls = dict.fromkeys(r.sample(_CALLS, r.randint(1, 4)), "")
        if r.random() < 0.3:
            calls |= dict(r.sample(list(_WRITTEN.items()), 1))
        if r.random() < CONSTANT:
            calls[f"count(*) FILTER (WHERE {with_constants(r, 'a.n > 1')})"] = ""
        if below.exact and r.random() < 0.15:
            calls |= _APPROXIMATE
        if joined is not None:
            calls |= dict.fromkeys(r.sample(("sum(a.x - b.x)", "max(b.n)", "count(b.w)", "avg(b.x)"), 2), "")
        windows = ["window_end", "window_start"] if session or r.random() < 0.3 else ["window_end"]
        shown = [*windows, *by, *calls]
        self.columns = len(shown)
        written = [calls.get(one) or one for one in shown]
        named = ", ".join(f"{one} AS c{i}" for i, one in enumerate(shown))
        duck = ", ".join(f"{one} AS c{i}" for i, one in enumerate(written)).replace("MOMENT", below.moment)
        where = [] if session else [condition(r, "a") for _ in range(r.choice((0, 0, 1, 2)))]
        tail = f" GROUP BY {', '.join([*windows, *by])}"
        if r.random() < 0.3:
            having = r.choice(_HAVING)
            tail += f" HAVING {with_constants(r, having) if r.random() < CONSTANT else having}"
        condition_ = f" WHERE {' AND '.join(where)}" if where else ""
        source, reference = self._session() if session else self._windows(table)
        if joined is not None:
            source, reference = source + joined[0], reference + joined[1]
        if table:
            source, reference = f"{source} JOIN r ON a.k = r.key", f"{reference} JOIN r ON a.k = r.key"
        self.sql = f"SELECT {named} FROM {source}{condition_}{tail}"
        self.duck = f"SELECT {for_duckdb(duck)} FROM {reference}{for_duckdb(condition_ + tail)}"

    def _windows(self, table: bool) -> tuple[str, str]:
        r = self._random
        window = Windows.random(r, ("TUMBLE", "HOP", "CUMULATE"))
        flink = not table and r.random() < 0.2
        return f"{window.text(self._below, flink)} a", f"{window.duck(self._below)} a"

    def _session(self) -> tuple[str, str]:
        """Sessions of each key, perhaps cut at a greatest length."""
        r, below = self._random, self._below
        gap = r.choice((1, 2, 3)) * SECOND // 2
        greatest = r.choice((None, gap, 4 * gap, 7 * SECOND))
        lengths = ", ".join(f"INTERVAL '{one} us'" for one in (gap, greatest) if one is not None)
        sql = f"SESSION({below.text}, ts, {lengths}) a"
        if r.random() < 0.3:
            sql = f"TABLE(SESSION(TABLE {below.text} PARTITION BY k, DESCRIPTOR(ts), {lengths})) a"
        timed = f"SELECT *, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before FROM {below.duck}"
        begins = f"CASE WHEN before IS NULL OR ts - before > {gap} THEN ts END"
        runs = f"SELECT *, max({begins}) OVER (PARTITION BY k ORDER BY ts) AS begun FROM ({timed})"
        if greatest is None:
            starts, end = f"SELECT *, begun AS window_start FROM ({runs})", "last_ts + {gap}"
        else:
            starts = (
                f"SELECT *, begun + (ts - begun) // {greatest} * {greatest} AS window_start FROM ({runs})"
            )
            end = f"least(last_ts + {{gap}}, window_start + {greatest})"
        lasts = f"SELECT *, max(ts) OVER (PARTITION BY k, begun, window_start) AS last_ts FROM ({starts})"
        return sql, f"(SELECT *, {end.format(gap=gap)} AS window_end FROM ({lasts})) a"
