"""Bracket omission of the rows of a file or a frame, by the columns of time, value and key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from math import floor, isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.declarations.units import parse_duration
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.offline.wording import FUNCTION, Wording
from tamis.omission.batch import Ties, retained_by_key
from tamis.omission.columns import Sides
from tamis.recordings.rows import Rows
from tamis.recordings.times import PER_SECOND, TimeUnit, implausibility
from tamis.recordings.values import values_of
from tamis.wording.file_text import separator_hint

Span = str | int | float | timedelta | np.timedelta64
"""A length of time: a duration, text such as 30s, or a number in the unit of the times, also as text."""

_NUMBER = re.compile(r"^-?\d{1,30}(\.\d{1,30})?$", re.ASCII)

# Fractional times become whole numbers by a power of ten. No clock is finer than nanoseconds.
_FINEST = 9
_NANOSECONDS = 1_000  # in a microsecond
_MICROSECOND = timedelta(microseconds=1)
# Microseconds in the units of NumPy's durations. Months and years have no fixed length.
_OF_UNIT = {
    "ns": Fraction(1, 1_000),
    "us": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
    "D": Fraction(86_400_000_000),
    "W": Fraction(604_800_000_000),
}


@dataclass(frozen=True)
class Rule:
    """The rule of omission. The columns are those of the event time, the value and the key."""

    interval: Span
    sides: Sides = "both"
    time: str = "ts"
    value: str = "v"
    key: Sequence[str] = ()
    max_delay: Span | None = None
    ties: Ties = "fewest"
    time_unit: TimeUnit | None = None  # of times that are numbers, if it is known


@dataclass(frozen=True)
class Retained:
    """The retained rows of `rows`, by their numbers from 0, in the order of time. `order`: the numbers of all
    rows in the order of time. `warning`: says that times are implausible.
    """

    numbers: NDArray[np.int64]
    order: NDArray[np.int64]
    warning: str | None


@dataclass(frozen=True)
class _Times:
    """Times as whole numbers, `ticks`. `scale`: ticks in one unit of a column of numbers; None for dates.
    `per_microsecond`: ticks in a microsecond; None if the unit of the numbers is unknown.
    """

    ticks: NDArray[np.int64]
    scale: int | None
    per_microsecond: Fraction | None


def retained_rows(rows: Rows, rule: Rule, wording: Wording) -> Retained:
    """The rows that a threshold alert over windows up to the interval can need.

    Times are dates, text in ISO 8601, or numbers. Dates that are finer than microseconds are compared as they
    are. Raises InputError, which names the column and the row.
    """
    if not rows.has(rule.time):
        known = ", ".join(rows.names) or "no columns"
        separated = separator_hint(rows.names) if rows.textual else None
        hint = separated or f"name the column of the times with {wording.time}; it has {known}"
        raise InputError(f"no column {rule.time}", where=rows.where, hint=hint)
    times = _times(rows, rule.time, rule.time_unit)
    warning = None
    if times.per_microsecond is not None:
        said = implausibility(times.ticks / float(times.per_microsecond), rule.time_unit)
        warning = None if said is None else f"warning: {rows.where}: {said}"
    if not len(rows):  # no time shows the unit
        times = _Times(times.ticks, 1, None) if _is_number(rule.interval) else _dates(times.ticks)
    span = _span(rule.interval, times, wording.interval, wording)
    delay = None if rule.max_delay is None else _span(rule.max_delay, times, wording.max_delay, wording)
    keep = retained_by_key(
        _key_codes(rows, rule.key),
        times.ticks,
        _compared(rows, rule.value),
        span,
        sides=rule.sides,
        ties=rule.ties,
        max_delay=delay,
    )
    order = np.argsort(times.ticks, kind="stable")
    return Retained(order[keep[order]], order, warning)


def duration(span: Span, option: str) -> int:
    """A duration in whole microseconds, rounded down. Raises InputError for a number, which has no unit, and
    for what is negative.
    """
    return _span(span, _dates(np.empty(0, np.int64)), option, FUNCTION)


def _dates(microseconds: NDArray[np.int64]) -> _Times:
    return _Times(microseconds, None, Fraction(1))


def _times(rows: Rows, name: str, unit: TimeUnit | None) -> _Times:
    """The times of a column. `unit`: that of numbers, if it is known."""
    cells = rows.column(name)
    if cells.null_count:
        raise InputError(
            "a time is missing",
            where=rows.place(name, _first(cells.is_null().to_numpy())),
            hint="leave the row out",
        )
    kind = cells.type
    if pa.types.is_integer(kind) or (rows.textual and _converts(cells, pa.int64())):
        return _of_unit(np.asarray(cells.cast(pa.int64()).to_numpy(), np.int64), 1, unit)
    dated = pa.types.is_timestamp(kind) or pa.types.is_boolean(kind)  # a truth value isn't a number
    if not dated and _converts(cells, pa.float64(), rows.textual):
        return _of_unit(*_scaled(_numbers(rows, name, "time"), f"{rows.where}, column {name}"), unit)
    found = values_of(rows, name, Type.TIMESTAMP)
    if found.unusable.any():
        raise InputError(
            "outside of the range of event times",
            where=rows.place(name, _first(found.unusable)),
            hint="correct it or leave the row out",
        )
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _Times(np.asarray(cells.cast(pa.int64()).to_numpy(), np.int64), None, Fraction(_NANOSECONDS))
    return _dates(np.asarray(found.vector.data, np.int64))


def _of_unit(ticks: NDArray[np.int64], scale: int, unit: TimeUnit | None) -> _Times:
    return _Times(ticks, scale, None if unit is None else Fraction(scale * PER_SECOND[unit], 1_000_000))


def _scaled(times: NDArray[np.float64], where: str) -> tuple[NDArray[np.int64], int]:
    for power in range(_FINEST + 1):
        scale = 10**power
        ticks = np.rint(times * scale)
        if np.abs(ticks).max(initial=0) < 2**53 and (ticks / scale == times).all():
            return ticks.astype(np.int64), scale
    raise InputError("times are too fine or too large", where=where, hint="write ISO 8601 or whole numbers")


def _numbers(rows: Rows, name: str, what: str) -> NDArray[np.float64]:
    found = values_of(rows, name, Type.DOUBLE)
    missing = found.unusable if found.vector.null is None else found.unusable | found.vector.null
    if missing.any():
        row = _first(missing)
        given = rows.column(name)[row].as_py()
        raise InputError(
            f"a {what} is missing" if given is None else f"{given!r} can't be compared",
            where=rows.place(name, row),
            hint="leave the row out",
        )
    return np.asarray(found.vector.data, np.float64)


def _compared(rows: Rows, name: str) -> NDArray[np.float64]:
    """Numbers in the order of the values. The order of decimals is that of their digits, which a DOUBLE may
    not have: they are numbered.
    """
    numbers, cells = _numbers(rows, name, "value"), rows.column(name)
    if not pa.types.is_decimal(cells.type):
        return numbers
    return np.asarray(pc.rank(cells, tiebreaker="dense").to_numpy(), np.float64)


def _converts(cells: pa.ChunkedArray, target: pa.DataType, from_text: bool = True) -> bool:
    if pa.types.is_string(cells.type) and not from_text:
        return False
    try:
        cells.cast(target)
    except pa.ArrowException:
        return False
    return True


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


def _is_number(span: Span) -> bool:
    """True for a number, also as text. NumPy counts its durations among the whole numbers."""
    if isinstance(span, str):
        return _NUMBER.match(span) is not None
    return isinstance(span, int | float | np.integer | np.floating) and not isinstance(
        span, bool | np.timedelta64
    )


def _span(span: Span, times: _Times, option: str, wording: Wording) -> int:
    """A span in ticks of the times. Differences of whole numbers are whole, so it is rounded down."""
    if _is_number(span):
        number = _number(span, option)
        if times.scale is None:
            raise InputError(
                f"{span} has no unit, but the times are dates",
                where=option,
                hint=f"write {span}s or {span}ms",
            )
        ticks = floor(number * times.scale)
    elif times.per_microsecond is None:
        raise InputError(
            f"{span!r} is no number, but the times are numbers",
            where=option,
            hint=f"write a number in the unit of the times{wording.or_unit}",
        )
    else:
        ticks = floor(_microseconds(span, option) * times.per_microsecond)
    if ticks < 0:
        raise InputError(f"{span} is negative", where=option, hint="write 0 or more")
    return ticks


def _number(span: Span, option: str) -> Fraction:
    if isinstance(span, float | np.floating) and not isfinite(span):
        raise InputError(f"{span} is no length of time", where=option, hint="write a finite number")
    return Fraction(str(span))


def _microseconds(span: Span, option: str) -> Fraction:
    """A duration in microseconds."""
    if isinstance(span, str):
        return Fraction(parse_duration(span))
    if isinstance(span, timedelta):
        # The durations of pandas also have nanoseconds.
        return Fraction(span // _MICROSECOND) + Fraction(getattr(span, "nanoseconds", 0), _NANOSECONDS)
    if isinstance(span, np.timedelta64) and not np.isnat(span):
        unit, step = np.datetime_data(span.dtype)
        if unit in _OF_UNIT:
            return _OF_UNIT[unit] * step * int(span.view(np.int64))
    raise InputError(f"{span!r} is no length of time", where=option, hint="write a duration, such as '30s'")


def _key_codes(rows: Rows, names: Sequence[str]) -> NDArray[np.int64]:
    """Codes of the keys: equal keys have equal codes. If all keys are numbers, they are compared by value."""
    if not names:
        return np.zeros(len(rows), np.int64)
    columns = []
    for name in names:
        cells = rows.column(name)
        if pa.types.is_nested(cells.type):
            raise InputError(
                f"values of type {cells.type} can't be a key",
                where=f"{rows.where}, column {name}",
                hint="make a column of text or numbers of it",
            )
        number = rows.textual and _converts(cells, pa.float64())
        columns.append((cells.cast(pa.float64()) if number else cells).to_pylist())
    codes: dict[tuple[object, ...], int] = {}
    keys = zip(*columns, strict=True)
    return np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)
