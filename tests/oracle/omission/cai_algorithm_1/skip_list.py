"""Skip list (Pugh 1990) with links in both directions on every level, as in the paper.

Search and insertion take logarithmic expected time, and removal uses the row's own links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tests.oracle.omission.cai_algorithm_1.store import (
    NONE,
    Nodes,
    Row,
    Rows,
    Store,
    free_row,
    nodes,
    rows,
    take,
)

from tamis.kernels import njit
from tamis.omission.columns import Int64s

Links = npt.NDArray[np.int32]

# One row in four of a level is also on the next level, as Pugh recommends where memory counts.
_ONE_IN = 4


class Tuples(NamedTuple):
    """Level 0 is in the nodes, level k in column k - 1 of `ahead` and `back`; `NONE` closes each to a ring.

    `random`: state of the generator of heights; `path`: for each level the last row before the searched one.
    """

    nodes: Nodes
    size: Int64s
    rows: Rows
    ahead: Links
    back: Links
    random: npt.NDArray[np.uint64]
    path: Links


def new(capacity: int) -> Tuples:
    levels = 1
    while _ONE_IN**levels < capacity:
        levels += 1
    return Tuples(
        nodes(capacity, "prev", "succ", "height"),
        np.zeros(1, np.int64),
        rows(capacity),
        np.zeros((capacity + 1, levels), np.int32),
        np.zeros((capacity + 1, levels), np.int32),
        np.full(1, 0x9E3779B97F4A7C15, np.uint64),
        np.zeros(levels, np.int32),
    )


@njit(cache=True, forceinline=True)
def succ(ts: Tuples, row: Row) -> Row:
    return ts.nodes[row]["succ"]


@njit(cache=True, forceinline=True)
def prev(ts: Tuples, row: Row) -> Row:
    return ts.nodes[row]["prev"]


@njit(cache=True, forceinline=True)
def search(ts: Tuples, time: int) -> Row:
    row = NONE
    for level in range(ts.ahead.shape[1] - 1, -1, -1):
        after = ts.ahead[row, level]
        while after != NONE and ts.nodes[after]["time"] < time:
            row, after = after, ts.ahead[after, level]
    after = succ(ts, row)
    while after != NONE and ts.nodes[after]["time"] < time:
        row, after = after, succ(ts, after)
    return after if after != NONE and ts.nodes[after]["time"] == time else row


@njit(cache=True, forceinline=True)
def _comes_before(node: Any, time: int, value: float) -> bool:
    return bool(node["time"] < time or (node["time"] == time and node["value"] < value))


@njit(cache=True, forceinline=True)
def _height(ts: Tuples) -> int:
    """The number of levels above level 0 of a new row, by xorshift64 with two bits a level."""
    x = ts.random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    ts.random[0] = x
    height = 0
    while height < ts.ahead.shape[1] and x & np.uint64(_ONE_IN - 1) == np.uint64(0):
        height += 1
        x >>= np.uint64(2)
    return height


@njit(cache=True, forceinline=True)
def insert(ts: Tuples, time: int, value: float) -> Row:
    before = NONE
    for level in range(ts.ahead.shape[1] - 1, -1, -1):
        after = ts.ahead[before, level]
        while after != NONE and _comes_before(ts.nodes[after], time, value):
            before, after = after, ts.ahead[after, level]
        ts.path[level] = before
    after = succ(ts, before)
    while after != NONE and _comes_before(ts.nodes[after], time, value):
        before, after = after, succ(ts, after)
    row = take(ts.rows)
    height = _height(ts)
    ts.nodes[row]["time"], ts.nodes[row]["value"], ts.nodes[row]["height"] = time, value, height
    ts.nodes[row]["prev"], ts.nodes[row]["succ"] = before, after
    ts.nodes[before]["succ"] = ts.nodes[after]["prev"] = row
    for level in range(height):
        before = ts.path[level]
        after = ts.ahead[before, level]
        ts.back[row, level], ts.ahead[row, level] = before, after
        ts.ahead[before, level] = ts.back[after, level] = row
    ts.size[0] += 1
    return row


@njit(cache=True, forceinline=True)
def remove(ts: Tuples, row: Row) -> None:
    before, after = prev(ts, row), succ(ts, row)
    ts.nodes[before]["succ"] = after
    ts.nodes[after]["prev"] = before
    for level in range(ts.nodes[row]["height"]):
        before, after = ts.back[row, level], ts.ahead[row, level]
        ts.ahead[before, level] = after
        ts.back[after, level] = before
    free_row(ts.rows, row)
    ts.size[0] -= 1


SKIP_LIST = Store("skip list", new, search, succ, prev, insert, remove, njit)
