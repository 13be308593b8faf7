"""Predicates with linear forms, against their evaluation on tuples.

Each form is computed step by step in Python, as SQL does: DOUBLEs are rounded, whole numbers that overflow
are NULL. The tuples have NULLs, the ends of all domains, and values at which a form reaches a constant, with
their neighbours. An implication that is claimed must hold for all of them, and the index must evaluate a form
in the same way. Implications that hold by construction must be found.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

import numpy as np
from tests.oracle.random_cases import SEED, cases

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.predicates.matching import implies, surely_implies
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

Number = float | int | None
Row = Mapping[str, Number]
Truth = bool | None

TYPES = {"x": Type.DOUBLE, "y": Type.DOUBLE, "n": Type.INT, "m": Type.INT, "b": Type.BIGINT}
ENDS = {"x": (-1e100, 1e100), "y": (-1e100, 1e100), "n": (-(2**31), 2**31 - 1), "m": (-(2**31), 2**31 - 1)}
ENDS["b"] = (-(2**63), 2**63 - 1)
OPS: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq, "<>": ne}
COEFFICIENTS = (1, 1, 1, 2, 3, 0.1, 0.5, -1, -2)
TUPLES = 300


@dataclass(frozen=True)
class Form:
    """SQL of a number, how it is computed, and its approximate coefficients."""

    sql: str
    value: Callable[[Row], Number]
    coefficients: Mapping[str, float]


@dataclass(frozen=True)
class Filter:
    """SQL of a condition, and how it is computed; `near`: forms and constants that it compares."""

    sql: str
    value: Callable[[Row], Truth]
    near: tuple[tuple[Form, float], ...]


def number(value: float) -> Number:
    """A result: NULL if it overflows."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    return value if math.isfinite(value) else None


def column(name: str) -> Form:
    return Form(name, lambda row: row[name], {name: 1.0})


def scaled(one: Form, factor: float) -> Form:
    def value(row: Row) -> Number:
        found = one.value(row)
        return None if found is None else number(found * factor)

    coefficients = {name: own * factor for name, own in one.coefficients.items()}
    return Form(f"{factor!r} * {one.sql}", value, coefficients)


def added(one: Form, other: Form, sign: int) -> Form:
    def value(row: Row) -> Number:
        left, right = one.value(row), other.value(row)
        return None if left is None or right is None else number(left + sign * right)

    coefficients = {**one.coefficients, **{name: sign * own for name, own in other.coefficients.items()}}
    return Form(f"{one.sql} {'+' if sign > 0 else '-'} {other.sql}", value, coefficients)


def form(r: random.Random, names: list[str], factors: tuple[float, ...] = COEFFICIENTS) -> Form:
    parts = []
    for name in names:
        factor = r.choice(factors)
        parts.append(column(name) if factor == 1 else scaled(column(name), factor))
    found = parts[0]
    for part in parts[1:]:
        found = added(found, part, r.choice((1, 1, -1)))
    return found


def compared(left: Form, op: str, constant: float) -> Filter:
    def value(row: Row) -> Truth:
        found = left.value(row)
        return None if found is None else OPS[op](found, constant)

    return Filter(f"{left.sql} {op} {constant!r}", value, ((left, constant),))


def joined(word: str, parts: list[Filter]) -> Filter:
    def value(row: Row) -> Truth:
        found = [part.value(row) for part in parts]
        decisive = word == "OR"
        return decisive if decisive in found else None if None in found else not decisive

    near = tuple(pair for part in parts for pair in part.near)
    return Filter(f" {word} ".join(f"({part.sql})" for part in parts), value, near)


def negated(inner: Filter) -> Filter:
    def value(row: Row) -> Truth:
        found = inner.value(row)
        return None if found is None else not found

    return Filter(f"NOT ({inner.sql})", value, inner.near)


def random_filter(r: random.Random, forms: list[Form]) -> Filter:
    parts = []
    for _ in range(r.choice((1, 1, 2, 2, 3))):
        left = r.choice(forms) if r.random() < 0.7 else column(r.choice(list(TYPES)))
        part = compared(left, r.choice(("<", "<=", ">", ">=", ">", "<", "=", "<>")), r.randint(-20, 20))
        parts.append(negated(part) if r.random() < 0.2 else part)
    return parts[0] if len(parts) == 1 else joined(r.choice(("AND", "AND", "OR")), parts)


def rows(r: random.Random, filters: list[Filter]) -> list[Row]:
    near = [pair for one in filters for pair in one.near]
    found: list[Row] = []
    for _ in range(TUPLES):
        row: dict[str, Number] = {name: start(r, name) for name in TYPES}
        for left, constant in r.sample(near, r.randint(0, min(len(near), 2))):
            name = r.choice(list(left.coefficients))
            at = left.value({**row, name: 0})
            if at is not None:
                row[name] = clipped(r, name, (constant - at) / left.coefficients[name])
        found.append(row)
    return found


