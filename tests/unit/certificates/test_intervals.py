"""Intervals enclose every exact and every computed result."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from tamis.certificates.interval_arithmetic import intervals as iv
from tamis.certificates.interval_arithmetic.intervals import Interval

Ends = tuple[float, float]
COUNT = 3000


def random_ends(rng: random.Random) -> Ends:
    def end() -> float:
        kind = rng.random()
        if kind < 0.2:
            return float(rng.randint(-3, 3))
        if kind < 0.3:
            return float(rng.choice([-1, 1]) * 10.0 ** rng.randint(-320, 300))
        return rng.uniform(-10, 10)

    lo, hi = sorted((end(), end()))
    return lo, hi


def inside(ends: Ends, rng: random.Random) -> float:
    lo, hi = ends
    value = rng.choice([lo, hi, lo + rng.random() * (hi - lo)])
    return min(max(value, lo), hi)


def together(ends: list[Ends]) -> Interval:
    return Interval(np.array([lo for lo, _ in ends]), np.array([hi for _, hi in ends]))


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        (iv.add, lambda x, y: x + y),
        (iv.sub, lambda x, y: x - y),
        (iv.mul, lambda x, y: x * y),
    ],
)
def test_exact_results_are_enclosed(
    rule: Callable[[Interval, Interval], Interval], exact: Callable[[Fraction, Fraction], Fraction]
) -> None:
    rng = random.Random(1)
    first, second = ([random_ends(rng) for _ in range(COUNT)] for _ in range(2))
    with np.errstate(all="ignore"):
        out = rule(together(first), together(second))
    for i in range(COUNT):
        x, y = inside(first[i], rng), inside(second[i], rng)
        true = exact(Fraction(x), Fraction(y))
        lo, hi = float(out.lo[i]), float(out.hi[i])
        assert lo == -math.inf or Fraction(lo) <= true, (first[i], second[i], x, y)
        assert hi == math.inf or true <= Fraction(hi), (first[i], second[i], x, y)


@pytest.mark.parametrize(
    ("rule", "computed", "rigorous", "domain"),
    [
        (iv.exp, math.exp, arb.exp, lambda x: x < 709),
        (iv.ln, math.log, arb.log, lambda x: x > 0),
        (iv.sqrt, math.sqrt, arb.sqrt, lambda x: x >= 0),
        (iv.absolute, abs, abs, lambda x: True),
        (iv.square, lambda x: x * x, lambda x: x * x, lambda x: abs(x) < 1e150),
        (lambda a: iv.power_int(a, 3), lambda x: x**3, lambda x: x**3, lambda x: abs(x) < 1e100),
        (lambda a: iv.power_int(a, 4), lambda x: x**4, lambda x: x**4, lambda x: abs(x) < 1e70),
        (lambda a: iv.power_int(a, -2), lambda x: x**-2, lambda x: x**-2, lambda x: 1e-100 < abs(x) < 1e100),
        (iv.recip, lambda x: 1 / x, lambda x: 1 / x, lambda x: abs(x) > 1e-300),
        (
            lambda a: iv.power(a, iv.point(1.75)),
            lambda x: x**1.75,
            lambda x: x ** arb("1.75"),
            lambda x: 0 < x < 1e100,
        ),
        (
            lambda a: iv.power(a, iv.span(-2.5, 0.5)),
            lambda x: x**-1.25,
            lambda x: x ** arb("-1.25"),
            lambda x: 1e-50 < x < 1e100,
        ),
    ],
)
def test_results_are_enclosed(
    rule: Callable[[Interval], Interval],
    computed: Callable[[float], float],
    rigorous: Callable[[arb], arb],
    domain: Callable[[float], bool],
) -> None:
    rng = random.Random(2)
    cases = [random_ends(rng) for _ in range(COUNT)]
    with np.errstate(all="ignore"):
        out = rule(together(cases))
    tried = 0
    for ends, lo, hi in zip(cases, out.lo, out.hi, strict=True):
        x = inside(ends, rng)
        if domain(x):
            tried += 1
            assert lo <= computed(x) <= hi, (ends, x)
            true = rigorous(arb(x))
            assert arb(float(lo)) <= true or true.contains(arb(float(lo))), (ends, x)
            assert true <= arb(float(hi)) or true.contains(arb(float(hi))) or hi == math.inf, (ends, x)
    assert tried > 300


def test_whole_numbers_stay_exact() -> None:
    three = iv.span(1.0, 3.0)
    assert iv.add(three, three) == iv.span(2.0, 6.0)
    assert iv.sub(three, iv.point(1.0)) == iv.span(0.0, 2.0)
    assert iv.mul(three, iv.span(-2.0, 4.0)) == iv.span(-6.0, 12.0)
    assert iv.power_int(iv.span(-3.0, 2.0), 3) == iv.span(-27.0, 8.0)
    assert iv.power_int(iv.span(-3.0, 2.0), 2) == iv.span(0.0, 9.0)
