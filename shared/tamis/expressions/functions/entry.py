"""Entries of the table of functions, and the table: what is known of each function and operator of SQL.

What an entry must have are its name, its types, its kernel and its text for DuckDB. The rules for proofs are
optional: without them nothing is proved about the function, and rounding errors of its result are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.functions.operands import Operand
from tamis.expressions.nodes import Call, Expr, Type, name_operators

Kernel: TypeAlias = Callable[[Sequence[Operand], Type], Operand]
"""Computes a column, given the operands and the type of the result."""
Types: TypeAlias = Callable[[Sequence[Type]], Type | None]
"""The type of the result for arguments of these types; None if they aren't taken."""
ForDuckdb: TypeAlias = Callable[[Call, Sequence[str]], str]
"""The text of a call for DuckDB, given those of its arguments: NULL where DuckDB would raise an error."""
Doubles: TypeAlias = NDArray[np.float64]

TEXT = (Type.VARCHAR,)
WHOLE = (Type.BIGINT, Type.INT)
NUMBERS = (Type.DOUBLE, *WHOLE)

# Precedence of operators in SQL text. ATOM is that of calls and names.
OR, AND, NOT, COMPARISON, CONCATENATION, BITS, SUM, PRODUCT, SIGN, ATOM = range(1, 11)


@dataclass(frozen=True)
class Signature:
    """The types that each argument may have, the first of which a NULL gets; the type of the result (None:
    that of the first argument); and how many arguments may be left out.
    """

    parameters: tuple[tuple[Type, ...], ...]
    result: Type | None
    optional: int = 0

    def __call__(self, types: Sequence[Type]) -> Type | None:
        """The type of the result for arguments of these types; None if they aren't taken."""
        least, most = len(self.parameters) - self.optional, len(self.parameters)
        if not least <= len(types) <= most:
            return None
        fitting = all(kind in some for kind, some in zip(types, self.parameters, strict=False))
        return (self.result or types[0]) if fitting else None


@dataclass(frozen=True)
class Reference:
    """A place in the table of functions of docs/sql.md. Entries with the same `value` share a line."""

    usages: str
    value: str
    elsewhere: str = ""


@dataclass(frozen=True)
class Spelling:
    """Names of a function in SQL, the least and the greatest number of its arguments, and its usage, for
    messages. The first name is the usual one. `operator` is empty if the function is rewritten.
    """

    names: tuple[str, ...]
    arguments: tuple[int, int]
    usage: str = "{name}(x)"
    reference: Reference | None = None
    operator: str = ""


@dataclass(frozen=True, kw_only=True)
class RealFunction:
    """Rules for proofs about a function of one real number that never falls.

    `slope` and `bend` are the first and the second derivative, as expressions of the argument and the value.
    """

    scalar: Callable[[float], float]  # as the kernel computes it
    ball: Callable[[Any], Any]  # the function of a ball of Arb that lies in its domain
    slope: Callable[[Expr, Expr], Expr]
    bend: Callable[[Expr, Expr], Expr]
    least: float = -math.inf  # the end of the domain
    closed: bool = False  # `least` belongs to the domain
    undefined: str = ""  # what a message says of an argument outside of the domain
    curvature: int = 0  # 1: convex; -1: concave; 0: neither
    correctly_rounded: bool = False  # otherwise the error is less than a unit in the last place
    lowest: float = -math.inf  # no result is less
    underflows: bool = True  # results may be so small that they have less than 53 bits
    # A bound of the change of the value by the error of the argument, from the value, that error, the size of
    # the value, and the least size of the exact argument. Without this rule, the error is unknown.
    moved: Callable[[Expr, Expr, Expr, Expr], Expr] | None = None


