"""Predicates that compare attributes, against brute force over points.

Whole numbers are tried near zero and near both ends of int64, where sums overflow to NULL. DOUBLEs are tried
at constants and sums, and one bit beside them; there a yes must hold at all points tried, and for a no there
must be a point. The oracle evaluates its own trees and shares no code.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.predicates.paper_methods import METHODS, match
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.errors import RefusedError
from tamis.expressions.nodes import Type
from tamis.predicates.cover.witness import outside
from tamis.predicates.differences import Difference
from tamis.predicates.matching import implies
from tamis.predicates.parse import parse

Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[np.object_]
Points = Mapping[str, Column]  # None is NULL

OPS: dict[str, Callable[[Column, Column], Any]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
BLOCKS = 2
LONG = also_long(20)
INT64 = range(-(2**63), 2**63)
OTHERS = itertools.cycle(METHODS)


@dataclass(frozen=True)
class Tree:
    """SQL, and where it is true and where it is false at given points."""

    sql: str
    value: Callable[[Points], tuple[Bools, Bools]]


@dataclass
class Dice:
    """Random conditions over attributes of one type."""

    r: random.Random
    names: Sequence[str]
    kind: Type
    constants: Sequence[float | int]
    offsets: Sequence[float | int]

    def tree(self, depth: int) -> Tree:
        """A random condition."""
        kind = self.r.random()
        if depth == 0 or kind < 0.25:
            return self.atom()
        if kind < 0.4:
            return negated(self.tree(depth - 1))
        parts = [self.tree(depth - 1) for _ in range(self.r.choice((2, 2, 3)))]
        return chain(self.r.choice(("AND", "AND", "OR")), parts)

    def pieces(self, whole: Tree) -> Tree:
        """A condition on both sides of a comparison, perhaps not all, perhaps more."""
        cut = self.atom()
        parts = [chain("AND", [whole, cut]), chain("AND", [whole, negated(cut)])]
        if self.r.random() < 0.3:
            parts.append(self.atom())
        if self.r.random() < 0.2:
            parts.pop(0)
        return chain("OR", parts)

    def atom(self) -> Tree:
        """A comparison with a constant, of two attributes, or IS NULL."""
        x, y = self.r.sample(self.names, 2)
        op = self.r.choice(list(OPS))
        kind = self.r.random()
        if kind < 0.06:
            return Tree(f"{x} IS NULL", lambda at: (at[x] == None, at[x] != None))  # noqa: E711
        if kind < 0.35:
            c = self.r.choice(self.constants)
            return Tree(f"{x} {op} {c!r}", lambda at: compared(op, at[x], np.full(len(at[x]), c, np.object_)))
        o = self.r.choice(self.offsets)
        if kind < 0.6 or not o:
            return Tree(f"{x} {op} {y}", lambda at: compared(op, at[x], at[y]))
        if kind < 0.8:
            return Tree(f"{x} {op} {y} + {o!r}", lambda at: compared(op, at[x], self.sum(at[y], o)))
        return Tree(
            f"{x} - {y} {op} {o!r}",
            lambda at: compared(op, self.sum(at[x], at[y], -1), np.full(len(at[x]), o, np.object_)),
        )

    def sum(self, x: Column, y: Column | float, sign: int = 1) -> Column:
        """x + y or x - y as SQL has it."""
        others = y if isinstance(y, np.ndarray) else [y] * len(x)
        found = [None if a is None or b is None else a + sign * b for a, b in zip(x, others, strict=True)]
        double = self.kind is Type.DOUBLE
        inside = [v is not None and (math.isfinite(v) if double else v in INT64) for v in found]
        return np.array([v if ok else None for v, ok in zip(found, inside, strict=True)], np.object_)


def compared(op: str, x: Column, y: Column) -> tuple[Bools, Bools]:
    """Neither true nor false where one is NULL."""
    known = np.array([a is not None and b is not None for a, b in zip(x, y, strict=True)], np.bool_)
    true = known.copy()
    true[known] = OPS[op](x[known], y[known]).astype(np.bool_)
    return true, known & ~true


def negated(inner: Tree) -> Tree:
    """NOT."""
    return Tree(f"NOT ({inner.sql})", lambda at: inner.value(at)[::-1])


def chain(word: str, parts: Sequence[Tree]) -> Tree:
    """AND or OR of several."""

    def value(at: Points) -> tuple[Bools, Bools]:
        true, false = zip(*(part.value(at) for part in parts), strict=True)
        if word == "AND":
            return np.logical_and.reduce(true), np.logical_or.reduce(false)
        return np.logical_or.reduce(true), np.logical_and.reduce(false)

    return Tree(f" {word} ".join(f"({part.sql})" for part in parts), value)


def grid(names: Sequence[str], axes: Sequence[Sequence[float | int | None]]) -> Points:
    """Every combination."""
    rows = itertools.product(*axes)
    return {
        name: np.array(column, np.object_)
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


def columns(points: Points, kind: Type) -> dict[str, npt.NDArray[np.generic]]:
    """As the package takes them."""
    if kind is not Type.DOUBLE:
        return dict(points)
    return {name: values.astype(np.float64) for name, values in points.items()}


def judge(dice: Dice, points: Points, where: str) -> tuple[bool, bool, bool | None]:
    """Everything that is said of two conditions, at all points: what is so there, whether two boxes prove
    it, and what `implies` says, None where it refuses.
    """
    one = dice.tree(dice.r.randint(0, 2))
    other = dice.pieces(one) if dice.r.random() < 0.6 else dice.tree(dice.r.randint(0, 2))
    where = f"{where}: {one.sql}  |  {other.sql}"
    types = dict.fromkeys(dice.names, dice.kind)
    p, q = parse(one.sql, types), parse(other.sql, types)
    asked, there = one.value(points)[0], other.value(points)[0]
    given = columns(points, dice.kind)
    for predicate, cells in ((p, asked), (q, there)):
        assert np.array_equal(predicate.holds(given), cells), where
        assert np.array_equal(parse(predicate.sql(), types).holds(given), cells), where
        assert not (predicate.never and cells.any()) and not (predicate.always and not cells.all()), where
    method = next(OTHERS)
    try:
        found = match(q, p, method)
        said = implies(p, q)
    except RefusedError:
        return bool((asked <= there).all()), False, None
    relaxed = found.relaxed.holds(given)
    assert ((asked | there) <= relaxed).all(), where
    if not method.startswith("hcr"):
        assert np.array_equal(relaxed, asked | there), where
    assert found.implied == said or (method.startswith("h") and said), where
    if not said and dice.kind is Type.DOUBLE and (asked <= there).all():
        assert any(shown(dice, one, other, box, q.boxes) for box in p.boxes), where
    return bool((asked <= there).all()), match(q, p, "hsr").implied, said


def shown(
    dice: Dice, one: Tree, other: Tree, box: Mapping[str, object], by: Sequence[Mapping[str, object]]
) -> bool:
    """True if a point was found that satisfies the one and not the other."""
    pairs = {(d.left, d.right) for b in (box, *by) for d in b if isinstance(d, Difference)}
    ends = sorted({end for pair in pairs for end in pair})
    for count in range(len(ends), -1, -1):
        for known in itertools.combinations(ends, count):  # the others are NULL
            if not any({*pair} <= {*known} for pair in pairs):
                continue
            found = outside(box, by, frozenset(known))  # type: ignore[arg-type]
            if found is None:
                continue
            values = {**dict.fromkeys(ends, None), **found}
            axes = [[values[name]] if name in values else [None, *dice.constants] for name in dice.names]
            points = grid(dice.names, axes)
            if (one.value(points)[0] & ~other.value(points)[0]).any():
                return True
    return False


@pytest.mark.parametrize("times", LONG)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_whole_numbers_are_exact(block: int, times: int) -> None:
    axis = [None, *range(-4, 5), *range(-(2**63), -(2**63) + 4), *range(2**63 - 4, 2**63)]
    points = grid("abc", [axis] * 3)
    seen = {"implied": 0, "not": 0, "missed by hsr": 0}
    for case in range(times * cases(1 / 400 / BLOCKS)):
        seed = SEED * 1_000_003 + block * 100_003 + case
        dice = Dice(random.Random(seed), "abc", Type.BIGINT, (-1, 0, 1), (-1, 0, 1))
        so, quickly, said = judge(dice, points, f"seed {seed}")
        assert said == so, f"seed {seed}"
        seen["implied" if so else "not"] += 1
        seen["missed by hsr"] += so and not quickly
    if cases(1 / 400 / BLOCKS) >= 30:
        assert min(seen.values()) > 0


@pytest.mark.parametrize("times", LONG)
def test_whole_numbers_overflow(times: int) -> None:
    axis = [
        None,
        *(edge + step for edge in (-(2**63), -(2**62), 0, 2**62, 2**63 - 1) for step in range(-5, 6)),
    ]
    points = grid("ab", [[v for v in axis if v is None or v in INT64]] * 2)
    for case in range(times * cases(1 / 300)):
        seed = SEED * 1_000_003 + case
        constants = (-(2**63), -(2**63) + 1, -1, 0, 2**63 - 1)
        dice = Dice(random.Random(seed), "ab", Type.BIGINT, constants, (-(2**62), -2, 0, 1, 2, 2**62))
        so, _, said = judge(dice, points, f"seed {seed}")
        assert said == so, f"seed {seed}"


@pytest.mark.parametrize("times", LONG)
@pytest.mark.parametrize("offsets", [(0.0,), (0.0, 0.1, 3.0, -2.5, 1e16)], ids=["order", "rounded"])
def test_doubles_are_as_they_are_rounded(offsets: tuple[float, ...], times: int) -> None:
    said = {True: 0, False: 0, None: 0}
    for case in range(times * cases(1 / 160)):
        seed = SEED * 1_000_003 + case
        r = random.Random(seed)
        constants = r.sample((0.0, 0.1, 1.0, 2.9, 3.0, -2.5, 9007199254740992.0), 2)
        sums = (
            {*constants, *(c + o for c in constants for o in offsets)} if len(offsets) > 1 else {*constants}
        )
        near = {math.nextafter(v, to) for v in sums for to in (-math.inf, v, math.inf)}
        near |= {v / 2 + 0.3 for v in constants}
        if len(offsets) == 1:
            near |= {math.nextafter(v, to) for v in near for to in (-math.inf, math.inf)}
        ends = {math.nextafter(c, to) for c in constants for to in (-math.inf, c, math.inf)} | {-1e300, 1e300}
        rest = sorted(near - ends)
        axis = [None, *sorted(ends), *r.sample(rest, min(len(rest), 4))]
        points = grid("abc", [axis] * 3)
        dice = Dice(r, "abc", Type.DOUBLE, constants, offsets)
        so, _, answer = judge(dice, points, f"seed {seed}")
        assert so or not answer, f"seed {seed}"
        said[answer] += 1
    assert said[None] <= (0 if len(offsets) == 1 else 0.1 * sum(said.values())), said
