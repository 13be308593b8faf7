"""CASTs from and to text, as DuckDB makes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from tamis.expressions.functions.entry import NUMBERS, TEXT, Function, Signature, once, written
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.functions.texts import each, texts
from tamis.expressions.functions.times import of_valid_in_duckdb, text_of
from tamis.expressions.nodes import Call, Type

_MOST_EXPONENT = "32767"  # in DuckDB's casts to integers
_MOST_DIGITS = 20  # of a whole number that may have 64 bits
_DIGITS = re.compile("[.eE]")  # what follows the digits before the point
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def shown(type_: Type) -> Callable[[Any], str]:
    """The function that writes a value of a type as text, as CAST to VARCHAR does."""
    if type_ is Type.BOOLEAN:
        return lambda value: "true" if value else "false"
    return repr if type_ is Type.DOUBLE else str


def _to_varchar(args: Sequence[Operand], _: Type) -> Operand:
    (arg,) = args
    type_ = {"b": Type.BOOLEAN, "f": Type.DOUBLE}.get(arg.data.dtype.kind, Type.BIGINT)
    values, null = each(shown(type_), args)
    return Operand(texts(values), null)


def _time_to_varchar(args: Sequence[Operand], _: Type) -> Operand:
    values, null = each(text_of, args)
    none = np.array([value is None for value in values], np.bool_)
    return Operand(texts(values), any_null(none, null) if none.any() else null)


def _to_double(args: Sequence[Operand], _: Type) -> Operand:
    values, null = each(_number, args, math.nan)
    return Operand(np.array(values, np.float64), null, finite=False)


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _to_whole(args: Sequence[Operand], _: Type) -> Operand:
    found, _null = each(_whole, args)
    values = np.array([0 if one is None else one for one in found], np.int64)
    return Operand(values, np.array([one is None for one in found], np.bool_))


def _whole(text: str) -> int | None:
    """The whole number nearest to a decimal number, a half away from zero; None beyond 64 bits. As in
    DuckDB, the digits before the point have at most 64 bits, too, and the exponent has 16 bits.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits = _DIGITS.split(text.lstrip("+-"), maxsplit=1)[0].lstrip("0")
    if len(digits) > _MOST_DIGITS or not _fits(int(f"{'-' * text.startswith('-')}{digits or 0}")):
        return None
    exponent = (found[3] or "e0")[1:].lstrip("+-").lstrip("0")
    if len(exponent) > len(_MOST_EXPONENT) or exponent.zfill(len(_MOST_EXPONENT)) > _MOST_EXPONENT:
        return None
    number = Decimal(text)
    if number and number.adjusted() > _MOST_DIGITS:
        return None
    whole = int(number.to_integral_value(ROUND_HALF_UP))
    return whole if _fits(whole) else None


def _fits(whole: int) -> bool:
    return -(2**63) <= whole < 2**63


def _of_number(type_: str) -> Callable[[Call, Sequence[str]], str]:
    test = f"regexp_full_match(t, '{_NUMBER.pattern}')"
    return lambda _, args: once(args[0], f"CASE WHEN {test} THEN TRY_CAST(t AS {type_}) END")


ENTRIES = (
    Function(
        name="to_varchar",
        types=Signature(((Type.BOOLEAN, *NUMBERS),), Type.VARCHAR),
        kernel=_to_varchar,
        duckdb=written("CAST({} AS VARCHAR)"),
        cast="VARCHAR",
        computed=True,
    ),
    Function(
        name="time_to_varchar",
        types=Signature(((Type.TIMESTAMP,),), Type.VARCHAR),
        kernel=_time_to_varchar,
        duckdb=lambda _, args: of_valid_in_duckdb(args[0], "CAST(make_timestamp(t) AS VARCHAR)"),
        cast="VARCHAR",
        computed=True,
    ),
    Function(
        name="to_double",
        types=Signature((TEXT,), Type.DOUBLE),
        kernel=_to_double,
        duckdb=_of_number("DOUBLE"),
        cast="DOUBLE",
        computed=True,
    ),
    Function(
        name="to_whole",
        types=Signature((TEXT,), Type.BIGINT),
        kernel=_to_whole,
        duckdb=_of_number("BIGINT"),
        cast="BIGINT",
        computed=True,
    ),
)
