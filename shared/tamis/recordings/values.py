"""Convert one column of a file to a vector of its declared type, as strictly as an edge does."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, Vector
from tamis.messaging.dead_letters import Reason
from tamis.messaging.records import END_OF_TIME
from tamis.recordings.json_values import convert
from tamis.recordings.rows import JsonRows, Rows
from tamis.recordings.times import PER_SECOND, TimeUnit, date, iso_ticks, iso_time, plausible_unit
from tamis.wording.file_text import number_hint

_ARROW = {
    Type.VARCHAR: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int64(),
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
}


@dataclass(frozen=True)
class Values:
    """A column. `unusable`: the mask of values that an edge would put to the dead letters; `not_finite`: that
    of NaN and infinite numbers among them. `given`: times as the file writes them: text, whole numbers, or
    Arrow's timestamps.
    """

    vector: Vector
    unusable: Mask
    given: pa.ChunkedArray | None = None
    not_finite: Mask | None = None


def values_of(rows: Rows, name: str, type_: Type, unit: TimeUnit = "us") -> Values:
    """The values of one column; `unit` is the unit of times that are numbers. Raises InputError, with the
    position, for the first value that isn't of the type.
    """
    if isinstance(rows, JsonRows):
        return _of_json(rows, name, type_, unit)
    cells, place = rows.column(name), partial(rows.place, name)
    if type_ is Type.VARCHAR and rows.textual:  # where NaN is a text
        not_finite = np.zeros(len(cells), np.bool_)
    else:
        cells, not_finite = _without_not_finite(cells, rows.textual)
    values = _finite_values(cells, type_, rows.textual, place, unit)
    return replace(values, unusable=values.unusable | not_finite, not_finite=not_finite)


def _finite_values(
    cells: pa.ChunkedArray, type_: Type, textual: bool, place: Callable[[int], str], unit: TimeUnit
) -> Values:
    if type_ is Type.TIMESTAMP:
        return _times(cells, textual, place, unit)
    typed = _typed(cells, type_, textual, place)
    null = np.asarray(typed.is_null().to_numpy(), np.bool_)
    if type_ is Type.VARCHAR:
        text = np.asarray(typed.to_numpy(), np.object_)
        return Values(_vector(text, null), np.zeros(len(null), np.bool_))
    filler = pa.scalar(False if type_ is Type.BOOLEAN else 0, _ARROW[type_])
    data = np.asarray(typed.fill_null(filler).to_numpy())
    return Values(_vector(data, null), np.zeros(len(data), np.bool_))


def _without_not_finite(cells: pa.ChunkedArray, textual: bool) -> tuple[pa.ChunkedArray, Mask]:
    """The cells with NULL in place of NaN and infinite numbers, and the mask of these."""
    mask = np.zeros(len(cells), np.bool_)
    if pa.types.is_floating(cells.type):
        mask = ~np.isfinite(np.asarray(cells.fill_null(0.0).to_numpy(), np.float64))
    elif textual and _is_text(cells.type):
        suspects = pc.match_substring_regex(cells, _NOT_FINITE, ignore_case=True).fill_null(False)
        for row in np.flatnonzero(np.asarray(suspects.to_numpy(), np.bool_)).tolist():
            mask[row] = not isfinite(float(cells[row].as_py()))
    if not mask.any():
        return cells, mask
    return pc.if_else(pa.chunked_array([pa.array(mask)]), pa.scalar(None, cells.type), cells), mask


# Names of numbers that aren't finite, and numbers that may be too large: with an exponent of three digits, or
# with 300 digits.
_NOT_FINITE = r"^\s*[-+]?(nan|inf(inity)?|[0-9.]+e[+]?0*[0-9]{3,}|[0-9]{300,}[0-9.e+]*)\s*$"


def nulls(type_: Type, rows: int) -> Values:
    """A column of NULLs."""
    given = pa.chunked_array([pa.nulls(rows, pa.string())]) if type_ is Type.TIMESTAMP else None
    return Values(Vector.nulls(type_, rows), np.zeros(rows, np.bool_), given)


def _of_json(rows: JsonRows, name: str, type_: Type, unit: TimeUnit) -> Values:
    """The values as an edge decodes them; but fractions of microseconds are errors."""
    values = rows.values(name)
    vector, offences = convert(name, values, type_, unit)
    wrong = {one.row for one in offences if one.reason is Reason.WRONG_TYPE}
    if type_ is Type.TIMESTAMP and unit == "us":
        wrong |= {row for row, v in enumerate(values) if type(v) is float and isfinite(v) and v != int(v)}
    if wrong:
        raise _misfit(values[min(wrong)], type_, rows.place(name, min(wrong)))
    unusable = np.zeros(len(values), np.bool_)
    unusable[[one.row for one in offences]] = True
    not_finite = np.zeros(len(values), np.bool_)
    not_finite[[one.row for one in offences if one.reason is Reason.NOT_A_NUMBER]] = True
    given = _given(values, vector, unusable, unit) if type_ is Type.TIMESTAMP else None
    return Values(vector, unusable, given, not_finite)


def _given(values: list[Any], vector: Vector, unusable: Mask, unit: TimeUnit) -> pa.ChunkedArray:
    """Times of JSON as the file writes them."""
    ticks = pa.chunked_array([pa.array(vector.data, mask=vector.null)])
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        return pa.chunked_array([pa.array(values, pa.string())])
    if str in kinds:
        return pa.chunked_array([iso_text(ticks)])
    if unit == "us" and not unusable.any():
        return ticks
    whole = kinds <= {int} and all(v is None or -(2**63) <= v < 2**63 for v in values)
    kind = pa.int64() if whole else pa.float64()
    return pa.chunked_array([pa.array(values, kind)])


def _vector(data: np.ndarray, null: Mask) -> Vector:
    return Vector(data, null if null.any() else None)


def _typed(
    cells: pa.ChunkedArray, type_: Type, textual: bool, place: Callable[[int], str]
) -> pa.ChunkedArray:
    if cells.null_count == len(cells):  # then its type says nothing
        return pa.chunked_array([pa.nulls(len(cells), _ARROW[type_])])
    if not (textual or _is_accepted(cells.type, type_)):
        row = int(np.flatnonzero(cells.is_valid().to_numpy())[0])
        raise _misfit(cells[row].as_py(), type_, place(row))
    try:
        if type_ in (Type.INT, Type.BIGINT):
            return _whole(cells)
        return cells.cast(_ARROW[type_])
    except pa.ArrowException as error:
        row = next(i for i in range(len(cells)) if not _converts(cells.slice(i, 1), type_))
        raise _misfit(cells[row].as_py(), type_, place(row)) from error


def _whole(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as integers; 5.0 is an integer."""
    try:
        return cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return cells.cast(pa.float64()).cast(pa.int64())


