"""Convert columns of times, whole numbers or dates, to ticks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.omission.columns import Int64s, int64s, is_whole

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
