"""Vectorised operators of bits, of the 64 bits of an integer in two's complement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectorized.operands import Operand, any_null

_Operation: TypeAlias = Callable[[Sequence[Operand], Type], Operand]


def _of_two(ufunc: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]) -> _Operation:
    def run(args: Sequence[Operand], _: Type) -> Operand:
        return Operand(ufunc(args[0].data, args[1].data), any_null(args[0].null, args[1].null))

    return run


def _complement(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(~args[0].data, args[0].null)


def _right(number: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
    """`>>`: 0 for a shift that no 64 bits have."""
    return np.where((by >= 0) & (by <= 63), number >> np.clip(by, 0, 63), 0)


def _left(args: Sequence[Operand], _: Type) -> Operand:
    """`<<`: NULL where it isn't the product with a power of two."""
    number, by = args[0].data, args[1].data
    some = np.clip(by, 0, 63)
    data = number << some
    undefined = (number < 0) | (by < 0) | (data < 0) | (data >> some != number)
    null = any_null(args[0].null, args[1].null)
    return Operand(data, any_null(null, undefined) if undefined.any() else null)


OPERATIONS: dict[str, _Operation] = {
    "&": _of_two(np.bitwise_and),
    "|": _of_two(np.bitwise_or),
    "xor": _of_two(np.bitwise_xor),
    ">>": _of_two(_right),
    "<<": _left,
    "~": _complement,
}
