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

from collections.abc import Callable
from math import isfinite

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.errors import InputError
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type

_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
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
    function = FUNCTIONS[expr.op]
    texts = []
    for index, arg in enumerate(expr.args):
        text = _text(arg, column)
        texts.append(text if index in function.keeps_nonfinite else _nonfinite_as_null(arg, text))
    return function.duckdb(expr, texts)


def _nonfinite_as_null(expr: Expr, text: str) -> str:
    """The text of `expr` with NULL for a value that isn't finite."""
    if expr.type is not Type.DOUBLE or not isinstance(expr, Call) or expr.op in _CHOICES:
        return text
    return f"list_transform([{text}], lambda x: CASE WHEN isfinite(x) THEN x END)[1]"


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
