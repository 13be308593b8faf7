"""Operators of bits, of the 64 bits of an integer in two's complement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.functions.entry import (
    ATOM,
    BITS,
    WHOLE,
    ForDuckdb,
    Function,
    Kernel,
    Reference,
    Signature,
    Spelling,
    called,
    once,
    written,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import Call, Type


def _of_two(ufunc: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]) -> Kernel:
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


# Of HUGEINTs, where no shift raises an error.
_LEFT_SHIFT = (
    "CASE WHEN t['of'] >= 0 AND t['by'] >= 0 THEN TRY_CAST("
    "CAST(t['of'] AS HUGEINT) * (CAST(1 AS HUGEINT) << CAST(greatest(least(t['by'], 63), 0) AS HUGEINT))"
    " AS BIGINT) END"
)
_BITS_OF_INTEGERS = "BIGINT: the [bits](#bits) of integers."
_SHIFTED = (
    "BIGINT: x times or divided by 2^n. `<<` is NULL if x or n is negative, or if the result has more than 63"
    " bits. `>>` rounds down, and is 0 if n is negative or more than 63."
)


def _left_in_duckdb(_: Call, args: Sequence[str]) -> str:
    return once(f"{{'of': {args[0]}, 'by': {args[1]}}}", _LEFT_SHIFT)


def _entry(
    op: str,
    kernel: Kernel,
    duckdb: ForDuckdb,
    reference: Reference | None,
    spelling: Spelling | None = None,
    *,
    operands: int = 2,
    binding: int = BITS,
) -> Function:
    return Function(
        name=op,
        types=Signature((WHOLE,) * operands, Type.BIGINT),
        kernel=kernel,
        duckdb=duckdb,
        reference=reference,
        spelling=spelling,
        binding=binding,
        computed=True,
    )


ENTRIES = (
    _entry(
        "&",
        _of_two(np.bitwise_and),
        written("({} & {})"),
        Reference("`x & y`, `bit_and(x, y)`", _BITS_OF_INTEGERS),
        Spelling(("bit_and",), (2, 2), "{name}(x, y), or x & y"),
    ),
    _entry(
        "|",
        _of_two(np.bitwise_or),
        written("({} | {})"),
        Reference(r"`x \| y`, `bit_or(x, y)`", _BITS_OF_INTEGERS),
        Spelling(("bit_or",), (2, 2), "{name}(x, y), or x | y"),
    ),
    _entry(
        "xor",
        _of_two(np.bitwise_xor),
        called("xor"),
        Reference("`xor(x, y)`", _BITS_OF_INTEGERS, "`xor` is `#` in RisingWave, too"),
        Spelling(("xor",), (2, 2), "{name}(x, y)"),
        binding=ATOM,
    ),
    _entry("~", _complement, written("(~{})"), Reference("`~x`", _BITS_OF_INTEGERS), operands=1),
    _entry("<<", _left, _left_in_duckdb, Reference("`x << n`", _SHIFTED)),
    _entry(">>", _of_two(_right), written("({} >> {})"), Reference("`x >> n`", _SHIFTED)),
)
OPERATORS = tuple(entry.name for entry in ENTRIES)
