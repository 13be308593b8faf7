"""Dense order and temporal constraints: each operation on tuples is the same operation on points.

The points are multiples of 1/2, or integers for relations over the integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from tests.oracle.constraints.grid_points import SCALE, Mask, axis, evaluated, grid, projected
from tests.oracle.constraints.random_constraints import condition, conjunction
from tests.oracle.random_cases import SEED, cases

from tamis.constraints import Relation
from tamis.errors import RefusedError

KINDS = [("dense", "real"), ("dense", "integer"), ("temporal", "real"), ("temporal", "integer")]
CASES = cases(1 / 320)


def steps(numbers: str, finest: int) -> int:
    return finest if numbers == "real" else 1


def parsed(text: str, names: Sequence[str], theory: str, numbers: str) -> Relation:
    return Relation.parse(text, names, theory=theory, numbers=numbers)


def check(found: Relation, points: Mapping[str, np.ndarray], expected: Mask, random: Random) -> None:
    """The relation's text, its text after another parse, and some memberships are as expected."""
    theory, numbers = found.theory.name, str(found.theory.numbers)
    text = found.text()
    assert np.array_equal(evaluated(text, points), expected), text
    assert parsed(text, found.variables, theory, numbers).text() == text
    names = list(points)
    for _ in range(3):
        index = tuple(random.randrange(size) for size in expected.shape)
        values = {
            name: Fraction(int(points[name].ravel()[at]), SCALE)
            for name, at in zip(names, index, strict=True)
        }
        assert found.contains(values) == expected[index], (text, values)
        if numbers == "integer" and values:
            name = random.choice(names)
            assert not found.contains({**values, name: values[name] + Fraction(1, 2)})


@pytest.mark.parametrize(("theory", "numbers"), KINDS)
def test_operations_on_one_set_of_variables(theory: str, numbers: str) -> None:
    """Parse, select, union, difference and rename: about 400,000 memberships each."""
    random = Random(f"{SEED} {theory} {numbers}")
    points = grid({name: axis(-5, 5, steps(numbers, 2)) for name in "xy"})
    for _ in range(CASES):
        one, two = (condition(random, "xy", theory) for _ in range(2))
        first, second = (parsed(text, ["x", "y"], theory, numbers) for text in (one, two))
        in_one, in_two = evaluated(one, points), evaluated(two, points)
        check(first, points, in_one, random)
        check(first.select(two), points, in_one & in_two, random)
        check(first.union(second), points, in_one | in_two, random)
        check(first.difference(second), points, in_one & ~in_two, random)
        check(first.disjoint(), points, in_one, random)
        check(first.rename({"x": "y", "y": "x"}), points, in_one.T, random)
        assert first.implies(second) <= (not (in_one & ~in_two).any())


@pytest.mark.parametrize("theory", ["dense", "temporal"])
def test_constants_with_different_denominators(theory: str) -> None:
    """Halves, thirds and quarters together, at points that are multiples of 1/12."""
    random = Random(f"{SEED} denominators {theory}")
    points = grid({name: axis(-4, 4, 12) for name in "xy"})
    for _ in range(CASES):
        one, two = (conjunction(random, "xy", theory, denominators=(1, 2, 3, 4)) for _ in range(2))
        first, second = (parsed(text, ["x", "y"], theory, "real") for text in (one, two))
        in_one, in_two = evaluated(one, points), evaluated(two, points)
        check(first.select(two), points, in_one & in_two, random)
        check(first.difference(second), points, in_one & ~in_two, random)
        if not second.empty():
            assert first.implies(first.union(second)) and second.implies(second)


@pytest.mark.parametrize(("theory", "numbers"), KINDS)
def test_join(theory: str, numbers: str) -> None:
    random = Random(f"{SEED} join {theory} {numbers}")
    points = grid({name: axis(-4, 4, steps(numbers, 2)) for name in "xyz"})
    for _ in range(CASES):
        one, two = condition(random, "xy", theory, 2), condition(random, "yz", theory, 2)
        found = parsed(one, ["x", "y"], theory, numbers).join(parsed(two, ["z", "y"], theory, numbers))
        check(found, points, evaluated(one, points) & evaluated(two, points), random)


