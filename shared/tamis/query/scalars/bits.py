"""Typed bit operators of integers: `& | << >> ~` and xor, with the functions of the same meaning."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.expressions.signatures import result_type
from tamis.query.scalars.operators import TypeMismatch, converted, integer, is_null

BIT_FUNCTIONS = {"bit_and": "&", "bit_or": "|", "xor": "xor"}


def operation(op: str, args: Sequence[Expr]) -> Expr:
    """A bit operator of `nodes.BITS`. Raises `TypeMismatch` for anything but integers."""
    values = [converted(arg, Type.BIGINT) if is_null(arg) else arg for arg in args]
    types = [value.type for value in values]
    kind = result_type(op, types)
    if kind is None:
        raise TypeMismatch(f"{op} can't be applied to {' and '.join(types)}", hint=_hint(types))
    if op == "~" and isinstance(values[0], Literal) and isinstance(values[0].value, int):
        return integer(~values[0].value)
    return Call(op, tuple(values), kind)


def _hint(types: Sequence[Type]) -> str:
    if Type.BOOLEAN in types:
        return "join conditions by AND, OR or NOT"
    if Type.VARCHAR in types:
        return "join texts by ||; bits are those of INT and BIGINT"
    if Type.DOUBLE in types:
        return "bits are those of INT and BIGINT: declare the column so, or write CAST(x AS BIGINT) & 4"
    return "bits are those of INT and BIGINT"
