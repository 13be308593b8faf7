"""Comparisons of rounded numbers and those of the numbers themselves, over numbers at the steps."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from tests.oracle.expressions.expression_trees import DOUBLES, meaning
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.double_order import double_at, number_of
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type
from tamis.expressions.step_conditions import on_argument

X = Column("a", "x", Type.DOUBLE)
RESULTS = {"to_int": Type.INT, "to_bigint": Type.BIGINT, "sign": Type.INT}


def holds(condition: Expr, x: float | None) -> bool:
    return meaning(condition, {("a", "x"): x}) is True


def points(r: random.Random, constant: float) -> list[float | None]:
    """Numbers whose result is near the constant, at the ends of the types, and anywhere."""
    near = [constant + d for d in (-1.5, -1, -0.6, -0.5, -0.05, 0.0, 0.05, 0.5, 0.6, 1, 1.5, 5, -5)]
    near += [*DOUBLES, 2.0**31, -(2.0**31) - 0.5, r.uniform(-10, 10), r.uniform(-1e300, 1e300)]
    numbers = [number_of(float(x)) + d for x in near for d in (-1, 0, 1)]
    return [None, *(x for x in map(double_at, numbers) if math.isfinite(x))]


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "round", "sign", "to_int", "to_bigint"])
def test_the_argument_is_compared_as_the_result(op: str) -> None:
    r = random.Random(f"{SEED} {op}")
    for _ in range(cases(1 / 600)):
        constant = r.choice((r.randint(-4, 4), round(r.uniform(-3, 3), 1), r.choice(DOUBLES), 2**31 - 1, 2.5))
        digits = (Literal(r.randint(0, 3), Type.INT),) if op == "round" and r.random() < 0.7 else ()
        step = Call(op, (X, *digits), RESULTS.get(op, Type.DOUBLE))
        sides: tuple[Expr, ...] = (
            step,
            Literal(constant, Type.INT if isinstance(constant, int) else Type.DOUBLE),
        )
        turned = sides[::-1] if r.random() < 0.3 else sides
        condition = Call(r.choice(COMPARISONS), turned, Type.BOOLEAN)
        found, follows = on_argument(condition), on_argument(condition, exact=True)
        if abs(constant) > 1e200 and digits:
            assert found is None
            continue
        assert found is not None and follows is not None
        for x in points(r, float(constant)):
            assert holds(found, x) == holds(condition, x), (condition, found, x)
            assert holds(follows, x) or not holds(condition, x)


def test_a_number_between_two_doubles_is_not_lost() -> None:
    """3 is the least number above 2.5 of which the nearest whole number is not 2; DOUBLEs leave a gap."""
    condition = Call(">=", (Call("to_int", (X,), Type.INT), Literal(3, Type.INT)), Type.BOOLEAN)
    found, follows = on_argument(condition), on_argument(condition, exact=True)
    after = float(np.nextafter(2.5, 3))
    assert found is not None and follows is not None
    assert holds(found, after) and not holds(found, 2.5)
    assert holds(follows, 2.5) and not holds(follows, float(np.nextafter(2.5, 2)))


@pytest.mark.parametrize(
    "condition",
    [
        Call(
            ">",
            (Call("round", (X, Literal(-2, Type.INT)), Type.DOUBLE), Literal(3.0, Type.DOUBLE)),
            Type.BOOLEAN,
        ),
        Call(">", (Call("floor", (X,), Type.DOUBLE), Literal(None, Type.DOUBLE)), Type.BOOLEAN),
        Call(
            ">",
            (Call("floor", (Column("a", "n", Type.INT),), Type.DOUBLE), Literal(3.0, Type.DOUBLE)),
            Type.BOOLEAN,
        ),
        Call(">", (Call("abs", (X,), Type.DOUBLE), Literal(3.0, Type.DOUBLE)), Type.BOOLEAN),
        Call(">", (Call("floor", (X,), Type.DOUBLE), X), Type.BOOLEAN),
    ],
)
def test_other_conditions_have_no_such_form(condition: Expr) -> None:
    assert on_argument(condition) is None
