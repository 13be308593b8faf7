"""Columns of SELECT in which rounding decides: `verify` calls no right row wrong, and finds wrong rows."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.operators import run_query
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.query.model import WindowGroupBy
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys

STREAM = "CREATE STREAM s (ts TIMESTAMP, y DOUBLE, n INT, WATERMARK FOR ts AS ts);"
# Each has a step, a choice or a difference, and its values have an error.
COLUMNS = (
    "round(avg(y), 2)",
    "round(sum(y), 1)",
    "floor(sum(y))",
    "ceil(avg(y) * 10)",
    "trunc(sum(y) / count(*))",
    "CAST(sum(y) AS INT)",
    "CAST(avg(y) AS BIGINT) * 2",
    "sign(sum(y) - 0.3)",
    "sum(y) - 0.3",
    "avg(y) - avg(n) / 10",
    "mod(sum(y), 0.1)",
    "mod(sum(y) * 10, 1)",
    "CASE WHEN avg(y) > 0.1 THEN 1 ELSE 0 END",
    "CASE WHEN sum(y) >= 0.6 THEN 'high' ELSE 'low' END",
    "CAST(avg(y) AS VARCHAR)",
    "floor(stddev_pop(y) * 10)",
    "round(median(y), 1)",
    "round(var_samp(y), 2)",
    "1 / (sum(y) - 0.3)",
    "sqrt(sum(y) - 0.3)",
    "avg(y) > 0.2",
    "coalesce(floor(avg(y) * 10), -1)",
)
EXACT = ("count(*)", "max(y)", "sum(n)", "floor(max(y) * 10)", "round(min(y), 1)", "mod(sum(n), 7)")


@pytest.mark.parametrize("times", also_long(300))
def test_rounding_of_selected_values(times: int) -> None:
    r = random.Random(f"{SEED} rounded values")
    seen: Counter[str] = Counter()
    for _ in range(cases(0.001) * times):
        columns = [*r.sample(COLUMNS, 4), r.choice(EXACT)]
        shown = ", ".join(f"{one} AS c{i}" for i, one in enumerate(columns))
        catalog = catalog_of(
            f"{STREAM} CREATE ALERT q AS SELECT window_end, {shown}"
            " FROM TUMBLE(s, ts, INTERVAL '1' SECOND) GROUP BY window_end;"
        )
        count, tens = r.randint(3, 40), r.choice((10, 10, 20, 100))
        recording = Recording(
            catalog.streams["s"],
            {
                "ts": Vector(np.sort(np.array([r.randrange(12) * 500_000 for _ in range(count)], np.int64))),
                "y": Vector(np.array([r.randint(-3, 12) / tens for _ in range(count)])),
                "n": Vector(np.array([r.randint(-3, 12) for _ in range(count)], np.int64)),
            },
            np.zeros(count, np.bool_),
            {},
            0,
        )
        query = catalog.alerts["q"].query
        assert isinstance(query, WindowGroupBy)
        rows = run_query(with_group_keys(query), catalog, {recording.stream.name: recording}).rows
        verdict = compare_windowed_groups("q", query, {"s": recording}, rows.columns)
        assert (verdict.missed, verdict.extra) == (0, 0), (columns, recording.columns, verdict)
        seen["near"] += verdict.at_threshold > 0
        seen["sure"] += verdict.at_threshold < len(rows)
        # No rounding explains values that are wrong by a thousand.
        at = r.randrange(1, len(query.select))
        name, kind = f"v{at}", query.select[at].expr.type
        if kind.numeric and (vector := rows.columns[name]).null is None and _sure(columns[at - 1]):
            wrong = {**rows.columns, name: Vector(vector.data * (-1 if kind is Type.DOUBLE else 1) + 1_000)}
            found = compare_windowed_groups("q", query, {"s": recording}, wrong)
            least = len(rows) - verdict.at_threshold
            assert min(found.missed, found.extra) >= least, (columns, at, found)
            seen["found"] += least > 0
    assert min(seen[one] for one in ("near", "sure", "found")) > 3, seen


def _sure(column: str) -> bool:
    """True if rounding changes the value of a column by at most a step."""
    return not any(part in column for part in ("mod(sum(y)", "1 /", "sqrt", "CASE"))


@pytest.mark.parametrize(
    ("column", "values", "at_threshold"),
    [
        ("round(avg(y), 2)", [0.12, 0.13], 1),
        ("round(avg(y), 2)", [0.12, 0.14], 0),
        ("floor(sum(y))", [0.1, 0.2, 0.7], 1),
        ("floor(sum(y))", [0.1, 0.2, 0.8], 0),
        ("CASE WHEN sum(y) > 1 THEN 'a' ELSE 'b' END", [0.1, 0.2, 0.7], 1),
        ("avg(y)", [0.1, 0.2, 0.7], 0),
        ("avg(y) * 1.8 + 32", [0.1, 0.2, 0.7], 0),
        ("floor(max(y))", [0.1, 1.0], 0),
    ],
)
def test_rows_at_a_step_are_counted(column: str, values: list[float], at_threshold: int) -> None:
    exact = sum(map(Fraction, values), Fraction(0))
    catalog = catalog_of(
        f"{STREAM} CREATE ALERT q AS SELECT window_end, {column} AS c"
        " FROM TUMBLE(s, ts, INTERVAL '1' SECOND) GROUP BY window_end;"
    )
    count = len(values)
    recording = Recording(
        catalog.streams["s"],
        {
            "ts": Vector(np.arange(count)),
            "y": Vector(np.array(values)),
            "n": Vector(np.zeros(count, np.int64)),
        },
        np.zeros(count, np.bool_),
        {},
        0,
    )
    query = catalog.alerts["q"].query
    assert isinstance(query, WindowGroupBy)
    rows = run_query(with_group_keys(query), catalog, {recording.stream.name: recording}).rows
    verdict = compare_windowed_groups("q", query, {"s": recording}, rows.columns)
    assert (verdict.missed, verdict.extra, verdict.at_threshold) == (0, 0, at_threshold), (verdict, exact)
