"""Evaluation of expressions over columns, each operator once for the whole batch, in compiled code.

An expression is flattened to a program, whose steps are run one after the other. Equal subexpressions are one
step: inlined functions repeat their arguments, so that a tree is often much larger than its program. A result
is dropped after the last step that takes it. All branches of a CASE are computed, and then one is chosen for
each row: no operator can fail. Only a Python function can, and its FunctionError leaves `evaluate`.

DOUBLE results are checked for NaN and infinities as late as possible. A value that isn't finite stands for
NULL, and may pass through the operands of `Function.keeps_nonfinite`. All others need finite values, and so
does the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.expressions.functions.entry import FUNCTIONS, Function
from tamis.expressions.functions.operands import Operand
from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.expressions.vectors import Columns, Mask, Vector


def evaluate(expr: Expr, columns: Columns, rows: int) -> Vector:
    """The value of `expr` in each row: a vector of length `rows`, which may share memory with a column.

    Raises KeyError if a column of `expr` is not in `columns`, ValueError if one doesn't have `rows` values.
    """
    program = program_of(expr)
    results: list[Operand | None] = []
    # Values that aren't finite become NULL, and overflows are found afterwards: no warning is of use.
    with np.errstate(all="ignore"):
        for position, step in enumerate(program.steps):
            results.append(_run(step, results, columns, rows))
            for argument in step.args:
                if program.last_uses[argument] == position:
                    results[argument] = None
        result = _present(results[-1]).without_nonfinite()
    if len(result.data) == rows and (result.null is None or len(result.null) == rows):
        return Vector(result.data, result.null)
    null = None if result.null is None else np.broadcast_to(result.null, rows).copy()
    return Vector(np.broadcast_to(result.data, rows).copy(), null)


def holds(expr: Expr, columns: Columns, rows: int) -> Mask:
    """Mask, of shape (rows,), of the rows in which the condition `expr` is true: neither false nor NULL."""
    return Operand.of(evaluate(expr, columns, rows)).true()


def _run(step: Step, results: list[Operand | None], columns: Columns, rows: int) -> Operand:
    if isinstance(step.leaf, Column):
        column = columns[step.leaf.alias, step.leaf.name]
        if len(column) != rows:
            raise ValueError(f"column {step.leaf.name} has {len(column)} values, not {rows}")
        return Operand.of(column)
    if step.leaf is not None:
        return step.leaf
    function = step.function
    assert function is not None, "a step is a column, a constant or an operator"
    args: list[Operand] = []
    for index, argument in enumerate(step.args):
        operand = _present(results[argument])
        if index not in function.keeps_nonfinite:
            # The other steps that take this result find it finite, too.
            operand = results[argument] = operand.without_nonfinite()
        args.append(operand)
    return function.kernel(args, step.type)


def _present(result: Operand | None) -> Operand:
    assert result is not None, "a result is dropped only after the last step that takes it"
    return result


@dataclass(frozen=True)
class Step:
    """A column, a constant, or an operator over the results of earlier steps."""

    leaf: Column | Operand | None
    function: Function | None
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
            step = Step(node, None, node.type, ())
        elif isinstance(node, Literal):
            key = ("literal", node.type, repr(node.value))  # 0.0 and -0.0 are equal and different values
            step = Step(Operand.of(Vector.full(node, 1)), None, node.type, ())
        else:
            args = tuple([position_of(arg) for arg in node.args])
            key = (node.op, node.type, *args)
            step = Step(None, FUNCTIONS[node.op], node.type, args)
        if key not in known:
            known[key] = len(steps)
            for arg in args:
                last_uses[arg] = len(steps)
            steps.append(step)
            last_uses.append(-1)
        return known[key]

    position_of(expr)
    return Program(tuple(steps), tuple(last_uses))
