"""Evaluation of expressions over columns, each operator once for the whole batch, in compiled code.

An expression is flattened to a program (`program`), whose steps are run one after the other. A result is
dropped after the last step that takes it. All branches of a CASE are computed, and then one is chosen for
each row: no operator can fail. Only a Python function can, and its FunctionError leaves `evaluate`.

DOUBLE results are checked for NaN and infinities as late as possible. The operators of `KEEPS_NONFINITE`,
and `/` for its numerator, have a result that isn't finite if the operand isn't finite. A value that isn't
finite may pass through them and stands for NULL. All other operators, and the result, need finite values.
"""

from __future__ import annotations

import numpy as np

from tamis.expressions.nodes import KEEPS_NONFINITE, OPAQUE, Column, Expr
from tamis.expressions.vectorized import bits, logic, steps, texts, times
from tamis.expressions.vectorized.arithmetic import ARITHMETIC, arithmetic, python_function
from tamis.expressions.vectorized.operands import Operand
from tamis.expressions.vectorized.program import Step, program_of
from tamis.expressions.vectors import Columns, Mask, Vector

_OPERATIONS = {
    **logic.OPERATIONS,
    **steps.OPERATIONS,
    **texts.OPERATIONS,
    **times.OPERATIONS,
    **bits.OPERATIONS,
}


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
    for index, argument in enumerate(step.args):
        if step.op not in KEEPS_NONFINITE and not (step.op == "/" and index == 0):
            # The other steps that take this result find it finite, too.
            results[argument] = _present(results[argument]).without_nonfinite()
    args = [_present(results[argument]) for argument in step.args]
    if step.op == OPAQUE:
        return python_function(str(args[0].data[0]), args[2:])
    if step.op in ARITHMETIC:
        return arithmetic(step.op, step.type, args)
    return _OPERATIONS[step.op](args, step.type)


def _present(result: Operand | None) -> Operand:
    assert result is not None, "a result is dropped only after the last step that takes it"
    return result
