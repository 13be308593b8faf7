"""Predicates as sets of elementary cells, so that a pair of predicates is compared in microseconds.

The cells are every constant at which an answer changes, the values between, the extremes and NULL, in each of
three attributes. A set of cells of the grid is an integer with one bit for each cell. Shares no code with the
package: conditions are evaluated in three-valued logic, and ranges are read by comparing cuts.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import eq, ge, gt, le, lt, ne, or_

import numpy as np
import numpy.typing as npt

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns
from tamis.predicates.predicate import Predicate

NAMES = ("a", "b", "c")
OPS: dict[str, Callable[[float, float], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
DOUBLES = [0.0, 0.1, 0.2, 0.30000000000000004, 1.0, -2.5, 1e300, 5e-324, -1.7976931348623157e308]
INTEGERS = [0, 1, 2, 3, -5, 2**53 + 1, 2**63 - 1, -(2**63)]


@dataclass(frozen=True)
class Tree:
    """A condition, the cells where it is true, and those where it is false; in the others it is NULL."""

    expr: Expr
    true: int
    false: int


@dataclass
class Cells:
    """The cells of one case, and random conditions over them."""

    r: random.Random
    kind: Type
    axes: dict[str, list[float | None]] = field(default_factory=dict)
    constants: dict[str, list[float]] = field(default_factory=dict)
    _below: dict[str, list[int]] = field(default_factory=dict)
    _ranges: dict[tuple[object, ...], int] = field(default_factory=dict)

    @staticmethod
    def of(r: random.Random, kind: Type) -> Cells:
        """Up to three constants of each attribute, often the same ones."""
        made = Cells(r, kind)
        shared = r.sample(DOUBLES if kind is Type.DOUBLE else INTEGERS, 3)
        for name in NAMES:
            pool = shared if r.random() < 0.7 else (DOUBLES if kind is Type.DOUBLE else INTEGERS)
            made.constants[name] = r.sample(pool, r.randint(1, 3))
            made.axes[name] = [None, *_values(made.constants[name], kind)]
        made._number()
        return made

    def _number(self) -> None:
        sizes = [len(self.axes[name]) for name in NAMES]
        for at, name in enumerate(NAMES):
            inner, outer = int(np.prod(sizes[at + 1 :])), int(np.prod(sizes[:at]))
            whole = inner * sizes[at]
            repeat = sum(1 << (block * whole) for block in range(outer))
            self._below[name] = [((1 << (i * inner)) - 1) * repeat for i in range(sizes[at] + 1)]

    @property
    def all(self) -> int:
        """Every cell."""
        return self._below[NAMES[0]][-1]

    def where(self, name: str, holds: Callable[[float], bool]) -> int:
        """The cells whose value of an attribute isn't NULL and is like that."""
        below, axis = self._below[name], self.axes[name]
        return reduce(
            or_, (below[i + 1] ^ below[i] for i, v in enumerate(axis) if v is not None and holds(v)), 0
        )

    def null(self, name: str) -> int:
        """The cells where an attribute is NULL."""
        return self._below[name][1]

    def of_predicate(self, predicate: Predicate) -> int:
        """The cells of the package's boxes, by what a cut says: it stands just below its value."""
        found = 0
        for box in predicate.boxes:
            cells = self.all
            for name, (lower, upper) in box.items():
                key = (name, lower, upper)
                if key not in self._ranges:
                    cuts = [(-2,) if v is None else (0, v) for v in self.axes[name]]
                    below = self._below[name]
                    self._ranges[key] = reduce(
                        or_,
                        (below[i + 1] ^ below[i] for i, cut in enumerate(cuts) if lower <= cut < upper),
                        0,
                    )
                cells &= self._ranges[key]
            found |= cells
        return found

    def bools(self, cells: int) -> npt.NDArray[np.bool_]:
        """A set of cells as an array over the points of `points`."""
        size = int(np.prod([len(self.axes[name]) for name in NAMES]))
        raw = np.frombuffer(cells.to_bytes((size + 7) // 8, "little"), np.uint8)
        return np.unpackbits(raw, bitorder="little", count=size).astype(np.bool_)

    def points(self) -> dict[str, npt.NDArray[np.generic]]:
        """A point of each cell."""
        grid = np.meshgrid(*[np.array(self.axes[name], np.object_) for name in NAMES], indexing="ij")
        flat: dict[str, npt.NDArray[np.generic]] = dict(zip(NAMES, (g.ravel() for g in grid), strict=True))
        if self.kind is Type.DOUBLE:
            return {name: column.astype(np.float64) for name, column in flat.items()}
        return flat

    def atom(self) -> Tree:
        """A comparison, either way round, or IS NULL."""
        name = self.r.choice(NAMES)
        column = Column("", name, self.kind)
        if self.r.random() < 0.08:
            cells = self.null(name)
            return Tree(Call("is_null", (column,), Type.BOOLEAN), cells, self.all ^ cells)
        op, constant = self.r.choice(list(OPS)), self.r.choice(self.constants[name])
        true = self.where(name, lambda v: OPS[op](v, constant))
        literal = Literal(constant, self.kind)
        turned = self.r.random() < 0.2
        expr = (
            Call(TURNED[op], (literal, column), Type.BOOLEAN)
            if turned
            else Call(op, (column, literal), Type.BOOLEAN)
        )
        return Tree(expr, true, self.all ^ self.null(name) ^ true)

    def conjunction(self) -> Tree:
        """A box: attributes that it lacks, ends that touch, points, nothing at all."""
        return chain("and", [self.atom() for _ in range(self.r.choice((1, 2, 3, 4, 6)))], self.all)

    def tree(self) -> Tree:
        """A random condition."""
        kind = self.r.random()
        if kind < 0.02:
            return Tree(Literal(True, Type.BOOLEAN), self.all, 0)
        if kind < 0.2:
            return negated(chain("or", [self.conjunction() for _ in range(self.r.randint(1, 2))], self.all))
        if kind < 0.35:
            return chain(
                "and", [chain("or", [self.atom(), self.atom()], self.all) for _ in range(2)], self.all
            )
        return chain("or", [self.conjunction() for _ in range(self.r.randint(1, 4))], self.all)

    def pieces(self, whole: Tree) -> Tree:
        """The parts of a condition on both sides of some comparisons, perhaps not all of them, and more."""
        parts = [whole]
        for _ in range(self.r.randint(1, 2)):
            cut = self.atom()
            unknown = self.all ^ cut.true ^ cut.false
            sides = [cut, negated(cut)]
            if unknown:
                name = next(columns(cut.expr)).name
                cells = self.null(name)
                null = Call("is_null", (Column("", name, self.kind),), Type.BOOLEAN)
                sides.append(Tree(null, cells, self.all ^ cells))
            parts = [chain("and", [part, side], self.all) for part in parts for side in sides]
        if self.r.random() < 0.3:
            parts.pop(self.r.randrange(len(parts)))
        if self.r.random() < 0.3:
            parts.append(self.atom())
        return chain("or", parts, self.all)


def _values(constants: list[float], kind: Type) -> list[float]:
    """At, beside and between the constants, and the extremes, ascending."""
    if kind is Type.DOUBLE:
        ends = [-sys.float_info.max, sys.float_info.max]
        near = [math.nextafter(c, to) for c in constants for to in (-math.inf, c, math.inf)]
        between = [a / 2 + b / 2 for a, b in itertools.pairwise(sorted([*constants, *ends]))]
        return sorted({v + 0.0 for v in (*near, *between, *ends) if math.isfinite(v)})
    whole = [int(c) + step for c in constants for step in (-1, 0, 1)]
    return sorted({v for v in (*whole, -(2**63), 2**63 - 1) if -(2**63) <= v < 2**63})


def negated(inner: Tree) -> Tree:
    """NOT."""
    return Tree(Call("not", (inner.expr,), Type.BOOLEAN), inner.false, inner.true)


def chain(word: str, parts: list[Tree], everything: int) -> Tree:
    """AND or OR of several."""
    if len(parts) == 1:
        return parts[0]
    if word == "or":
        turned = chain("and", [Tree(p.expr, p.false, p.true) for p in parts], everything)
        true, false = turned.false, turned.true
    else:
        true, false = everything, 0
        for part in parts:
            true, false = true & part.true, false | part.false
    return Tree(Call(word, tuple(p.expr for p in parts), Type.BOOLEAN), true, false)
