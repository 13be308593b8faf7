"""Expressions as SQL for DuckDB, with the meaning of `nodes` to the bit, for the reference of `tamis verify`.

No operator raises an error for any row, so that DuckDB may reorder, fold and push conditions down.

- Integers are computed as HUGEINT, which holds every sum, difference and product of two BIGINTs, and cast
  back with TRY_CAST: NULL where they overflow.
- A Python function is a function of DuckDB over DOUBLEs, named `tamis_` and its name.
- An integer and a DOUBLE are equal by value: 2^53 + 1 is no DOUBLE. Their order is that of DOUBLEs.
- Doubles are IEEE's (DuckDB's default, `ieee_floating_point_ops`): functions return NaN or an infinity.
  A list of one and a lambda make that NULL and contain the operand once; a CASE would double the text at each
  level. As in `evaluate`, this is done only where a value that isn't finite would not stay so.

The columns must hold neither NaN nor infinities, and TIMESTAMP and INTERVAL as integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from tamis.errors import InputError
from tamis.expressions.duckdb_functions import computed, remainder, rounding
from tamis.expressions.nodes import (
    COMPARISONS,
    COMPUTED,
    KEEPS_NONFINITE,
    LARGEST_EXACT_INTEGER,
    OPAQUE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
)
from tamis.expressions.python_functions import name_of

_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
_FUNCTIONS = ("abs", "sqrt", "exp", "ln", "log10", "floor", "ceil", "trunc")
_CHOICES = ("least", "greatest", "coalesce", "case")  # one of their finite operands


def quoted(name: str) -> str:
    """`name` as an identifier of DuckDB, whatever characters it has.

    Raises InputError for the character that SQL text can't contain, NUL.
    """
    if "\0" in name:
        raise InputError("a name has a NUL character in it", hint="rename it")
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """`text` as a string of DuckDB."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def function_name(expr: Call) -> str:
    """The name in DuckDB of a Python function, which the session must have registered."""
    return f"tamis_{name_of(expr)}"


def column_name(column: Column) -> str:
    """The default for `to_duckdb`: "alias"."name", or "name" for a column without alias."""
    return f"{quoted(column.alias)}.{quoted(column.name)}" if column.alias else quoted(column.name)


def to_duckdb(expr: Expr, column: Callable[[Column], str] = column_name) -> str:
    """An expression of DuckDB with the value of `expr`; `column` returns the text of a column."""
    return _nonfinite_as_null(expr, _text(expr, column))


def _text(expr: Expr, column: Callable[[Column], str]) -> str:
    """`expr` as text; a value that isn't finite stands for NULL."""
    if isinstance(expr, Column):
        return column(expr)
    if isinstance(expr, Literal):
        return _literal(expr)
    texts = []
    for index, arg in enumerate(expr.args):
        text = _text(arg, column)
        keeps = expr.op in KEEPS_NONFINITE or (expr.op == "/" and index == 0)
        texts.append(text if keeps else _nonfinite_as_null(arg, text))
    return _call(expr, texts)


def _nonfinite_as_null(expr: Expr, text: str) -> str:
    """The text of `expr` with NULL for a value that isn't finite."""
    if expr.type is not Type.DOUBLE or not isinstance(expr, Call) or expr.op in _CHOICES:
        return text
    return f"list_transform([{text}], lambda x: CASE WHEN isfinite(x) THEN x END)[1]"


def _call(expr: Call, args: list[str]) -> str:
    if expr.op in ("and", "or"):
        return "(" + f" {expr.op.upper()} ".join(args) + ")"
    if expr.op == "not":
        return f"(NOT {args[0]})"
    if expr.op == "is_null":
        return f"({args[0]} IS NULL)"
    if expr.op in ("=", "!=") and (whole := _inexact_integer(expr.args)) is not None:
        equal = _equal(expr.args, args, whole)
        return equal if expr.op == "=" else f"(NOT {equal})"
    if expr.op in COMPARISONS:
        doubles = any(arg.type is Type.DOUBLE for arg in expr.args)
        a, b = _as_doubles(expr, args) if doubles else args
        return f"({a} {expr.op} {b})"
    if expr.op == OPAQUE:
        return f"{quoted(function_name(expr))}({', '.join(_as_doubles(expr, args)[2:])})"
    if expr.op in ("round", "sign", "to_int", "to_bigint"):
        return rounding(expr, args)
    if expr.op in COMPUTED:
        return computed(expr.op, args)
    if expr.type is Type.DOUBLE:
        args = _as_doubles(expr, args)
    if expr.op == "case":
        branches = [f"WHEN {when} THEN {then}" for when, then in zip(args[:-1:2], args[1::2], strict=True)]
        return f"(CASE {' '.join(branches)} ELSE {args[-1]} END)"
    if expr.op in ("least", "greatest", "coalesce"):
        return f"{expr.op}({', '.join(args)})"
    if expr.op == "mod":
        return remainder(expr, args)
    if expr.type is Type.DOUBLE:
        return _operation(expr.op, args)
    return f"TRY_CAST({_operation(expr.op, [f'CAST({arg} AS HUGEINT)' for arg in args])} AS BIGINT)"


def _inexact_integer(args: Sequence[Expr]) -> int | None:
    """The index of an integer argument that may not be a DOUBLE, if the other argument is a DOUBLE."""
    for index, other in ((0, 1), (1, 0)):
        arg = args[index]
        small = (
            isinstance(arg, Literal)
            and isinstance(arg.value, int)
            and abs(arg.value) <= LARGEST_EXACT_INTEGER
        )
        if arg.type.integral and args[other].type is Type.DOUBLE and not small:
            return index
    return None


def _equal(exprs: Sequence[Expr], texts: Sequence[str], whole: int) -> str:
    """Equality of an integer and a DOUBLE by value; DuckDB's own equality rounds the integer."""
    test = "(CAST({0} AS DOUBLE) = {1} AND {0} = TRY_CAST({1} AS HUGEINT))"
    if all(isinstance(expr, Column) for expr in exprs):
        return test.format(texts[whole], texts[1 - whole])  # a condition that DuckDB can join by hashing
    # The text contains the operands once, as in _nonfinite_as_null.
    pair = f"{{'whole': {texts[whole]}, 'real': {texts[1 - whole]}}}"
    inside = test.format("tamis_pair['whole']", "tamis_pair['real']")
    return f"list_transform([{pair}], lambda tamis_pair: {inside})[1]"


def _as_doubles(expr: Call, texts: Sequence[str]) -> list[str]:
    """The texts of the arguments, with integers cast to DOUBLE."""
    return [
        f"CAST({text} AS DOUBLE)" if arg.type.integral else text
        for arg, text in zip(expr.args, texts, strict=True)
    ]


def _operation(op: str, args: Sequence[str]) -> str:
    if op == "neg":
        return f"(- {args[0]})"
    if op in _FUNCTIONS:
        return f"{op}({args[0]})"
    return f"pow({args[0]}, {args[1]})" if op == "power" else f"({args[0]} {op} {args[1]})"


def _literal(literal: Literal) -> str:
    type_ = _TYPES.get(literal.type, "BIGINT")
    value = literal.value
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return f"CAST(NULL AS {type_})"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    # From a string, since DuckDB reads 0.1 as a DECIMAL, and rounds it differently in the cast.
    return f"CAST('{float(value)!r}' AS DOUBLE)" if type_ == "DOUBLE" else f"CAST('{value}' AS BIGINT)"
