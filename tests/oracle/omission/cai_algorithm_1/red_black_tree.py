"""Red-black tree: logarithmic search, insertion and removal.

Bayer 1972; insertion and removal as in Cormen et al., Introduction to Algorithms, chapter 13. The next row
may be several links away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
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


class Tuples(NamedTuple):
    """`NONE` is every leaf, black, and the parent of the root, which is `root[0]`."""

    nodes: Nodes
    size: Int64s
    rows: Rows
    root: Int64s


def new(capacity: int) -> Tuples:
    links = nodes(capacity, "up", "left", "right", "red")
    return Tuples(links, np.zeros(1, np.int64), rows(capacity), np.zeros(1, np.int64))


@njit(cache=True, forceinline=True)
def succ(ts: Tuples, row: Row) -> Row:
    below = ts.root[0] if row == NONE else np.int64(ts.nodes[row]["right"])
    if below != NONE:
        while ts.nodes[below]["left"] != NONE:
            below = ts.nodes[below]["left"]
        return below
    up = ts.nodes[row]["up"]
    while up != NONE and ts.nodes[up]["right"] == row:
        row, up = up, ts.nodes[up]["up"]
    return up


@njit(cache=True, forceinline=True)
def prev(ts: Tuples, row: Row) -> Row:
    below = ts.root[0] if row == NONE else np.int64(ts.nodes[row]["left"])
    if below != NONE:
        while ts.nodes[below]["right"] != NONE:
            below = ts.nodes[below]["right"]
        return below
    up = ts.nodes[row]["up"]
    while up != NONE and ts.nodes[up]["left"] == row:
        row, up = up, ts.nodes[up]["up"]
    return up


@njit(cache=True, forceinline=True)
def search(ts: Tuples, time: int) -> Row:
    before = at = np.int64(NONE)
    row = ts.root[0]
    while row != NONE:
        found = ts.nodes[row]["time"]
        if found < time:
            before, row = row, np.int64(ts.nodes[row]["right"])
        else:
            if found == time:
                at = row
            row = np.int64(ts.nodes[row]["left"])
    return before if at == NONE else at


@njit(cache=True, forceinline=True)
def _replace(ts: Tuples, at: Row, row: Row) -> None:
    """Make `row` its new parent's child, instead of `at`."""
    up = ts.nodes[at]["up"]
    ts.nodes[row]["up"] = up
    if up == NONE:
        ts.root[0] = row
    elif ts.nodes[up]["left"] == at:
        ts.nodes[up]["left"] = row
    else:
        ts.nodes[up]["right"] = row


@njit(cache=True)
def _rotate_left(ts: Tuples, row: Row) -> None:
    child = ts.nodes[row]["right"]
    inner = ts.nodes[child]["left"]
    ts.nodes[row]["right"] = inner
    if inner != NONE:
        ts.nodes[inner]["up"] = row
    _replace(ts, row, child)
    ts.nodes[child]["left"] = row
    ts.nodes[row]["up"] = child


@njit(cache=True)
def _rotate_right(ts: Tuples, row: Row) -> None:
    child = ts.nodes[row]["left"]
    inner = ts.nodes[child]["right"]
    ts.nodes[row]["left"] = inner
    if inner != NONE:
        ts.nodes[inner]["up"] = row
    _replace(ts, row, child)
    ts.nodes[child]["right"] = row
    ts.nodes[row]["up"] = child


@njit(cache=True, forceinline=True)
def insert(ts: Tuples, time: int, value: float) -> Row:
    up, below, left = np.int64(NONE), ts.root[0], False
    while below != NONE:
        up = below
        at = ts.nodes[below]["time"]
        left = time < at or (time == at and value < ts.nodes[below]["value"])
        below = np.int64(ts.nodes[below]["left"]) if left else np.int64(ts.nodes[below]["right"])
    row = np.int64(take(ts.rows))
    ts.nodes[row]["time"], ts.nodes[row]["value"] = time, value
    ts.nodes[row]["up"], ts.nodes[row]["red"] = up, 1
    ts.nodes[row]["left"] = ts.nodes[row]["right"] = NONE
    if up == NONE:
        ts.root[0] = row
    elif left:
        ts.nodes[up]["left"] = row
    else:
        ts.nodes[up]["right"] = row
    _rebalance_after_insert(ts, row)
    ts.size[0] += 1
    return row


