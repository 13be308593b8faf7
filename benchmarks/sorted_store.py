"""A tuple store of Algorithm 1 from a library: `SortedList` of sortedcontainers, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedList
from tests.oracle.omission.cai_algorithm_1 import NONE, Store

Key = tuple[int, float, int]


@dataclass
class Tuples:
    """`order` has (time, value, row) of every tuple, `nodes` its record by row."""

    nodes: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    size: list[int] = field(default_factory=lambda: [0])
    order: SortedList = field(default_factory=SortedList)
    free: list[int] = field(default_factory=list)


def new(_: int) -> Tuples:
    return Tuples()


def _key(ts: Tuples, row: int) -> Key:
    node = ts.nodes[row]
    return node["time"], node["value"], row


def _row(keys: Any) -> int:
    found: Key | None = next(keys, None)
    return found[2] if found else NONE


def succ(ts: Tuples, row: int) -> int:
    return _row(ts.order.irange(minimum=_key(ts, row) if row else None, inclusive=(False, True)))


def prev(ts: Tuples, row: int) -> int:
    key = _key(ts, row) if row else None
    return _row(ts.order.irange(maximum=key, inclusive=(True, False), reverse=True))


def search(ts: Tuples, time: int) -> int:
    # A tuple that is shorter comes before all that begin as it does.
    row = _row(ts.order.irange(minimum=(time,)))
    if row and ts.nodes[row]["time"] == time:
        return row
    return _row(ts.order.irange(maximum=(time,), reverse=True))


def insert(ts: Tuples, time: int, value: float) -> int:
    row = ts.free.pop() if ts.free else len(ts.nodes)
    if row == len(ts.nodes):
        ts.nodes.append({})
    ts.nodes[row].update(time=time, value=value)
    ts.order.add((time, value, row))
    ts.size[0] += 1
    return row


def remove(ts: Tuples, row: int) -> None:
    ts.order.remove(_key(ts, row))
    ts.free.append(row)
    ts.size[0] -= 1


SORTED_LIST = Store("sorted list", new, search, succ, prev, insert, remove, lambda function: function)
