"""Expressions as SQL for DuckDB, with the meaning of `nodes` to the bit: the reference of `tamis verify`.

Every operator is total: it never raises, whatever the row, so DuckDB may reorder, fold and push as it likes.

- Integers are computed as HUGEINT, which holds every sum, difference and product of two BIGINTs, and cast
  back with TRY_CAST: NULL where they overflow.
- A function of Python is one of DuckDB: `tamis_` and its name, of DOUBLEs.
- A whole number and a DOUBLE are equal by value: 2^53 + 1 is no DOUBLE. Their order is that of DOUBLEs.
- Doubles are IEEE's (DuckDB's default, `ieee_floating_point_ops`): functions answer with NaN or an infinity.
  That is made NULL by a list of one and a lambda, which mentions its operand once; a CASE would double the
  text at each level. As in `evaluate`, it is done only where a value that isn't finite would not stay so.

The columns must hold neither NaN nor infinities, and TIMESTAMP and INTERVAL as integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from tamis.errors import InputError
from tamis.expressions.nodes import COMPARISONS, OPAQUE, Call, Column, Expr, Literal, Type
from tamis.expressions.opaque import name_of

_TYPES = {Type.VARCHAR: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DOUBLE: "DOUBLE"}  # all others are BIGINT
_FUNCTIONS = ("abs", "sqrt", "exp", "ln", "log10")
_CHOICES = ("least", "greatest", "case")  # of finite values one
_EXACT = 2**53  # beyond it a DOUBLE may stand for several whole numbers
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


def function_name(expr: Call) -> str:
    """The name in DuckDB of a function of Python, which the session must have: see `register`."""
    return f"tamis_{name_of(expr)}"


def column_name(column: Column) -> str:
    """The default for `to_duckdb`: "alias"."name", or "name" for a column without alias."""
    return f"{quoted(column.alias)}.{quoted(column.name)}" if column.alias else quoted(column.name)


def to_duckdb(expr: Expr, column: Callable[[Column], str] = column_name) -> str:
    """One expression of DuckDB with the value of `expr`; `column` gives the text for a column."""
    return _settled(expr, _text(expr, column))


def _text(expr: Expr, column: Callable[[Column], str]) -> str:
    """`expr` as text, of which a value that isn't finite stands for NULL."""
    if isinstance(expr, Column):
        return column(expr)
    if isinstance(expr, Literal):
        return _literal(expr)
    texts = []
    for index, arg in enumerate(expr.args):
        text = _text(arg, column)
        passes_on = expr.op in _PASS_ON or (expr.op == "/" and index == 0)
        texts.append(text if passes_on else _settled(arg, text))
    return _call(expr, texts)


def _settled(expr: Expr, text: str) -> str:
    """The text of `expr` so that what isn't finite is NULL."""
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
    if expr.op in ("=", "!=") and (whole := _whole(expr.args)) is not None:
        equal = _equal(expr.args, args, whole)
        return equal if expr.op == "=" else f"(NOT {equal})"
    if expr.op in COMPARISONS:
        doubles = any(arg.type is Type.DOUBLE for arg in expr.args)
        a, b = _as_doubles(expr, args) if doubles else args
        return f"({a} {expr.op} {b})"
    if expr.op == OPAQUE:
        return f"{quoted(function_name(expr))}({', '.join(_as_doubles(expr, args)[2:])})"
    if expr.type is Type.DOUBLE:
        args = _as_doubles(expr, args)
    if expr.op == "case":
        branches = [f"WHEN {when} THEN {then}" for when, then in zip(args[:-1:2], args[1::2], strict=True)]
        return f"(CASE {' '.join(branches)} ELSE {args[-1]} END)"
    if expr.op in ("least", "greatest"):
        return f"{expr.op}({', '.join(args)})"
    if expr.type is Type.DOUBLE:
        return _operation(expr.op, args)
    return f"TRY_CAST({_operation(expr.op, [f'CAST({arg} AS HUGEINT)' for arg in args])} AS BIGINT)"


def _whole(args: Sequence[Expr]) -> int | None:
    """Which of two arguments is a whole number that a DOUBLE may not hold, where the other is a DOUBLE."""
    for index, other in ((0, 1), (1, 0)):
        arg = args[index]
        small = isinstance(arg, Literal) and isinstance(arg.value, int) and abs(arg.value) <= _EXACT
        if arg.type.integral and args[other].type is Type.DOUBLE and not small:
            return index
    return None


def _equal(exprs: Sequence[Expr], texts: Sequence[str], whole: int) -> str:
    """Equality of a whole number and a DOUBLE by value; DuckDB's own rounds the whole number."""
    test = "(CAST({0} AS DOUBLE) = {1} AND {0} = TRY_CAST({1} AS HUGEINT))"
    if all(isinstance(expr, Column) for expr in exprs):
        return test.format(texts[whole], texts[1 - whole])  # which DuckDB can hash
    # Its operands are mentioned once, as above.
    pair = f"{{'whole': {texts[whole]}, 'real': {texts[1 - whole]}}}"
    inside = test.format("tamis_pair['whole']", "tamis_pair['real']")
    return f"list_transform([{pair}], lambda tamis_pair: {inside})[1]"


def _as_doubles(expr: Call, texts: Sequence[str]) -> list[str]:
    """The arguments' texts, with integers cast."""
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
    # Through text, since DuckDB reads 0.1 as a DECIMAL and casts that with another rounding.
    return f"CAST('{float(value)!r}' AS DOUBLE)" if type_ == "DOUBLE" else f"CAST('{value}' AS BIGINT)"
