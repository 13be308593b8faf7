"""Programs: expressions flattened to steps, with equal subexpressions merged into one step.

Inlined functions repeat their arguments, so that a tree is often much larger than its program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.expressions.vectorized.operands import Operand
from tamis.expressions.vectors import Vector


@dataclass(frozen=True)
class Step:
    """A column, a constant, or an operator over the results of earlier steps."""

    leaf: Column | Operand | None
    op: str
    type: Type
    args: tuple[int, ...]  # positions of the steps that give the arguments


@dataclass(frozen=True)
class Program:
    """Steps in the order of their evaluation; the last one gives the result.

    `last_uses` has, for each step, the position of the last step that takes its result, -1 if there is none.
    """

    steps: tuple[Step, ...]
    last_uses: tuple[int, ...]


class _ByIdentity:
    """A key of an expression by identity. Equality would walk the tree, and 0.0 equals -0.0."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __hash__(self) -> int:
        return id(self.expr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.expr is self.expr


def program_of(expr: Expr) -> Program:
    """The program of an expression, from a cache."""
    return _cached(_ByIdentity(expr))


# Small batches are frequent, and the expressions of a plan stay the same objects. The capacity is for a few
# expressions of each of thousands of alerts.
@lru_cache(maxsize=20_000)
def _cached(key: _ByIdentity) -> Program:
    return _flattened(key.expr)


_Key: TypeAlias = tuple[object, ...]


def _flattened(expr: Expr) -> Program:
    steps: list[Step] = []
    last_uses: list[int] = []
    known: dict[_Key, int] = {}

    def position_of(node: Expr) -> int:
        args: tuple[int, ...] = ()
        if isinstance(node, Column):
            key: _Key = ("column", node.alias, node.name)
            step = Step(node, "", node.type, ())
        elif isinstance(node, Literal):
            key = ("literal", node.type, repr(node.value))  # 0.0 and -0.0 are equal and different values
            step = Step(Operand.of(Vector.full(node, 1)), "", node.type, ())
        else:
            args = tuple([position_of(arg) for arg in node.args])
            key = (node.op, node.type, *args)
            step = Step(None, node.op, node.type, args)
        if key not in known:
            known[key] = len(steps)
            for arg in args:
                last_uses[arg] = len(steps)
            steps.append(step)
            last_uses.append(-1)
        return known[key]

    position_of(expr)
    return Program(tuple(steps), tuple(last_uses))