def start(r: random.Random, name: str) -> Number:
    kind = r.random()
    if kind < 0.05:
        return None
    if kind < 0.2:
        return r.choice(ENDS[name])
    if TYPES[name] is Type.DOUBLE:
        return r.choice((r.uniform(-30, 30), float(r.randint(-30, 30)), 10.0 ** r.uniform(-9, 18)))
    return r.randint(-30, 30) if kind < 0.8 or name != "b" else r.randint(-(2**62), 2**62)


def clipped(r: random.Random, name: str, value: float) -> Number:
    """The value, or one of its neighbours."""
    low, high = ENDS[name]
    if TYPES[name] is Type.DOUBLE:
        for _ in range(r.randint(0, 2)):
            value = math.nextafter(value, r.choice((-math.inf, math.inf)))
        return min(max(value, low), high)
    return min(max(round(value) + r.randint(-1, 1), int(low)), int(high))


def read(one: Filter) -> Predicate | None:
    """The predicate; None if it is refused: a form may rise and fall with the same column."""
    try:
        return parse(one.sql, TYPES)
    except RefusedError:
        return None


def holds(predicate: Predicate, tuples: list[Row]) -> list[bool]:
    columns = {
        name: np.array([row[name] for row in tuples], np.float64 if kind is Type.DOUBLE else np.object_)
        for name, kind in TYPES.items()
    }
    found: list[bool] = predicate.holds(columns).tolist()
    return found


def test_a_claimed_implication_holds_for_all_tuples() -> None:
    found = {"implied": 0, "refuted": 0, "unknown": 0, "refused": 0}
    for case in range(cases(1 / 120)):
        seed = f"{SEED} {case}"
        r = random.Random(seed)
        names = r.sample(list(TYPES), r.choice((1, 2, 2, 3)))
        forms = [form(r, names) for _ in range(r.choice((1, 1, 2)))]
        one, other = random_filter(r, forms), random_filter(r, forms)
        if r.random() < 0.3:
            one = joined("AND", [one, other])
        narrow, wide = read(one), read(other)
        if narrow is None or wide is None:
            found["refused"] += 1
            continue
        tuples = rows(r, [one, other])
        where = f"seed {seed}: {one.sql} => {other.sql}"
        truth = [one.value(row) is True for row in tuples]
        wider = [other.value(row) is True for row in tuples]
        assert holds(narrow, tuples) == truth, where
        counterexample = any(a and not b for a, b in zip(truth, wider, strict=True))
        try:
            implied = implies(narrow, wide)
        except RefusedError:
            found["unknown"] += 1
            assert not surely_implies(narrow, wide), where
            continue
        assert not (implied and counterexample), where
        assert implied or not surely_implies(narrow, wide), where
        found["implied" if implied else "refuted"] += 1
        assert holds(parse(narrow.sql(), TYPES), tuples) == truth, where
    total = sum(found.values())
    assert min(found["implied"], found["refuted"]) > total / 10, found
    assert found["unknown"] + found["refused"] < total / 4, found


def test_implications_by_construction_are_found() -> None:
    """A nearer constant of the same form; limits of all columns; and limits of a form and of one column."""
    found = 0
    for case in range(cases(1 / 120)):
        seed = f"{SEED} {case}"
        r = random.Random(seed)
        kind = r.choice(("form", "columns", "column"))
        # What a rounded sum says of one column of DOUBLEs depends on the size of the others.
        names = ["n", "m"] if kind == "column" else r.sample(["x", "y", "n", "m"], r.choice((1, 2, 3)))
        whole = form(r, names, (1, 2, 3, -1, -2) if kind == "column" else COEFFICIENTS)
        limit, gap = r.randint(-50, 50), r.randint(1, 20)
        # Each column is at the end where the form is least.
        ends = {name: r.randint(-30, 30) for name in names}
        rises = {name: whole.coefficients[name] > 0 for name in names}
        parts = [compared(column(name), ">=" if rises[name] else "<=", end) for name, end in ends.items()]
        least = whole.value(ends)
        assert least is not None
        match kind:
            case "form":
                narrow, wide = compared(whole, ">", limit + gap), compared(whole, ">", limit)
            case "columns":
                narrow, wide = joined("AND", parts), compared(whole, ">", least - gap)
            case _:  # the form is less than its least value, so the first column is beyond its end
                narrow = joined("AND", [compared(whole, "<", least), *parts[1:]])
                first = names[0]
                op, end = ("<", ends[first] + gap) if rises[first] else (">", ends[first] - gap)
                wide = compared(column(first), op, end)
        if set(map(abs, whole.coefficients.values())) == {1.0} and len(names) == 2 and " - " in whole.sql:
            continue  # a difference of two columns has no domains
        one, other = parse(narrow.sql, TYPES), parse(wide.sql, TYPES)
        assert surely_implies(one, other), f"seed {seed}: {narrow.sql} => {wide.sql}"
        found += len(names) > 1
    assert found > cases(1 / 120) / 3
