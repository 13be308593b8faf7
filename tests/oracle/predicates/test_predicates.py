"""Predicates from SQL text against brute force over points.

The points are every end point of the constants, its neighbours, the values between them, and NULL. The oracle
evaluates its own tree in three-valued logic and shares no code.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.predicates.paper_methods import METHODS, match
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Type
from tamis.predicates.matching import implies
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

Bools = npt.NDArray[np.bool_]
Points = dict[str, npt.NDArray[np.float64]]

NAMES = ("a", "b", "c")
BLOCKS = 2
STEPS = (0, 1)  # results of functions that round, which constants are compared with
OPERATORS = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True)
class Tree:
    """A condition as the oracle has it: its SQL, and where it is true and where it is false."""

    sql: str
    true: Bools
    false: Bools


@dataclass
class Dice:
    """Random conditions over the points of one case; NaN is NULL."""

    r: random.Random
    points: Points
    constants: list[float]
    whole: bool

    def tree(self, depth: int) -> Tree:
        """A random condition."""
        kind = self.r.random()
        if depth == 0 or kind < 0.3:
            return self.atom()
        if kind < 0.42:
            inner = self.tree(depth - 1)
            return Tree(f"NOT ({inner.sql})", inner.false, inner.true)
        parts = [self.tree(depth - 1) for _ in range(self.r.choice((2, 2, 3)))]
        return chain(self.r.choice(("AND", "OR", "OR")), parts)

    def pieces(self, whole: Tree) -> Tree:
        """The parts of a condition on both sides of some comparisons, perhaps not all of them, and more."""
        parts = [whole]
        for _ in range(self.r.randint(1, 2)):
            cut = self.atom()
            unknown = ~(cut.true | cut.false)
            sides = [cut, Tree(f"NOT ({cut.sql})", cut.false, cut.true)]
            if unknown.any():
                name = next(n for n in NAMES if n in cut.sql)
                null = np.isnan(self.points[name])
                sides.append(Tree(f"{name} IS NULL", null, ~null))
            parts = [chain("AND", [part, side]) for part in parts for side in sides]
        if self.r.random() < 0.3:
            parts.pop(self.r.randrange(len(parts)))
        if self.r.random() < 0.3:
            parts.append(self.atom())
        return chain("OR", parts)

    def atom(self) -> Tree:
        """A comparison, BETWEEN, IN or IS NULL."""
        name = self.r.choice(NAMES)
        x = self.points[name]
        known: Bools = ~np.isnan(x)
        true: Bools
        c, d = (self.r.choice(self.constants) for _ in range(2))
        match self.r.randrange(12):
            case 10 | 11 if not self.whole:
                function, at = self.r.choice((np.floor, np.ceil, np.trunc, np.sign)), self.r.choice(STEPS)
                op = self.r.choice(tuple(OPERATORS))
                true = known & OPERATORS[op](function(x), at)
                return Tree(f"{function.__name__}({name}) {op} {at}", true, known & ~true)
            case 0:
                word = self.r.choice(("", "NOT "))
                true = known if word else ~known
                return Tree(f"{name} IS {word}NULL", true, ~true)
            case 1:
                true = (x >= c) & (x <= d)
                return Tree(f"{name} BETWEEN {text(c)} AND {text(d)}", true, known & ~true)
            case 2:
                true = (x == c) | (x == d)
                return Tree(f"{name} IN ({text(c)}, {text(d)})", true, known & ~true)
            case _:
                op = self.r.choice(("=", "<>", "<", "<=", ">", ">="))
                true = known & OPERATORS[op](x, c)
                sql = f"{name} {op} {text(c)}" if self.r.random() < 0.8 else f"{text(c)} {TURNED[op]} {name}"
                return Tree(sql, true, known & ~true)


def chain(word: str, parts: list[Tree]) -> Tree:
    """AND or OR of several."""
    sql = f" {word} ".join(f"({part.sql})" for part in parts)
    every: Bools = np.logical_and.reduce([p.true if word == "AND" else p.false for p in parts])
    some: Bools = np.logical_or.reduce([p.false if word == "AND" else p.true for p in parts])
    return Tree(sql, every, some) if word == "AND" else Tree(sql, some, every)


TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def text(value: float) -> str:
    """A constant that is read back as the same."""
    return repr(value)


def dice(r: random.Random, whole: bool) -> Dice:
    """Few constants, so that ends are shared; neighbours of each; NULL."""
    levels: list[float]
    if whole:
        levels = [float(v) for v in r.sample(range(-3, 6), r.randint(1, 4))]
        near = [v + step for v in levels for step in (-1, 0, 1)]
    else:
        levels = r.sample([0.0, 0.1, 0.2, 0.30000000000000004, 1.0, -2.5, 1e300, 5e-324], r.randint(1, 4))
        near = [float(np.nextafter(v, to)) for v in levels for to in (-np.inf, v, np.inf)]
        near += [(a + b) / 2 for a, b in itertools.pairwise(sorted(levels))] + [-1e301, 1.5e300]
        near += [float(np.nextafter(v, to)) for v in (-1, *STEPS, 2) for to in (-np.inf, v, np.inf)]
    axis = np.array([*sorted(set(near)), np.nan])
    grid = np.meshgrid(*[axis] * len(NAMES), indexing="ij")
    return Dice(r, {name: g.ravel() for name, g in zip(NAMES, grid, strict=True)}, levels, whole)


def values(points: Points, kind: Type) -> dict[str, npt.NDArray[np.generic]]:
    """The points as columns of a type."""
    if kind is Type.DOUBLE:
        return dict(points)
    return {
        name: np.array([None if np.isnan(v) else int(v) for v in column], np.object_)
        for name, column in points.items()
    }


@pytest.mark.parametrize("whole", [False, True], ids=["double", "int"])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_answer_is_that_of_all_points(block: int, whole: bool) -> None:
    kind = Type.BIGINT if whole else Type.DOUBLE
    types = dict.fromkeys(NAMES, kind)
    seen = {"implied": 0, "missed by hsr": 0}
    for case in range(cases(1 / 192 / BLOCKS)):
        seed = SEED * 1_000_003 + block * 100_003 + case
        r = random.Random(seed)
        made = dice(r, whole)
        one = made.tree(r.randint(0, 3))
        other = made.pieces(one) if r.random() < 0.5 else made.tree(r.randint(0, 3))
        p, q = parse(one.sql, types), parse(other.sql, types)
        columns = values(made.points, kind)
        where = f"seed {seed}: {one.sql}  |  {other.sql}"
        assert np.array_equal(p.holds(columns), one.true), where
        assert np.array_equal(parse(p.sql(), types).holds(columns), one.true), where
        assert p.never == (not one.true.any()) and p.always == bool(one.true.all()), where
        truth = bool((one.true <= other.true).all())
        assert implies(p, q) == truth, where
        judge((p, one.true), (q, other.true), columns, where)
        seen["implied"] += truth
        seen["missed by hsr"] += truth and not match(q, p, "hsr").implied
    if cases(1 / 192 / BLOCKS) >= 50:
        assert min(seen.values()) > 0


def judge(
    query: tuple[Predicate, Bools],
    stream: tuple[Predicate, Bools],
    columns: dict[str, npt.NDArray[np.generic]],
    where: str,
) -> None:
    """What each method answers about a query and a stream, each with where it is true."""
    (asked, wanted), (offered, there) = query, stream
    truth = bool((wanted <= there).all())
    for method in METHODS:
        found = match(offered, asked, method)
        relaxed = found.relaxed.holds(columns)
        assert not found.implied or truth, f"{method}: {where}"
        assert ((wanted | there) <= relaxed).all(), f"{method}: {where}"
        if found.implied:
            assert found.relaxed == offered, f"{method}: {where}"
        if not method.startswith("hcr"):
            assert np.array_equal(relaxed, wanted | there), f"{method}: {where}"
        if not method.startswith("h"):
            assert found.implied == truth, f"{method}: {where}"