@dataclass(frozen=True)
class Steps:
    """Rules for proofs about a function of one number that never falls and is constant between its steps."""

    ends: Callable[[Doubles], Doubles]  # the function without its limit
    exact: Callable[[Fraction], int]
    limit: int | None = None  # the result is NULL from here on, and below -limit


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function or an operator of SQL."""

    name: str  # `Call.op`, which plans contain
    types: Types
    kernel: Kernel
    duckdb: ForDuckdb
    spelling: Spelling | None = None  # None for operators that have a syntax of their own
    reference: Reference | None = None
    refused: Callable[[Call], str | None] | None = None  # the mistake in arguments that must be constants
    # SQL text: the precedence; the symbol of an operator if it isn't the name; the type of a CAST.
    binding: int = ATOM
    symbol: str = ""
    cast: str = ""
    # The arguments that, where they aren't finite, make the result so, too.
    keeps_nonfinite: tuple[int, ...] = ()
    # Exact by definition, and nothing is proved of it; `between` encloses its numbers.
    computed: bool = False
    between: tuple[float, float] = (-math.inf, math.inf)
    real: RealFunction | None = None
    steps: Steps | None = None


FUNCTIONS: dict[str, Function] = {}
SPELLINGS: dict[str, Spelling] = {}


def register(*entries: Function | Spelling) -> None:
    """Add entries to the table: functions, and spellings of functions that are rewritten to others."""
    for entry in entries:
        spelling = entry.spelling if isinstance(entry, Function) else entry
        if isinstance(entry, Function):
            FUNCTIONS[entry.name] = entry
            name_operators(entry.name)
            spelling = replace(spelling, operator=entry.name) if spelling else None
        if spelling is not None:
            SPELLINGS.update(dict.fromkeys(spelling.names, spelling))


def references() -> Iterator[Reference]:
    """The references of all entries, in the order of the table."""
    seen: dict[int, Reference] = {}
    entries: list[Function | Spelling] = [*FUNCTIONS.values(), *SPELLINGS.values()]
    for entry in entries:
        if entry.reference is not None:
            seen[id(entry.reference)] = entry.reference
    yield from seen.values()


def common_type(types: Sequence[Type]) -> Type | None:
    """The type to which values of these types are converted; None if there is none.

    >>> common_type([Type.INT, Type.DOUBLE])
    <Type.DOUBLE: 'DOUBLE'>
    """
    if not types:
        return None
    if all(t is types[0] for t in types):
        return types[0]
    if all(t.numeric for t in types):
        return Type.DOUBLE if Type.DOUBLE in types else Type.BIGINT
    return None


def as_doubles(expr: Call, texts: Sequence[str]) -> list[str]:
    """The texts of the arguments for DuckDB, with integers cast to DOUBLE."""
    return [
        f"CAST({text} AS DOUBLE)" if arg.type.integral else text
        for arg, text in zip(expr.args, texts, strict=True)
    ]


def on_numbers(form: str) -> ForDuckdb:
    """An operation of DOUBLEs, or of integers, which is NULL where it overflows; `form` has a place for each
    argument.
    """

    def text(expr: Call, args: Sequence[str]) -> str:
        if expr.type is Type.DOUBLE:
            return form.format(*as_doubles(expr, args))
        return f"TRY_CAST({form.format(*(f'CAST({arg} AS HUGEINT)' for arg in args))} AS BIGINT)"

    return text


def written(form: str) -> ForDuckdb:
    """A text for DuckDB with a place for each argument."""
    return lambda _, args: form.format(*args)


def called(name: str) -> ForDuckdb:
    """A call of DuckDB's function of this name. If the result is a DOUBLE, so are the arguments."""

    def text(expr: Call, args: Sequence[str]) -> str:
        return f"{name}({', '.join(as_doubles(expr, args) if expr.type is Type.DOUBLE else args)})"

    return text


def once(operand: str, result: str) -> str:
    """The text for DuckDB of a result that names the operand `t`, and so contains it once."""
    return f"list_transform([{operand}], lambda t: {result})[1]"


def constant(node: Call, index: int) -> object:
    """The value of a constant argument; None for any other argument."""
    return getattr(node.args[index], "value", None)
