"""Columns as the kernels take them: checked, and ordered by key and time."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from numba import njit

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
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions", hint="give one column")
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{name} is of type {array.dtype}", hint="give numbers")
    floats: Floats = np.ascontiguousarray(array, np.float64)
    nan = np.isnan(floats)
    if nan.any():
        raise InputError(
            "NaN has no place in an order",
            where=f"{name}[{int(nan.argmax())}]",
            hint="drop such tuples before omission",
        )
    return floats


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


@njit(cache=True)
def _ordered(keys: Int64s, times: Int64s) -> bool:
    for i in range(1, len(keys)):
        if keys[i] < keys[i - 1] or (keys[i] == keys[i - 1] and times[i] < times[i - 1]):
            return False
    return True


@njit(cache=True)
def _count_sort(keys: Int64s, least: np.int64, order: Int64s, end: Int64s) -> Int64s:
    """`order` sorted by key, stable; `end` is zeros, one for each possible key and one more."""
    for key in keys:
        end[key - least + 1] += 1
    for k in range(1, len(end)):
        end[k] += end[k - 1]
    out = np.empty_like(order)
    for row in order:
        k = keys[row] - least
        out[end[k]] = row
        end[k] += 1
    return out


def by_key_and_time(keys: Int64s, times: Int64s) -> Int64s | None:
    """The stable permutation that orders rows by key, then time; None where they are in that order
    already."""
    if _ordered(keys, times):
        return None
    order = np.arange(len(keys)) if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    least, most = int(keys.min()), int(keys.max())
    # Codes from a dictionary are dense; counting them is linear, and some ten times faster than comparing
    # them.
    if most - least < 4 * len(keys):
        return _count_sort(keys, np.int64(least), order, np.zeros(most - least + 2, np.int64))
    return order[np.argsort(keys[order], kind="stable")]
