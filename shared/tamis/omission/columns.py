"""Columns as the kernels take them, checked."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]

Sides = Literal["above", "below", "both"]
"""`above`: maxima are kept, a tuple goes when it is above bracketed; `below`: minima; `both`: double
brackets."""


def int64s(name: str, column: npt.ArrayLike) -> Int64s:
    """`column` as one dimension of int64; refuses what isn't whole numbers."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions", hint="give one column")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max):
        raise InputError(f"{name} is of type {array.dtype}", hint="give whole numbers that fit in int64")
    return np.ascontiguousarray(array, np.int64)


def finite_order(name: str, column: npt.ArrayLike) -> Floats:
    """`column` as one dimension of float64; refuses NaN, which is neither above nor below anything."""
    array = floats(name, column)
    refuse_nan(name, array)
    return array


def floats(name: str, column: npt.ArrayLike) -> Floats:
    """`column` as one dimension of float64, not yet looked through for NaN; refuses what isn't numbers."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions", hint="give one column")
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{name} is of type {array.dtype}", hint="give numbers")
    return np.ascontiguousarray(array, np.float64)


def refuse_nan(name: str, column: Floats) -> None:
    """Refuse a column with NaN, and say where the first one is."""
    nan = np.isnan(column)
    if nan.any():
        raise InputError(
            "NaN has no place in an order",
            where=f"{name}[{int(nan.argmax())}]",
            hint="drop such tuples before omission",
        )


def same_length(**columns: npt.NDArray[Any]) -> None:
    """Refuse columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns differ in length: {lengths}", hint="give one row each per tuple")


def check_rule(interval: int, sides: str, max_delay: int | None) -> None:
    """Refuse a rule that means nothing: a negative interval or delay, an unknown side."""
    if interval < 0:
        raise InputError(f"the omission interval is {interval}", hint="give 0 (no omission) or more ticks")
    if sides not in get_args(Sides):
        raise InputError(f"unknown sides {sides!r}", hint=f"give one of {', '.join(get_args(Sides))}")
    if max_delay is not None and max_delay < 0:
        raise InputError(f"max_delay is {max_delay}", hint="give 0 (nothing waits) or more ticks, or none")
