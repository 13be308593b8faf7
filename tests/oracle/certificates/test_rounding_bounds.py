"""Bounds of rounding, exact decisions and exact sums of products, against fractions by Python."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.oracle.certificates.exact_evaluation import NEAREST
from tests.oracle.expressions.expression_trees import half_away
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.exact.conditions import FALSE, NULL, TRUE, outcomes
from tamis.expressions.exact.polynomials import polynomial, rounded
from tamis.expressions.exact.rounding import bound, certain
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.expressions.vectors import Vector

NAMES = ("x", "y", "z", "w")
COLUMNS = [Column("ab"[i % 2], name, Type.DOUBLE) for i, name in enumerate(NAMES)]
ROWS = 40
SCALES = (1e-300, 1e-20, 1e-9, 0.1, 1.0, 3.0, 1e3, 1.7e9, 1e17, 1.7e18, 1e80)


def tree(r: random.Random, depth: int, ops: tuple[str, ...]) -> Expr:
    if depth == 0 or r.random() < 0.2:
        leaves: list[Expr] = [*COLUMNS, Literal(r.choice((0.1, 3.0, 12.0)), Type.DOUBLE)]
        return r.choice(leaves)
    op = r.choice(ops)
    if op in ("neg", "abs", "floor", "ceil", "trunc", "round", "sign", "to_bigint"):
        inner = tree(r, depth - 1, ops)
        if op in ("trunc", "round", "to_bigint") and inner.type is not Type.DOUBLE:
            op = "floor"  # these take only DOUBLEs
        digits = r.choice(((), (Literal(1, Type.INT),), (Literal(-2, Type.INT),))) if op == "round" else ()
        return call(op, inner, *digits)
    return call(op, tree(r, depth - 1, ops), tree(r, depth - 1, ops))


def readings(r: random.Random) -> dict[tuple[str, str], Vector]:
    """Equal numbers, neighbours, and numbers of very different size."""
    some = [r.choice(SCALES) * r.choice((1, -1, 1.1, 0.7)) for _ in range(3)]
    some += [float(np.nextafter(some[0], np.inf)), -some[1], 0.0 if r.random() < 0.2 else some[2]]
    return {(c.alias, c.name): Vector(np.array([r.choice(some) for _ in range(ROWS)])) for c in COLUMNS}


def exactly(expr: Expr, row: Mapping[Column, Fraction]) -> Fraction | None:
    if isinstance(expr, Column):
        return row[expr]
    if isinstance(expr, Literal):
        assert isinstance(expr.value, (int, float))
        return Fraction(expr.value)
    args = [exactly(arg, row) for arg in expr.args]
    if None in args:
        return None
    a, b = args[0], args[-1]
    assert a is not None and b is not None
    match expr.op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b if b else None
        case "neg":
            return -a
        case "abs":
            return abs(a)
        case "greatest":
            return max(a, b)
        case "floor" | "ceil" | "trunc":
            return Fraction(NEAREST[expr.op](a))
        case "sign":
            return Fraction((a > 0) - (a < 0))
        case "to_bigint":
            return Fraction(round(a)) if -(2**63) <= round(a) < 2**63 else None
        case "round":
            if len(args) == 1:
                return Fraction(math.floor(abs(a) + Fraction(1, 2)) * (1 if a > 0 else -1))
            return Fraction(half_away(float(a), int(b))) if abs(a) < 2**1023 else None
        case "mod":
            return a - b * math.trunc(a / b) if b else None
        case _:
            return min(a, b)


ARITHMETIC = ("+", "-", "*", "/", "neg", "abs", "greatest", "least", "+", "-", "*")
ROUNDING = ("floor", "ceil", "trunc", "round", "round", "sign", "to_bigint", "mod")


@pytest.mark.parametrize("chunk", range(4))
def test_bounds_and_decisions(chunk: int) -> None:
    r = random.Random(SEED * 31 + chunk)
    decided = at_threshold = differ = 0
    ops = ARITHMETIC if chunk < 2 else (*ARITHMETIC, *ROUNDING)
    for _ in range(cases(1 / 120)):
        expr = tree(r, r.randint(1, 4), ops)
        given = readings(r)
        found = evaluate(expr, given, ROWS)
        limits = bound(expr)
        error = None if limits is None else evaluate(limits, given, ROWS)
        threshold = float(found.data[0]) if found.null is None or not found.null[0] else 1.0
        condition = call(r.choice((">", ">=", "<", "=", "!=")), expr, Literal(threshold, Type.DOUBLE))
        sure = certain(condition)
        computed = holds(condition, given, ROWS)
        certainly = np.ones(ROWS, np.bool_) if sure is None else holds(sure, given, ROWS)
        possible = outcomes(condition, given, ROWS)
        for i in range(ROWS):
            row = {c: Fraction(float(given[c.alias, c.name].data[i])) for c in COLUMNS}
            value = exactly(expr, row)
            if value is None or abs(value) > 1e300 or (found.null is not None and found.null[i]):
                continue
            if error is None or error.null is None or not error.null[i]:
                limit = Fraction(0) if error is None else Fraction(float(error.data[i]))
                assert abs(Fraction(float(found.data[i])) - value) <= limit, (expr, row)
            signs = {">": value > threshold, ">=": value >= threshold, "<": value < threshold}
            truth = {**signs, "=": value == threshold, "!=": value != threshold}[condition.op]
            if possible[i] != NULL:
                assert possible[i] == (TRUE if truth else FALSE), (condition, row)
                decided += 1
            assert not certainly[i] or computed[i] == truth, (condition, row)
            at_threshold += not certainly[i]
            differ += computed[i] != truth
    assert decided > 1_000 and at_threshold > 100 and differ > 10


def test_sums_of_products_are_rounded_once() -> None:
    r = random.Random(SEED * 37)
    exact = rounded_ = 0
    for _ in range(cases(1 / 240)):
        expr = tree(r, r.randint(1, 3), ("+", "-", "*", "neg", "+", "-"))
        form, given = polynomial(expr), readings(r)
        if form is None:
            continue
        found = rounded(form, given, ROWS)
        rows = []
        for i in np.flatnonzero(~found.outside).tolist():
            value = exactly(expr, {c: Fraction(float(given[c.alias, c.name].data[i])) for c in COLUMNS})
            assert value is not None
            parts = (float(found.values[i]), float(found.rest[i]))
            assert not found.exact[i] or sum(map(Fraction, parts)) == value
            rows.append((value, parts, bool(found.exact[i])))
        rows.sort(key=lambda row: row[0])
        for (low, a, a_exact), (high, b, b_exact) in pairwise(rows):
            assert a <= b
            assert low == high or a < b or not (a_exact and b_exact)
        exact += sum(one for _, _, one in rows)
        rounded_ += sum(not one for _, _, one in rows)
    assert exact > 500 and rounded_ > 500


def test_fractions_of_constants_are_kept() -> None:
    x, y = COLUMNS[0], COLUMNS[2]
    form = polynomial(call("-", call("/", x, Literal(3.0, Type.DOUBLE)), y))
    assert form is not None and form.monomials == (((1.0,), (x,)), ((-3.0,), (y,)))


def test_a_margin_is_taken_for_any_number_in_it() -> None:
    x, y = COLUMNS[:2]
    value = call("*", x, x)
    given = {("a", "x"): Vector(np.array([3.0, 3.0, 3.0])), ("b", "y"): Vector(np.array([9.0, 9.2, 8.8]))}
    condition = call(">", value, y)
    assert outcomes(condition, given, 3).tolist() == [FALSE, FALSE, TRUE]
    margin = (Margin(value, 0.01, 0.0),)
    assert outcomes(condition, given, 3, margin).tolist() == [TRUE | FALSE, FALSE, TRUE]
    sure = certain(condition, margin)
    assert sure is not None and holds(sure, given, 3).tolist() == [False, True, True]
