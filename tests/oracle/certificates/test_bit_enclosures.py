"""Enclosures of the operators of bits: they have every value of small and of large numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.oracle.expressions.text_and_time import computed
from tests.oracle.random_cases import SEED, cases

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.derivatives import Derivatives, PossibleNulls
from tamis.certificates.interval_arithmetic.step_derivatives import bits
from tamis.expressions.functions.bits import OPERATORS as BITS
from tamis.expressions.nodes import Column, Type
from tamis.expressions.signatures import call

X, Y = Column("a", "x", Type.BIGINT), Column("a", "y", Type.BIGINT)


def bounds(r: random.Random) -> tuple[int, int]:
    size = r.choice((3, 12, 2**31, 2**53, 2**62))
    # Numbers that are DOUBLEs, since the ends of an enclosure are.
    low, high = (int(float(r.randint(-size, size))) for _ in range(2))
    return min(low, high), max(low, high)


@pytest.mark.parametrize("op", BITS)
def test_every_value_is_enclosed(op: str) -> None:
    r = random.Random(f"{SEED} {op}")
    expr = call(op, X) if op == "~" else call(op, X, Y)
    for _ in range(cases(1 / 40)):
        a, b = bounds(r), bounds(r)
        args = tuple(Derivatives(iv.span(float(low), float(high))) for low, high in (a, b))[: len(expr.args)]
        found = bits(expr, args, PossibleNulls()).value
        ends = [(x, y) for x in a for y in b]
        inner = [(r.randint(*a), r.randint(*b)) for _ in range(60)]
        if op in ("<<", ">>"):
            inner += [(x, y % 66 - 1) for x, y in inner if b[0] <= y % 66 - 1 <= b[1]]
        for x, y in ends + inner:
            value = computed(op, [x, y])
            if value is not None:
                assert np.all(found.lo <= value) and np.all(value <= found.hi), (op, a, b, x, y, value)
