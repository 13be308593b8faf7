"""Interface of a tuple store, and the array of nodes that the compiled stores share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.omission.columns import Int64s

NONE = 0
"""The row before the first and after the last one; it holds no tuple."""

FAR = 2**62 - 1
"""Infinite distance to a bracket: longer than every interval, and twice of it still fits in int64."""

S = TypeVar("S")
Nodes = npt.NDArray[np.void]

Row = Any
"""A row's number: an int in Python, int32 or int64 in compiled code."""


@dataclass(frozen=True)
class Store(Generic[S]):
    """One way to keep tuples in order of (time, value): cai-2021's 𝒯𝒮.

    `new(capacity)` makes an empty store with room for that many tuples. Its `nodes`, by row, are records of
    `time`, `value`, `id` and the distances `la`, `lb`, `ra`, `rb` to the closest known tuples left above,
    left below, right above and right below; its `size[0]` is the number of tuples. A tuple has one row from
    its insertion to its removal; rows of removed tuples are used again. No two tuples are equal in both
    time and value. Then, with the store in front:

    - `search(time)`: the first row at that time; without one the last row before it, or `NONE`;
    - `succ(row)`, `prev(row)`: the next row and the one before; `NONE` at the ends, and `succ(NONE)` is the
      first row, `prev(NONE)` the last one;
    - `insert(time, value)`: the new tuple's row, its distances not set;
    - `remove(row)`.

    `compiled` wraps a function that calls these: it compiles the function if the store is compiled.
    """

    name: str
    new: Callable[[int], S]
    search: Callable[[S, int], Row]
    succ: Callable[[S, Row], Row]
    prev: Callable[[S, Row], Row]
    insert: Callable[[S, int, float], Row]
    remove: Callable[[S, Row], None]
    compiled: Callable[[Any], Any]


class Rows(NamedTuple):
    """Free rows: those above `used[0]`, and the first `spare[0]` of `free`."""

    used: Int64s
    spare: Int64s
    free: npt.NDArray[np.int32]


_FIELDS = [
    ("time", "i8"),
    ("value", "f8"),
    ("la", "i8"),
    ("lb", "i8"),
    ("ra", "i8"),
    ("rb", "i8"),
    ("id", "i8"),
]


def nodes(capacity: int, *links: str) -> Nodes:
    """Records for `capacity` tuples and `NONE`, with the given links to other rows, all `NONE`.

    The fields of a record are adjacent in memory, since most of them are needed when a tuple is read.
    """
    return np.zeros(capacity + 1, [*_FIELDS, *((link, "i4") for link in links)])


def rows(capacity: int) -> Rows:
    """Rows of which all but `NONE` are free."""
    return Rows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(capacity, np.int32))


@njit(cache=True, forceinline=True)
def take(of: Rows) -> Row:
    """Take a free row."""
    if of.spare[0]:
        of.spare[0] -= 1
        return of.free[of.spare[0]]
    of.used[0] += 1
    return of.used[0]


@njit(cache=True, forceinline=True)
def free_row(of: Rows, row: Row) -> None:
    """Mark a row as free."""
    of.free[of.spare[0]] = row
    of.spare[0] += 1
