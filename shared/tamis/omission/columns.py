"""Check and convert columns, and spans of event time, to the arrays and ticks that the kernels take.

A difference of two int64 numbers needs up to 64 bits without a sign. All comparisons of spans with the
omission interval therefore run in uint64, where the difference of an earlier and a later time never
overflows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]

Sides = Literal["above", "below", "both"]
"""The extremes that are retained. `above`: maxima, so a tuple between two greater ones may be omitted;
`below`: minima; `both`: both (double brackets)."""


def int64s(name: str, column: npt.ArrayLike) -> Int64s:
    """The column as a one-dimensional int64 array. Raises InputError if it doesn't hold whole numbers."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions", hint="give one column")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max):
        raise InputError(f"{name} is of type {array.dtype}", hint="give whole numbers that fit in int64")
    return np.ascontiguousarray(array, np.int64)


def finite_order(name: str, column: npt.ArrayLike) -> Floats:
    """The column as a one-dimensional float64 array. Raises InputError for NaN, which has no order."""
    array = floats(name, column)
    refuse_nan(name, array)
    return array


def floats(name: str, column: npt.ArrayLike) -> Floats:
    """The column as a one-dimensional float64 array, not checked for NaN. Raises InputError if it doesn't
    hold numbers.
    """
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions", hint="give one column")
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{name} is of type {array.dtype}", hint="give numbers")
    return np.ascontiguousarray(array, np.float64)


def refuse_nan(name: str, column: Floats) -> None:
    """Raise InputError for a column with NaN; the error names the first row that has it."""
    nan = np.isnan(column)
    if nan.any():
        raise InputError(
            "NaN can't be ordered",
            where=f"{name}[{int(nan.argmax())}]",
            hint="drop tuples with NaN before omission",
        )


def same_length(**columns: npt.NDArray[Any]) -> None:
    """Raise InputError for columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"columns differ in length: {lengths}", hint="give each column one value for each tuple"
        )


def is_whole(number: object) -> TypeGuard[int]:
    """True for a whole number. NumPy counts its durations among them, whose unit would be lost."""
    return isinstance(number, int | np.integer) and not isinstance(number, np.timedelta64)


def check_rule(interval: int, sides: str, max_delay: int | None) -> None:
    """Raise InputError for an interval or a delay that is negative or no whole number, or an unknown side."""
    for name, span in (("the omission interval", interval), ("max_delay", max_delay)):
        if span is not None and not is_whole(span):
            raise InputError(f"{name} is {span!r}", hint="give a whole number of ticks of the times")
    if interval < 0:
        raise InputError(f"the omission interval is {interval}", hint="give 0 (no omission) or more ticks")
    if sides not in get_args(Sides):
        raise InputError(f"unknown sides {sides!r}", hint=f"give one of {', '.join(get_args(Sides))}")
    if max_delay is not None and max_delay < 0:
        raise InputError(f"max_delay is {max_delay}", hint="give 0 (nothing waits) or more ticks, or none")


NEVER = np.int64(2**63 - 1)
"""The last tick. As a deadline it never comes; as a watermark it has passed every tuple."""

_LONGEST = 2**64 - 1


def as_span(interval: int) -> np.uint64:
    """The interval in ticks as the kernels take it, at most as long as the longest span of int64."""
    return np.uint64(min(interval, _LONGEST))


def as_delay(max_delay: int | None) -> np.int64:
    """The delay as the kernels take it, `NEVER` for none."""
    return NEVER if max_delay is None else np.int64(min(max_delay, int(NEVER)))


Span = int | timedelta | np.timedelta64

_MICROSECONDS = np.dtype("datetime64[us]")
_FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}  # units in a microsecond
_TICK = timedelta(microseconds=1)


def ticks(times: Any, *spans: Span | None) -> tuple[Int64s, tuple[int | None, ...]]:
    """Times as int64 ticks, and spans in the same ticks.

    Whole numbers are ticks, and so are spans that are whole numbers. Dates (datetime64 of any unit; a date
    column of pandas, Polars or Arrow, with or without a time zone) keep their unit where it is finer than a
    microsecond, and become microseconds otherwise. With dates, a span that is a whole number is in
    microseconds. Raises InputError.
    """
    array = _dates(times)
    if array is None:
        return int64s("times", times), tuple(map(_whole, spans))
    if array.ndim != 1:
        raise InputError(f"times has {array.ndim} dimensions", hint="give one column")
    missing = np.isnat(array)
    if missing.any():
        raise InputError(
            "a time is missing", where=f"times[{int(missing.argmax())}]", hint="leave the row out"
        )
    unit, step = np.datetime_data(array.dtype)
    if step != 1 or unit not in _FINER:
        whole = array.astype(_MICROSECONDS)
        # For dates beyond 64 bits of microseconds, NumPy wraps around silently.
        if not (whole.astype(array.dtype) == array).all():
            raise InputError("a time is beyond what 64 bits of microseconds hold", where="times")
        array, unit = whole, "us"
    return np.ascontiguousarray(array.view(np.int64)), tuple(_span(span, unit) for span in spans)


def _dates(times: Any) -> npt.NDArray[np.datetime64] | None:
    """The column as datetime64 in UTC; None if it doesn't hold dates."""
    dtype = getattr(times, "dtype", None)
    if hasattr(times, "to_numpy"):
        # Columns of pandas with a time zone: its own, and those that are stored by Arrow.
        stored = getattr(dtype, "pyarrow_dtype", dtype)
        if getattr(stored, "tz", None) is not None:
            times = times.to_numpy(dtype=f"datetime64[{getattr(stored, 'unit', 'ns')}]")
    array = np.asarray(times)
    return array if array.dtype.kind == "M" else None


def _whole(span: Span | None) -> int | None:
    """A span as it is, where the times are whole numbers. Raises InputError for a duration."""
    if span is None:
        return None
    if not is_whole(span):
        raise InputError(
            f"{span!r} is a duration, but the times are whole numbers of an unknown unit",
            hint="give the times as dates (datetime64), or the interval in the unit of the times",
        )
    return int(span)


def _span(span: Span | None, unit: str) -> int | None:
    """A span in ticks of `unit`."""
    per = _FINER.get(unit, 1)
    match span:
        case None:
            return None
        case np.timedelta64():
            return int(span // np.timedelta64(1, unit))  # type: ignore[call-overload]
        case timedelta():
            # The durations of pandas also have nanoseconds.
            return span // _TICK * per + getattr(span, "nanoseconds", 0) * per // 1_000
        case _:
            return int(span) * per