@njit(cache=True)
def _rebalance_after_insert(ts: Tuples, row: Row) -> None:
    while ts.nodes[ts.nodes[row]["up"]]["red"]:
        up = np.int64(ts.nodes[row]["up"])
        top = np.int64(ts.nodes[up]["up"])
        on_left = ts.nodes[top]["left"] == up
        uncle = ts.nodes[top]["right"] if on_left else ts.nodes[top]["left"]
        if ts.nodes[uncle]["red"]:
            ts.nodes[up]["red"] = ts.nodes[uncle]["red"] = 0
            ts.nodes[top]["red"] = 1
            row = top
        elif on_left:
            if ts.nodes[up]["right"] == row:
                row = up
                _rotate_left(ts, row)
            up = np.int64(ts.nodes[row]["up"])
            ts.nodes[up]["red"], ts.nodes[top]["red"] = 0, 1
            _rotate_right(ts, top)
        else:
            if ts.nodes[up]["left"] == row:
                row = up
                _rotate_right(ts, row)
            up = np.int64(ts.nodes[row]["up"])
            ts.nodes[up]["red"], ts.nodes[top]["red"] = 0, 1
            _rotate_left(ts, top)
    ts.nodes[ts.root[0]]["red"] = 0


@njit(cache=True, forceinline=True)
def remove(ts: Tuples, row: Row) -> None:
    left, right = np.int64(ts.nodes[row]["left"]), np.int64(ts.nodes[row]["right"])
    lost_red = ts.nodes[row]["red"]
    # The row that replaces the removed one may be NONE; its `up` is set too, since the rebalancing climbs
    # from it.
    if left == NONE:
        short = right
        _replace(ts, row, right)
    elif right == NONE:
        short = left
        _replace(ts, row, left)
    else:
        successor = right
        while ts.nodes[successor]["left"] != NONE:
            successor = np.int64(ts.nodes[successor]["left"])
        lost_red = ts.nodes[successor]["red"]
        short = np.int64(ts.nodes[successor]["right"])
        if successor == right:
            ts.nodes[short]["up"] = successor
        else:
            _replace(ts, successor, short)
            ts.nodes[successor]["right"] = right
            ts.nodes[right]["up"] = successor
        _replace(ts, row, successor)
        ts.nodes[successor]["left"] = left
        ts.nodes[left]["up"] = successor
        ts.nodes[successor]["red"] = ts.nodes[row]["red"]
    if not lost_red:
        _rebalance_after_remove(ts, short)
    ts.nodes[NONE]["up"] = NONE
    free_row(ts.rows, row)
    ts.size[0] -= 1


@njit(cache=True)
def _rebalance_after_remove(ts: Tuples, row: Row) -> None:
    """Rebalance after the paths through `row` have lost a black node."""
    while row != ts.root[0] and not ts.nodes[row]["red"]:
        up = np.int64(ts.nodes[row]["up"])
        on_left = ts.nodes[up]["left"] == row
        sibling = np.int64(ts.nodes[up]["right"] if on_left else ts.nodes[up]["left"])
        if ts.nodes[sibling]["red"]:
            ts.nodes[sibling]["red"], ts.nodes[up]["red"] = 0, 1
            if on_left:
                _rotate_left(ts, up)
                sibling = np.int64(ts.nodes[up]["right"])
            else:
                _rotate_right(ts, up)
                sibling = np.int64(ts.nodes[up]["left"])
        near = np.int64(ts.nodes[sibling]["left"] if on_left else ts.nodes[sibling]["right"])
        far = np.int64(ts.nodes[sibling]["right"] if on_left else ts.nodes[sibling]["left"])
        if not ts.nodes[near]["red"] and not ts.nodes[far]["red"]:
            ts.nodes[sibling]["red"] = 1
            row = up
            continue
        if not ts.nodes[far]["red"]:
            ts.nodes[near]["red"], ts.nodes[sibling]["red"] = 0, 1
            if on_left:
                _rotate_right(ts, sibling)
            else:
                _rotate_left(ts, sibling)
            far, sibling = sibling, near
        ts.nodes[sibling]["red"] = ts.nodes[up]["red"]
        ts.nodes[up]["red"] = ts.nodes[far]["red"] = 0
        if on_left:
            _rotate_left(ts, up)
        else:
            _rotate_right(ts, up)
        row = ts.root[0]
    ts.nodes[row]["red"] = 0


RED_BLACK_TREE = Store("red-black tree", new, search, succ, prev, insert, remove, njit)
