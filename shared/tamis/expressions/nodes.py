"""The expression tree of Tamis: SQL is parsed to it, proofs reason about it, and columns are evaluated by it.

It has three kinds of nodes: a column, a literal, and an operator with arguments. Code that walks an
expression (evaluation over columns, interval arithmetic, SQL for DuckDB, the JSON form in plans) dispatches
on `Call.op`, a name in the table of `functions`.

The meaning is the same in every evaluator:

- NULL is SQL's: arithmetic and comparisons with NULL are NULL; AND, OR and NOT are three-valued; a
  condition holds only where it is true. `least` and `greatest` skip NULL arguments and are NULL if all
  arguments are.
- INT and BIGINT are one 64-bit integer: `+ - * neg abs` are exact, and NULL where they overflow. `/`,
  `power` and the functions are DOUBLE, as is every arithmetic with a DOUBLE in it. A result that isn't
  finite is NULL: after a division by zero, the `ln` of a negative number, or an overflow.
- TIMESTAMP and INTERVAL are integers of microseconds: TIMESTAMP ± INTERVAL is a TIMESTAMP, TIMESTAMP -
  TIMESTAMP an INTERVAL.
- An integer and a DOUBLE are equal by value (2^53 + 1 is no DOUBLE) and ordered as DOUBLE, two integers as
  integers, strings by code points.
- `exp`, `ln`, `log10` and `power` are the C library's, since NumPy's own differ from them in the last bit.
- `floor`, `ceil`, `trunc` and `round` are DOUBLE. `round` takes a half away from zero; with a number of
  digits it is round(x * 10^digits) / 10^digits, each operation rounded, as in DuckDB. `mod` has the sign of
  its first operand, and is NULL for a divisor of 0. `sign` is an INT.
- The operators of bits are those of DuckDB on the 64 bits of an integer in two's complement. `<<` is NULL
  where an operand is negative or the result has more than 63 bits; `>>` keeps the sign, and is 0 for a shift
  that is negative or more than 63.
- `to_int` and `to_bigint` are the CASTs of numbers: to the nearest integer, a half to the even one; NULL
  beyond 32 or 64 bits.
- `coalesce` is the first of its arguments that isn't NULL.
- Text consists of code points. `lower` and `upper` map each to one code point. `||` is NULL if an operand is.
  `like` has a constant pattern, and perhaps a constant escape character.
- The functions of times are those of the Gregorian calendar in UTC, NULL outside of the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """Types of columns and expressions. Only expressions have INTERVALs; columns don't."""

    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"

    # The hash of an enumeration is a function of Python. Each hash of an expression needs some of these.
    __hash__ = str.__hash__

    @property
    def integral(self) -> bool:
        """Represented as int64."""
        return self in _INTEGRAL

    @property
    def numeric(self) -> bool:
        """Allowed in arithmetic."""
        return self in _NUMERIC


_INTEGRAL = frozenset((Type.INT, Type.BIGINT, Type.TIMESTAMP, Type.INTERVAL))
_NUMERIC = frozenset((Type.INT, Type.BIGINT, Type.DOUBLE))


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}  # after exchanging the operands
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}  # of a comparison that is false
LOGIC = ("and", "or", "not", "is_null")  # `and` and `or` take any number of arguments
# A Python function by its name, its declared shapes, and its arguments: see `python_functions`.
OPAQUE = "python"
# Integers of up to this size are DOUBLEs, too; beyond it a DOUBLE may stand for several integers.
LARGEST_EXACT_INTEGER = 2**53
# The most digits of `round`, on both sides of the point: up to here a power of ten is a DOUBLE.
MOST_DIGITS = 22
_operators: set[str] = set()


def name_operators(*names: str) -> None:
    """Let calls have these operators. The table of functions names its own here."""
    _operators.update(names)


@dataclass(frozen=True)
class Column:
    """An attribute of one source: `alias` is the source's name in the query (empty in a CHECK), `name` the
    base stream's column.
    """

    alias: str
    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant; INTERVAL and TIMESTAMP are integers of microseconds, `None` is NULL."""

    value: float | int | str | bool | None
    type: Type


@dataclass(frozen=True)
class Call:
    """An operator of the table of functions with its arguments and the type of its result.

    Raises ValueError for an operator that isn't in the table.
    """

    op: str
    args: tuple[Expr, ...]
    type: Type

    def __post_init__(self) -> None:
        if self.op not in _operators:
            import tamis.expressions.functions  # noqa: F401 - fills the table

            if self.op not in _operators:
                raise ValueError(f"there is no operator '{self.op}' in the table of functions")


Expr = Column | Literal | Call


def columns(expr: Expr) -> Iterator[Column]:
    """Every occurrence of a column in `expr`, left to right."""
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from columns(arg)


def aliases(expr: Expr) -> frozenset[str]:
    """The sources whose values `expr` depends on."""
    return frozenset(c.alias for c in columns(expr))


def conjunction(parts: tuple[Expr, ...]) -> Expr | None:
    """The AND of `parts`; None if there are none, which holds everywhere."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", parts, Type.BOOLEAN)


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """The operands of nested ANDs; empty for None, which holds everywhere."""
    if expr is None:
        return ()
    if isinstance(expr, Call) and expr.op == "and":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return (expr,)


def substitute(expr: Expr, replace: Callable[[Column], Expr]) -> Expr:
    """`expr` with every column replaced."""
    if isinstance(expr, Column):
        return replace(expr)
    if isinstance(expr, Call):
        return Call(expr.op, tuple(substitute(arg, replace) for arg in expr.args), expr.type)
    return expr
