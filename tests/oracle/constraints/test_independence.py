"""Independent variables against slices on grids, and measures against exact integration."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from tests.oracle.constraints.sampled_relations import (
    Union,
    box,
    exact_measure,
    grid,
    inside,
    random_row,
    text_of,
)
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.constraints.independence.aggregation import aggregate
from tamis.constraints.independence.measures import measure
from tamis.constraints.independence.slices import Related, products, slice_at
from tamis.constraints.relation import Relation
from tamis.errors import RefusedError

# Constants are integers and coefficients 1, -1 or 2, so that all faces are between multiples of 1/4.
SCALE = 32
NAMES = "wxyz"
# Shares of the cases: linear tuples take longer.
THEORIES = {"dense": 1 / 800, "temporal": 1 / 800, "monotone": 1 / 800, "linear": 1 / 3200}


def random_union(r: random.Random, dimensions: int, theory: str, first: int) -> Union:
    """Parts in a cube: products, products in two halves, and others; the first variables are on one side."""
    found: Union = []
    for _ in range(r.randint(1, 3)):
        part = box(dimensions, 0, 2)
        kind = r.random()
        for _ in range(r.randint(1, 3)):
            row = random_row(r, dimensions, theory)
            sides = {index < first for index, value in enumerate(row[0]) if value}
            if kind < 0.4 or len(sides) == 1:
                part.append(row)
        found.append(part)
        if kind > 0.7:
            # A part in two halves, along a constraint that may be between both sides.
            coefficients, constant, strict = random_row(r, dimensions, theory)
            other = (tuple(-value for value in coefficients), -constant, not strict)
            found[-1:] = [[*part, (coefficients, constant, strict)], [*part, other]]
    return found


def different_slices(union: Union, dimensions: int, first: int, step: int) -> int:
    """The number of different slices at the points of a grid over the first variables."""
    ones, others = grid(first, 0, 2, step, SCALE), grid(dimensions - first, 0, 2, 1, SCALE)
    points = np.concatenate([np.repeat(ones, len(others), axis=0), np.tile(others, (len(ones), 1))], axis=1)
    found = inside(union, points, SCALE).reshape(len(ones), len(others))
    return len({row.tobytes() for row in found if row.any()})


@pytest.mark.parametrize("times", also_long(200))
@pytest.mark.parametrize("theory", THEORIES)
def test_variables_are_independent_if_a_finer_grid_has_no_more_slices(theory: str, times: int) -> None:
    r = random.Random(f"{SEED} {theory}")
    seen = {True: 0, False: 0}
    for _ in range(cases(THEORIES[theory]) * times):
        dimensions = r.choice((2, 2, 3))
        union = random_union(r, dimensions, theory, 1)
        names = list(NAMES[:dimensions])
        relation = Relation.parse(text_of(union, names), names, theory=theory)
        found = products(relation, names[:1])
        expected = different_slices(union, dimensions, 1, 4) == different_slices(union, dimensions, 1, 2)
        assert isinstance(found, Related) != expected, relation.text()
        seen[expected] += 1
        if isinstance(found, Related):
            assert not slice_at(relation, found.one).equivalent(slice_at(relation, found.other))
            continue
        points = grid(dimensions, 0, 2, 8, SCALE)
        for point, held in zip(points, inside(union, points, SCALE), strict=True):
            values = {name: Fraction(int(value), SCALE) for name, value in zip(names, point, strict=True)}
            outer = [p for p in found if p.points.contains({names[0]: values[names[0]]})]
            assert len(outer) < 2
            rest = {name: values[name] for name in names[1:]}
            assert any(p.slice.contains(rest) for p in outer) == held
    assert min(seen.values()) > 0


@pytest.mark.parametrize("times", also_long(200))
def test_two_variables_are_independent_of_others_if_a_finer_grid_has_no_more_slices(times: int) -> None:
    r = random.Random(SEED + 1)
    seen = {True: 0, False: 0}
    for _ in range(cases(1 / 2400) * times):
        dimensions = r.choice((3, 4))
        union = random_union(r, dimensions, "dense", 2)
        names = list(NAMES[:dimensions])
        relation = Relation.parse(text_of(union, names), names)
        # Between two integers there are at least three places, for two variables in either order.
        coarse, fine = (_slices_of_two(union, dimensions, step) for step in (8, 4))
        assert isinstance(products(relation, names[:2]), Related) != (coarse == fine), relation.text()
        assert isinstance(products(relation, names[2:]), Related) != (coarse == fine), relation.text()
        seen[coarse == fine] += 1
    assert min(seen.values()) > 0


def _slices_of_two(union: Union, dimensions: int, step: int) -> int:
    ones, others = grid(2, 0, 2, step, SCALE), grid(dimensions - 2, 0, 2, 2, SCALE)
    points = np.concatenate([np.repeat(ones, len(others), axis=0), np.tile(others, (len(ones), 1))], axis=1)
    found = inside(union, points, SCALE).reshape(len(ones), len(others))
    return len({row.tobytes() for row in found if row.any()})


@pytest.mark.parametrize("times", also_long(200))
@pytest.mark.parametrize("theory", THEORIES)
def test_measures_are_integrals(theory: str, times: int) -> None:
    r = random.Random(f"{SEED} {theory} measures")
    positive = 0
    for _ in range(cases(THEORIES[theory]) * times):
        dimensions = r.choice((1, 2, 2, 2, 3))
        union = random_union(r, dimensions, theory, dimensions)[: 3 if dimensions < 3 else 1]
        names = list(NAMES[:dimensions])
        found = measure(Relation.parse(text_of(union, names), names, theory=theory))
        assert found == exact_measure(union, dimensions)
        positive += found > 0
    assert positive > cases(THEORIES[theory]) / 4


@pytest.mark.parametrize("times", also_long(200))
@pytest.mark.parametrize("theory", THEORIES)
def test_an_aggregate_has_the_measure_of_each_slice(theory: str, times: int) -> None:
    r = random.Random(f"{SEED} {theory} aggregates")
    done = 0
    for _ in range(cases(THEORIES[theory] / 3) * times):
        dimensions = r.choice((2, 2, 3))
        union = random_union(r, dimensions, theory, 1)
        names = list(NAMES[:dimensions])
        relation = Relation.parse(text_of(union, names), names, theory=theory)
        if isinstance(products(relation, names[:1]), Related):
            with pytest.raises(RefusedError, match="infinitely many values"):
                aggregate(relation, names[:1], "size")
            continue
        done += 1
        found = aggregate(relation, names[:1], "size")
        assert found.variables == (names[0], "size")
        for place in range(-1, 18):
            value = Fraction(place, 8)
            section: Union = [
                [(row[1:], constant - row[0] * value, strict) for row, constant, strict in part]
                for part in union
            ]
            expected = exact_measure(section, dimensions - 1)
            there = relation.select(f"{names[0]} = {value}")
            assert found.contains({names[0]: value, "size": expected}) != there.empty()
            assert not found.contains({names[0]: value, "size": expected + 1})
    assert done > 0


def test_symbols_are_independent_of_what_no_comparison_links_them_to() -> None:
    relation = Relation.parse(
        "n = 'Bob' AND 1 < t AND t < 2 AND 0 < x AND x < 3 OR n = 'Ann' AND t > 5 AND x > 1 AND x < 2"
        " OR n <> 'Bob' AND n <> 'Ann' AND t = 0 AND x = 1 AND m = n"
        " OR n = 'Joe' AND m = 'Joe' AND t = 0 AND x = 1",
        ["n", "m", "t", "x"],
    )
    assert isinstance(products(relation, ["n"]), Related)
    assert isinstance(products(relation, ["m"]), Related)
    assert not isinstance(products(relation, ["n", "m"]), Related)
    assert not isinstance(products(relation, ["x"]), Related)
    lengths = aggregate(relation, ["n", "m", "t"], "length")
    bob: dict[str, int | Fraction | str] = {"n": "Bob", "m": "any", "t": Fraction(3, 2)}
    assert lengths.contains({**bob, "length": 3}) and not lengths.contains({**bob, "length": 1})
    assert lengths.contains({"n": "Eve", "m": "Eve", "t": 0, "length": 0})
    assert lengths.contains({"n": "Joe", "m": "Joe", "t": 0, "length": 0})
    assert not lengths.project(["n", "m"]).contains({"n": "Eve", "m": "Joe"})
