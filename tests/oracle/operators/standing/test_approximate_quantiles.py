"""Approximate quantiles: each is the exact percentile, rounded to seven binary digits by another way.

Batches are random, and the state is dumped and loaded at random points.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
from tests.operators import compile_query, run_query
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows, StandingEvaluator
from tamis.planning.explain import explain
from tamis.query.model import Catalog, WindowGroupBy
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys

# The most that an approximate quantile may be away from the exact one, as a share of it.
ERROR = Fraction(1, 128)
FRACTIONS = ("0", "0.05", "0.5", "0.95", "1")
_ENDS = {"windows": "TUMBLE(s, ts, INTERVAL '1' HOUR)", "sessions": "SESSION(s, ts, INTERVAL '1' HOUR)"}


def _catalog(kind: str) -> Catalog:
    timed = kind != "timeless"
    stream = (
        f"CREATE STREAM s (k INT KEY, x DOUBLE{', ts TIMESTAMP, WATERMARK FOR ts AS ts' if timed else ''})"
    )
    calls = [f"approx_quantile(x, {one}) AS q{i}" for i, one in enumerate(FRACTIONS)]
    calls += ["approx_percentile(0.25, 0.01) WITHIN GROUP (ORDER BY x) FILTER (WHERE x > 0) AS positive"]
    source = f"{_ENDS[kind]} GROUP BY k, window_end" if timed else "s WHERE k BETWEEN 0 AND 2 GROUP BY k"
    return catalog_of(f"{stream}; CREATE ALERT q AS SELECT k, {', '.join(calls)} FROM {source};")


def _value(r: random.Random, around: float) -> float | None:
    kind = r.random()
    if kind < 0.1:
        return r.choice((None, 0.0, -0.0, 1e-13, -5e-324, 1.0, 2.0**-40, -(2.0**60)))
    if kind < 0.3:  # near the ends of bins
        return math.nextafter(r.randint(60, 130) * 2.0 ** r.randint(-6, 3), r.choice((-math.inf, math.inf)))
    return r.gauss(around, abs(around) / 10)


def _expected(values: list[float | None], fraction: str, *, positive: bool = False) -> float | None:
    known = sorted(one for one in values if one is not None and (one > 0 or not positive))
    if not known:
        return None
    exact = known[max(math.ceil(Fraction(fraction) * len(known)), 1) - 1]
    if abs(exact) < 2.0**-40:
        return 0.0
    mantissa, exponent = math.frexp(exact)
    away = math.floor(abs(mantissa) * 128 + 0.5)  # a half is rounded away from zero
    rounded = math.copysign(math.ldexp(away, exponent - 7), exact)
    assert abs(Fraction(rounded) - Fraction(exact)) <= ERROR * abs(Fraction(exact))
    return rounded


def test_they_are_the_percentiles_rounded_to_seven_digits() -> None:
    catalogs = {kind: _catalog(kind) for kind in ("windows", "sessions", "timeless")}
    for case in range(cases(0.0005)):
        r = random.Random(SEED * 1_000_003 + case)
        kind = r.choice(list(catalogs))
        around = r.choice((1.0, -20.0, 1e6, 1e-9, 1e200))
        rows = [(r.randint(0, 2), _value(r, around)) for _ in range(r.choice((1, 3, 30, 300)))]
        found = _played(r, catalogs[kind], rows)
        for k in {k for k, _ in rows}:
            values = [x for own, x in rows if own == k]
            expected = [_expected(values, one) for one in FRACTIONS]
            expected.append(_expected(values, "0.25", positive=True))
            assert found[k] == expected, (SEED, case, kind, k, values)


def _played(
    r: random.Random, catalog: Catalog, rows: list[tuple[int, float | None]]
) -> dict[int, list[object]]:
    """The last row of each key."""
    query = _fresh(catalog)
    found: dict[int, list[object]] = {}
    timed = catalog.streams["s"].time is not None

    def note(rows: Rows) -> None:
        for k, *values in zip(*(one.to_list() for one in rows.columns.values()), strict=True):
            assert isinstance(k, int)
            found[k] = values

    at = 0
    while at < len(rows):
        part = rows[at : at + r.randint(1, 100)]
        at += len(part)
        batch = {
            "k": Vector.from_list([k for k, _ in part], Type.INT),
            "x": Vector.from_list([x for _, x in part], Type.DOUBLE),
        }
        if timed:
            batch["ts"] = Vector(np.arange(at, at + len(part), dtype=np.int64))
        note(query.take("s", batch, len(part)))
        if r.random() < 0.3:
            state, query = query.dump(), _fresh(catalog)
            query.load(state)
    if timed:
        note(query.advance("s", 2**62))
    return found


def _fresh(catalog: Catalog) -> StandingEvaluator:
    found = compile_query(catalog.alerts["q"].query, catalog)
    assert found is not None
    return found


def test_duckdb_finds_the_same() -> None:
    catalog = _catalog("windows")
    r = random.Random(SEED)
    rows = [(r.randint(0, 2), _value(r, 20.0)) for _ in range(500)]
    columns = {
        "k": Vector.from_list([k for k, _ in rows], Type.INT),
        "x": Vector.from_list([x for _, x in rows], Type.DOUBLE),
        "ts": Vector(np.arange(len(rows), dtype=np.int64) * 30_000_000),
    }
    stream, query = catalog.streams["s"], catalog.alerts["q"].query
    assert isinstance(query, WindowGroupBy)
    recording = Recording(stream, columns, np.zeros(len(rows), np.bool_), {}, 0, None, (len(rows),))
    found = run_query(with_group_keys(query), catalog, {recording.stream.name: recording}).rows
    verdict = compare_windowed_groups("q", query, {"s": recording}, found.columns)
    assert verdict.same and verdict.alarms > 10


def test_their_memory_is_bounded_without_a_rate() -> None:
    catalog = catalog_of(
        "CREATE STREAM s (k INT KEY, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
        " WITH (keys = 2, max_stall = '1 hour', max_ahead = '0');"
        "CREATE ALERT q AS SELECT window_end, k, approx_quantile(x, 0.9) AS q"
        " FROM TUMBLE(s, ts, INTERVAL '1' HOUR) GROUP BY window_end, k;"
        "CREATE STREAM t (k INT, x DOUBLE);"
        "CREATE ALERT r AS SELECT k, approx_quantile(x, 0.9) AS q FROM t WHERE k BETWEEN 1 AND 2 GROUP BY k;"
    )
    numbers = 2 * 64 * (1024 + 41) + 1 + 1  # and NULL
    memory = explain(catalog, "q").memory
    assert memory.bound == 2 * (2 + 2 * numbers)
    assert "values of s.bins of x" in memory.formula
    assert explain(catalog, "r").memory.verdict == "bounded"
