"""Expressions as SQL for DuckDB, with the meaning of `nodes` to the bit: the reference of `tamis verify`.

Every operator is total: it never raises, whatever the row, so DuckDB may reorder, fold and push as it likes.

- Integers are computed as HUGEINT, which holds every sum, difference and product of two BIGINTs, and cast
  back with TRY_CAST: NULL where they overflow.
- Doubles are IEEE's (DuckDB's default, `ieee_floating_point_ops`): functions answer with NaN or an infinity.
  That is made NULL by a list of one and a lambda, which mentions its operand once; a CASE would double the
  text at each level. As in `evaluate`, it is done only where a value that isn't finite would not stay so.

The columns must hold neither NaN nor infinities, and TIMESTAMP and INTERVAL as integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from tamis.errors import InputError
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type

_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
_FUNCTIONS = ("abs", "sqrt", "exp", "ln", "log10")
_PASS_ON = ("+", "-", "*", "neg", "abs", "sqrt", "ln", "log10")


def quoted(name: str) -> str:
    """`name` as an identifier of DuckDB, whatever characters it has.

    Raises InputError for the one that SQL text can't carry, NUL.
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
    """One expression of DuckDB with the value of `expr`; `column` gives the text for a column."""
    return _Text(column).settled(expr)


@dataclass(frozen=True)
class _Text:
    column: Callable[[Column], str]

    def settled(self, expr: Expr) -> str:
        """`expr` as text; what isn't finite is NULL."""
        text = self.text(expr)
        if (
            not isinstance(expr, Call)
            or expr.type is not Type.DOUBLE
            or expr.op in ("least", "greatest", "case")
        ):
            return text
        return f"list_transform([{text}], lambda x: CASE WHEN isfinite(x) THEN x END)[1]"

    def text(self, expr: Expr) -> str:
        """`expr` as text, of which a value that isn't finite stands for NULL."""
        if isinstance(expr, Column):
            return self.column(expr)
        if isinstance(expr, Literal):
            return _literal(expr)
        if expr.type is Type.DOUBLE:
            return self._double(expr)
        if expr.type.integral and expr.op not in ("least", "greatest", "case"):
            wide = [f"CAST({self.settled(arg)} AS HUGEINT)" for arg in expr.args]
            return f"TRY_CAST({_operation(expr.op, wide)} AS BIGINT)"
        return self._other(expr)

    def _double(self, expr: Call) -> str:
        if expr.op in ("least", "greatest", "case"):
            return self._other(expr)
        args = []
        for index, arg in enumerate(expr.args):
            passes = expr.op in _PASS_ON or (expr.op == "/" and index == 0)
            args.append(self._as(Type.DOUBLE, arg, self.text(arg) if passes else self.settled(arg)))
        return _operation(expr.op, args)

    def _other(self, expr: Call) -> str:
        if expr.op == "case":
            return self._case(expr)
        args = [self.settled(arg) for arg in expr.args]
        if expr.op in ("and", "or"):
            return "(" + f" {expr.op.upper()} ".join(args) + ")"
        if expr.op == "not":
            return f"(NOT {args[0]})"
        if expr.op == "is_null":
            return f"({args[0]} IS NULL)"
        mixed = any(arg.type is Type.DOUBLE for arg in expr.args)
        if mixed:
            args = [self._as(Type.DOUBLE, arg, text) for arg, text in zip(expr.args, args, strict=True)]
        if expr.op in COMPARISONS:
            return f"({args[0]} {expr.op} {args[1]})"
        return f"{expr.op}({', '.join(args)})"

    def _case(self, expr: Call) -> str:
        branches = []
        for condition, value in zip(expr.args[:-1:2], expr.args[1::2], strict=True):
            then = self._as(expr.type, value, self.settled(value))
            branches.append(f"WHEN {self.settled(condition)} THEN {then}")
        otherwise = self._as(expr.type, expr.args[-1], self.settled(expr.args[-1]))
        return f"(CASE {' '.join(branches)} ELSE {otherwise} END)"

    @staticmethod
    def _as(type_: Type, expr: Expr, text: str) -> str:
        return f"CAST({text} AS DOUBLE)" if type_ is Type.DOUBLE and expr.type is not Type.DOUBLE else text


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
    # Through text, since DuckDB reads 0.1 as a DECIMAL and casts that with another rounding.
    return f"CAST('{float(value)!r}' AS DOUBLE)" if type_ == "DOUBLE" else f"CAST('{value}' AS BIGINT)"