@pytest.mark.parametrize(("theory", "numbers"), KINDS)
@pytest.mark.parametrize("kept", ["xy", "zx", "z", ""])
def test_projection(theory: str, numbers: str, kept: str) -> None:
    random = Random(f"{SEED} project {theory} {numbers} {kept}")
    dropped = 3 - len(kept)
    # Dropped variables need a finer grid and a wider one (see `grid_points`).
    fine = axis(-4 - 4 * dropped, 4 + 4 * dropped, steps(numbers, {1: 4, 2: 6, 3: 4}[dropped]))
    coarse = axis(-4, 4, steps(numbers, 2))
    fields = {name: coarse if name in kept else fine for name in "xyz"}
    if dropped == 3:
        fields = dict.fromkeys("xyz", axis(-7, 7, steps(numbers, 4)))
    points = grid(fields)
    for _ in range(CASES if dropped == 1 else CASES // 5):
        text = condition(random, "xyz", theory)
        whole = parsed(text, ["x", "y", "z"], theory, numbers)
        expected = projected(evaluated(text, points), "xyz", kept)
        try:
            found = whole.project(list(kept))
        except RefusedError:
            if (theory, numbers) != ("dense", "integer"):
                raise
            continue
        check(found, grid({name: coarse for name in kept}), expected, random)


@pytest.mark.parametrize(("theory", "numbers"), KINDS)
def test_equal_canonical_forms_are_equal_sets_of_points(theory: str, numbers: str) -> None:
    """Goldin-1997, theorem 1. The grid has points on both sides of every tightest bound: those are multiples
    of 1/2 of at most 2 * 3, and a point with two such differences takes multiples of 1/6.
    """
    random = Random(f"{SEED} canonical {theory} {numbers}")
    points = grid({name: axis(-14, 14, steps(numbers, 6)) for name in "xy"})
    forms: dict[bytes, object] = {}
    sets: dict[object, bytes] = {}
    for _ in range(10 * CASES):
        # The first part says that x and y are numbers: x = y alone doesn't.
        text = f"(x < y OR TRUE) AND {conjunction(random, 'xy', theory)}"
        tuples = parsed(text, ["x", "y"], theory, numbers).tuples
        mask = np.packbits(evaluated(text, points)).tobytes()
        form = tuples[0] if tuples else None
        assert forms.setdefault(mask, form) == form, text
        assert sets.setdefault(form, mask) == mask, text
    assert len(forms) > CASES


@pytest.mark.parametrize(("theory", "numbers"), KINDS)
def test_differences_of_tuples_are_disjoint(theory: str, numbers: str) -> None:
    random = Random(f"{SEED} disjoint {theory} {numbers}")
    names = ["x", "y", "z"]
    points = grid({name: axis(-4, 4, steps(numbers, 2)) for name in names})
    several = 0
    for _ in range(CASES):
        one = parsed(conjunction(random, names, theory, 3), names, theory, numbers)
        two = parsed(condition(random, names, theory), names, theory, numbers)
        for found in (one.difference(two), two.disjoint()):
            total = np.zeros([len(next(iter(points.values())).ravel())] * 3, dtype=int)
            for each in found.tuples:
                total += evaluated(Relation(names, found.theory, [each]).text(), points)
            assert total.max(initial=0) <= 1, found.text()
            several += len(found.tuples) > 1
    assert several > CASES // 2


def test_refused_projections_tell_points_of_one_order_apart() -> None:
    """Dense order over the integers refuses a projection only if its bounds depend on a distance."""
    random = Random(SEED)
    refused = 0
    for _ in range(CASES):
        text = f"x < z AND z < y AND {conjunction(random, 'xyz', 'dense', 2)}"
        try:
            parsed(text, ["x", "y", "z"], "dense", "integer").project(["x", "y"])
        except RefusedError:
            refused += 1
            exact = parsed(text, ["x", "y", "z"], "temporal", "integer").project(["x", "y"]).text()
            assert "x - y" in exact
    assert refused > CASES // 20
