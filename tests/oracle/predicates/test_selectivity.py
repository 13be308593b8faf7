"""The measure of unions of boxes, against the sum over all cells of the grid."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Type
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate
from tamis.predicates.selectivity import BUDGET, by_parts, measure, selectivity
from tamis.predicates.sketch import Observed


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_unions_measure_what_the_cells_add_up_to(dimensions: int) -> None:
    for case in range(cases(1 / 40 / 4)):
        r = np.random.default_rng([SEED, dimensions, case])
        size, boxes = int(r.integers(2, 7)), int(r.integers(1, 12))
        ends = np.sort([r.choice(size, 2, replace=False) for _ in range(boxes * dimensions)], axis=1).reshape(
            boxes, dimensions, 2
        )
        lower, upper = ends[..., 0].astype(np.int32), ends[..., 1].astype(np.int32)
        weights = r.random((dimensions, size - 1)) * (r.random((dimensions, size - 1)) < 0.8)
        cumulative = np.concatenate([np.zeros((dimensions, 1)), np.cumsum(weights, axis=1)], axis=1)
        covered = np.zeros((size - 1,) * dimensions, np.bool_)
        for lo, hi in zip(lower, upper, strict=True):
            covered[tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))] = True
        cell = weights[0]
        for other in weights[1:]:
            cell = np.multiply.outer(cell, other)
        truth = float(cell[covered].sum())
        found = {"as it is": measure(lower, upper, cumulative)}
        found["in any order"] = by_parts(lower, upper, cumulative, BUDGET)
        for way, weight in found.items():
            assert weight == pytest.approx(truth, rel=1e-9, abs=1e-12), (way, case)
        for budget in (0, 1, 10, 30):
            assert measure(lower, upper, cumulative, budget) >= truth * (1 - 1e-9), (budget, case)


def test_selectivity_is_the_share_of_independent_values() -> None:
    r = random.Random(SEED)
    names = ("a", "b", "c")
    types = dict.fromkeys(names, Type.DOUBLE)
    for _ in range(30):
        seen = {name: sorted(float(r.randint(0, 6)) for _ in range(8)) for name in names}
        null = {name: r.choice((0.0, 0.25)) for name in names}
        parts = []
        for _ in range(r.randint(1, 3)):
            a, b, c, d = (r.choice(names) for _ in range(4))
            op, x, y = r.choice(("<", ">=", "=")), r.randint(0, 6), r.randint(0, 6)
            parts.append(f"{a} {op} {x} AND {b} IS NOT NULL OR {c} IS NULL AND {d} <> {y}")
        sql = " OR ".join(f"({part})" for part in parts)
        predicate: Predicate = parse(sql, types)
        # Every combination of the values, NULL as often as it is.
        axes = [
            np.array([*seen[n] * (3 if null[n] else 1), *([np.nan] * (8 if null[n] else 0))]) for n in names
        ]
        grid = [g.ravel() for g in np.meshgrid(*axes, indexing="ij")]
        truth = float(predicate.holds(dict(zip(names, grid, strict=True))).mean())
        found = selectivity(predicate, {n: Observed(seen[n], null[n]) for n in names})
        assert found == pytest.approx(truth), sql
