"""Functions that round, of text and of time, and operators of bits, as SQL for DuckDB.

Where DuckDB would raise an error, the SQL says NULL. A lambda over a list of one contains an operand once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.instants import FIRST, LAST
from tamis.expressions.nodes import Call, Type

_MOST_CHARACTERS = 2**32 - 1  # DuckDB's SUBSTRING takes no larger numbers
# Of HUGEINTs, where no shift raises an error.
_LEFT_SHIFT = (
    "CASE WHEN t['of'] >= 0 AND t['by'] >= 0 THEN TRY_CAST("
    "CAST(t['of'] AS HUGEINT) * (CAST(1 AS HUGEINT) << CAST(greatest(least(t['by'], 63), 0) AS HUGEINT))"
    " AS BIGINT) END"
)
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


def rounding(expr: Call, args: Sequence[str]) -> str:
    """`sign`, `round` and the CASTs between numbers; `args` are the texts of the arguments."""
    if expr.op == "round":
        number, *digits = args
        return f"round({number}, CAST({digits[0]} AS INTEGER))" if digits else f"round({number})"
    if expr.op == "sign":
        return f"CAST(sign({args[0]}) AS BIGINT)"
    text = f"TRY_CAST({args[0]} AS {'INTEGER' if expr.op == 'to_int' else 'BIGINT'})"
    return f"CAST({text} AS BIGINT)" if expr.op == "to_int" else text


def remainder(expr: Call, args: Sequence[str]) -> str:
    """`mod`. A division of integers by 0 raises an error, and of DOUBLEs it gives NaN."""
    if expr.type is Type.DOUBLE:
        return f"({args[0]} % {args[1]})"
    a, b = (f"CAST({arg} AS HUGEINT)" for arg in args)
    return f"TRY_CAST(({a} % nullif({b}, 0)) AS BIGINT)"


def computed(op: str, args: Sequence[str]) -> str:
    """A function of `nodes.COMPUTED`."""
    match op:
        case "||":
            return f"({args[0]} || {args[1]})"
        case "like":
            escape = f" ESCAPE {args[2]}" if len(args) > 2 else ""
            return f"({args[0]} LIKE {args[1]}{escape})"
        case "&" | "|" | ">>":
            return f"({args[0]} {op} {args[1]})"
        case "~":
            return f"(~{args[0]})"
        case "<<":
            return _once(f"{{'of': {args[0]}, 'by': {args[1]}}}", _LEFT_SHIFT)
        case "substring":
            return f"substring({', '.join((args[0], *map(_limited, args[1:])))})"
        case "to_varchar":
            return f"CAST({args[0]} AS VARCHAR)"
        case "to_double":
            return _once(
                args[0], f"CASE WHEN regexp_full_match(t, '{_NUMBER}') THEN TRY_CAST(t AS DOUBLE) END"
            )
        case "to_whole":
            return _once(
                args[0], f"CASE WHEN regexp_full_match(t, '{_NUMBER}') THEN TRY_CAST(t AS BIGINT) END"
            )
        case "time_to_varchar":
            return _of_time(args[0], "CAST(make_timestamp(t) AS VARCHAR)")
        case "date_part":
            return _of_time(args[1], f"date_part({args[0]}, make_timestamp(t))")
        case "date_trunc":
            return _of_time(args[1], f"epoch_us(date_trunc({args[0]}, make_timestamp(t))::TIMESTAMP)")
        case "epoch":
            return f"(CAST({args[0]} AS DOUBLE) / CAST(1000000 AS DOUBLE))"
        case "to_timestamp":
            inside = f"t >= {FIRST // 1_000_000} AND t < {(LAST + 1) // 1_000_000}"
            return _once(
                f"CAST({args[0]} AS DOUBLE)", f"CASE WHEN {inside} THEN epoch_us(to_timestamp(t)) END"
            )
    return f"{op}({', '.join(args)})"


def _once(operand: str, result: str) -> str:
    """The text of a result that names the operand `t`."""
    return f"list_transform([{operand}], lambda t: {result})[1]"


def _of_time(operand: str, result: str) -> str:
    """A function of a time in the years that it is defined for."""
    return _once(operand, f"CASE WHEN t BETWEEN {FIRST} AND {LAST} THEN {result} END")


def _limited(operand: str) -> str:
    most = _MOST_CHARACTERS
    return _once(operand, f"CASE WHEN t > {most} THEN {most} WHEN t < -{most} THEN -{most} ELSE t END")
