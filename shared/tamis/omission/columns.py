"""Check and convert columns to the arrays that the kernels take."""

from __future__ import annotations

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
