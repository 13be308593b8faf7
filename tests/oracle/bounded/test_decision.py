"""Both ways of deciding what is bounded agree, and the closure is what brute force finds."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from tests.oracle.bounded.bounded_queries import query
from tests.oracle.bounded.totally_ordered import violation_by_derivation
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators.synopses.decide import violation
from tamis.plan.conjunction import Difference

# Each: attributes, largest offset, share of TAMIS_CASES. Offsets make derivation much longer.
SIZES = [(6, 0, 0.012), (7, 0, 0.001), (5, 2, 0.001)]


@pytest.mark.parametrize("times", also_long(350))
@pytest.mark.parametrize(("attributes", "offset", "share"), SIZES)
def test_the_polynomial_way_agrees_with_deriving_all_lto_queries(
    attributes: int, offset: int, share: float, times: int
) -> None:
    r = random.Random(SEED + attributes * 10 + offset)
    failing = 0
    for number in range(cases(share) * times):
        asked = query(
            r, most_attributes=attributes, largest_offset=offset, self_joins=number % 5 == 0, unequal=0.1
        )
        if number % 2:
            asked = replace(asked, projected=(), distinct=True)
        closure = asked.closure()
        if closure is None:
            continue
        quick = violation(asked, closure)
        slow = violation_by_derivation(asked, closure)
        assert (quick is None) == (slow is None), (SEED, number, asked, quick, slow)
        failing += quick is not None
    assert failing


def test_the_closure_is_what_all_solutions_show() -> None:
    """Every bound is attained by a solution, and none exceeds it, in a box large enough for both."""
    r = random.Random(SEED)
    for number in range(cases(0.008)):
        asked = query(r, most_attributes=3, largest_offset=2, largest_constant=2)
        asked = replace(asked, differences=(*asked.differences, *_box(asked.size)))
        closure = asked.closure()
        solutions = [
            (0, *values)
            for values in itertools.product(range(-4, 5), repeat=asked.size - 1)
            if _holds(asked.differences, (0, *values))
        ]
        assert (closure is None) == (not solutions), (SEED, number, asked)
        if closure is not None:
            for i, j in itertools.product(range(asked.size), repeat=2):
                most = max(one[i] - one[j] for one in solutions)
                assert closure.between(i, j) == most, (SEED, number, asked, i, j)
            found = closure.solution(near=r.randint(-9, 9))
            assert (0, *found.values()) in solutions, (SEED, number, asked)


def _box(size: int) -> list[Difference]:
    return [Difference(*ends, 4) for node in range(1, size) for ends in ((node, 0), (0, node))]


def _holds(differences: tuple[Difference, ...], values: tuple[int, ...]) -> bool:
    return all(values[one.left] - values[one.right] <= one.bound for one in differences)
