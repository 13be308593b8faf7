"""Doubly linked list, searched from its end: constant time where tuples arrive in order, linear otherwise."""

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
    """`NONE` closes the list to a ring."""

    nodes: Nodes
    size: Int64s
    rows: Rows


def new(capacity: int) -> Tuples:
    return Tuples(nodes(capacity, "prev", "succ"), np.zeros(1, np.int64), rows(capacity))


@njit(cache=True, forceinline=True)
def succ(ts: Tuples, row: Row) -> Row:
    return ts.nodes[row]["succ"]


@njit(cache=True, forceinline=True)
def prev(ts: Tuples, row: Row) -> Row:
    return ts.nodes[row]["prev"]


@njit(cache=True, forceinline=True)
def search(ts: Tuples, time: int) -> Row:
    row = prev(ts, NONE)
    while row != NONE and ts.nodes[row]["time"] > time:
        row = prev(ts, row)
    if row != NONE and ts.nodes[row]["time"] == time:
        before = prev(ts, row)
        while before != NONE and ts.nodes[before]["time"] == time:
            row, before = before, prev(ts, before)
    return row


@njit(cache=True, forceinline=True)
def insert(ts: Tuples, time: int, value: float) -> Row:
    before = prev(ts, NONE)
    while before != NONE and (
        ts.nodes[before]["time"] > time
        or (ts.nodes[before]["time"] == time and ts.nodes[before]["value"] > value)
    ):
        before = prev(ts, before)
    after = succ(ts, before)
    row = take(ts.rows)
    ts.nodes[row]["time"], ts.nodes[row]["value"] = time, value
    ts.nodes[row]["prev"], ts.nodes[row]["succ"] = before, after
    ts.nodes[before]["succ"] = ts.nodes[after]["prev"] = row
    ts.size[0] += 1
    return row


@njit(cache=True, forceinline=True)
def remove(ts: Tuples, row: Row) -> None:
    before, after = prev(ts, row), succ(ts, row)
    ts.nodes[before]["succ"] = after
    ts.nodes[after]["prev"] = before
    free_row(ts.rows, row)
    ts.size[0] -= 1


LINKED_LIST = Store("linked list", new, search, succ, prev, insert, remove, njit)
