"""Every way of evaluating a predicate keeps one contract: the same rows, NULLs and unbounded ranges too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.predicates.evaluators import EVALUATORS, Evaluator, Paper
from benchmarks.predicates.generators import covering, items, names, of_bounds, predicate

from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

Make = Callable[[Predicate], Evaluator]


@pytest.mark.parametrize("make", EVALUATORS.values(), ids=EVALUATORS)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
def test_all_find_the_same(make: Make, dimensions: int) -> None:
    r = np.random.default_rng(dimensions)
    columns = items(r, dimensions, 2_000)
    for name in columns:  # on the ends, too, and NULL
        columns[name] = np.where(r.random(2_000) < 0.5, np.round(columns[name] / 5) * 5, columns[name])
        columns[name][r.random(2_000) < 0.1] = np.nan
    for boxes in (1, 10, 11, 90, 300):
        lower = r.integers(0, 18, (boxes, dimensions)).astype(np.float64) * 5
        upper = lower + r.integers(0, 4, (boxes, dimensions)).astype(np.float64) * 5
        lower[r.random(lower.shape) < 0.2] = np.nan
        points = np.column_stack([columns[name] for name in names(dimensions)])[:, None, :]
        inside = (np.isnan(lower) | ((points >= lower) & (points <= upper))).all(axis=2)
        found = make(of_bounds(lower, upper)).any(columns)
        assert np.array_equal(found, np.logical_or.reduce(inside, axis=1)), boxes


@pytest.mark.parametrize("make", EVALUATORS.values(), ids=EVALUATORS)
def test_what_is_special(make: Make) -> None:
    columns = {"d00": np.array([1.0, -0.0, np.nan, 1e6, -np.inf]), "d01": np.array([np.nan, 0, 2, 3, 4])}
    for sql, holds in {
        "d00 IS NULL": [False, False, True, False, True],
        "d00 IS NOT NULL": [True, True, False, True, False],
        "d00 = 0 OR d01 IS NULL": [True, True, False, False, False],
        "d00 > 1 OR d01 > 3": [False, False, False, True, True],
        "FALSE": [False] * 5,
    }.items():
        assert make(parse(sql)).any(columns).tolist() == holds, sql
    whole = covering(np.random.default_rng(1), 2, 7, 1.0, 0.5)
    assert make(whole).any(items(np.random.default_rng(2), 2, 100)).all()


def test_a_limit_of_depth_leaves_no_row_out() -> None:
    r = np.random.default_rng(7)
    given = predicate(r, 3, 400, normal=True)
    columns = items(r, 3, 3_000)
    exact = Paper(given, short_circuit=True).any(columns)
    counts = []
    for levels in range(1, 5):
        found = Paper(given, short_circuit=True, levels=levels).any(columns)
        assert (exact <= found).all()
        counts.append(int(found.sum()))
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1] == exact.sum()