def _number(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as integers, or as DOUBLEs if one of them isn't an integer."""
    try:
        return cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return cells.cast(pa.float64())


def _converts(one: pa.ChunkedArray, type_: Type) -> bool:
    try:
        _whole(one) if type_ in (Type.INT, Type.BIGINT) else one.cast(_ARROW[type_])
    except pa.ArrowException:
        return False
    return True


def _is_accepted(kind: pa.DataType, type_: Type) -> bool:
    if type_ is Type.VARCHAR:
        return bool(_is_text(kind))
    if type_ is Type.BOOLEAN:
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _misfit(value: object, type_: Type, where: str) -> InputError:
    if type_ is Type.TIMESTAMP:
        hint = "write ISO 8601, or whole microseconds since 1970"
        if isinstance(value, datetime.time):
            hint = "add its date"
        elif isinstance(value, datetime.timedelta):
            hint = "add it to the time that it counts from"
        elif (said := _in_another_unit(value)) is not None:
            hint = said
        return InputError(f"{value!r:.60} is not a time", where=where, hint=hint)
    number = number_hint(value) if isinstance(value, str) and type_.numeric else None
    hint = number or "correct it or leave the row out"
    return InputError(f"{value!r:.60} is not of type {type_}", where=where, hint=hint)


def _in_another_unit(value: object) -> str | None:
    """A hint for a number with a fraction, which whole microseconds don't have; None for anything else."""
    try:
        number = float(value) if isinstance(value, str | int | float | Decimal) else math.nan
    except ValueError:
        return None
    if not isfinite(number):
        return None
    fits = plausible_unit(round(number), "us")
    if fits is None:
        return None
    moment = date(round(number * 1_000_000 / PER_SECOND[fits]))
    return (
        f"numbers are read as whole microseconds; in {fits} it would be {moment}: set the time unit to {fits}"
    )


def _times(cells: pa.ChunkedArray, textual: bool, place: Callable[[int], str], unit: TimeUnit) -> Values:
    """Times from ISO 8601 (UTC where no zone is given), or from numbers of `unit`; whole ones if
    microseconds.
    """
    if pa.types.is_date(cells.type):  # a day is its first instant
        cells = cells.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(cells.type):
        data = cells.cast(pa.timestamp("us", cells.type.tz), safe=False).cast(pa.int64())
        return _ticks(data, cells)
    if not (_is_text(cells.type) or _is_accepted(cells.type, Type.DOUBLE)) and cells.null_count < len(cells):
        row = int(np.flatnonzero(cells.is_valid().to_numpy())[0])
        raise _misfit(cells[row].as_py(), Type.TIMESTAMP, place(row))
    if not _is_text(cells.type):
        number = Type.DOUBLE if _fractional(cells.type) and unit != "us" else Type.BIGINT
        return _from_numbers(_typed(cells, number, False, place), unit)
    text = cells.cast(pa.string())
    if textual:
        try:
            return _from_numbers(_whole(text) if unit == "us" else _number(text), unit)
        except pa.ArrowInvalid:
            pass  # some are ISO 8601, or mistakes
    try:
        return _ticks(iso_ticks(text), text)
    except pa.ArrowInvalid:
        one_by_one = [
            None if cell is None else _time(cell, textual, partial(place, row), unit)
            for row, cell in enumerate(text.to_pylist())
        ]
        return _ticks(pa.chunked_array([pa.array(one_by_one, pa.int64())]), text)


def _time(cell: str, textual: bool, place: Callable[[], str], unit: TimeUnit) -> int:
    # As an edge reads cells: 20260101 is a number, also where the cells around it are dates.
    if textual and _converts(number := pa.chunked_array([[cell]]), Type.BIGINT):
        return int(_scaled(int(_whole(number)[0].as_py()), unit))
    try:
        return iso_time(cell)
    except ValueError:
        raise _misfit(cell, Type.TIMESTAMP, place()) from None


def _fractional(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _from_numbers(numbers: pa.ChunkedArray, unit: TimeUnit) -> Values:
    """Numbers of `unit` as microseconds, rounded to whole ones."""
    if unit == "us":
        return _ticks(numbers, numbers)
    null = np.asarray(numbers.is_null().to_numpy(), np.bool_)
    data = np.asarray(numbers.fill_null(0).to_numpy())
    if data.dtype.kind == "f":
        exact = data * (1_000_000 / PER_SECOND[unit])
        beyond = ~(np.abs(exact) < END_OF_TIME)  # NaN too
        return Values(_vector(np.rint(np.where(beyond, 0, exact)).astype(np.int64), null), beyond, numbers)
    per = PER_SECOND[unit]
    most = END_OF_TIME * per // 1_000_000
    beyond = (data >= most) | (data <= -most)
    return Values(_vector(_scaled(np.where(beyond, 0, data), unit), null), beyond, numbers)


def _scaled(number: Any, unit: TimeUnit) -> Any:
    """Whole numbers of `unit` as microseconds."""
    per = PER_SECOND[unit]
    return number // (per // 1_000_000) if per > 1_000_000 else number * (1_000_000 // per)


def _ticks(whole: pa.ChunkedArray, given: pa.ChunkedArray) -> Values:
    null = np.asarray(whole.is_null().to_numpy(), np.bool_)
    data = np.asarray(whole.fill_null(0).to_numpy(), np.int64)
    beyond = (data >= END_OF_TIME) | (data <= -END_OF_TIME)
    return Values(_vector(data, null), beyond, given)


def iso_text(ticks: pa.Array) -> pa.Array:
    """Microseconds since 1970 as ISO 8601 in UTC, with as many fractional digits as needed."""
    text = pc.strftime(ticks.cast(pa.timestamp("us", "UTC")), format="%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.?0+$", ""), "Z", "")
