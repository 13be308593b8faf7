"""Algorithm 1 of cai-2021 over any store: removes doubly bracketed tuples, one tuple after the other.

This is the published algorithm line by line, with closed intervals, except where its text leaves something
open or is wrong:

- **A tuple that is itself bracketed** isn't inserted, but by then it may have completed brackets of others
  (lines 12 to 39). Those removals are right: Definition 3.1 asks for tuples of the stream, and by Theorem 3.1
  tuples that stay complete the same brackets.
- **Line 30** would leave s' before s where no tuple has the time of s, and lines 31 to 40 would take tuples
  on the left for tuples on the right. The right-hand loop begins with the first tuple after every tuple with
  the timestamp of s.
- **`search`** returns "the first" of the tuples with the largest timestamp ≤ t. Where that timestamp isn't
  that of s, the left-hand loop would miss all others of it; so it returns the first of those at t, else the
  last tuple before t.
- **Line 16** asks for the successor of a tuple that line 12 or 15 may have removed, and so do lines 28 and
  40. Here the successor is read before the removal. The searches of lines 17 and 29 find the same row as line
  6, which is therefore kept.
- **Equal values** at different times are neither above nor below. Definition 3.1 is strict in time, lines 7
  to 16 are not: a greater tuple at the same time alone brackets from above. The lines are right.
- **Red-black trees** allow equal timestamps here: all stores order by time, then value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tests.oracle.omission.cai_algorithm_1.store import FAR, NONE, S, Store

from tamis.omission.columns import Floats, Int64s

Greedy = Callable[[S, Int64s, Floats, Int64s, int], None]
"""Takes store, times, values, ids and interval. Afterwards the store has the tuples that Algorithm 1 retains
of all tuples given so far, in any order of time. Times are within ±2^60, the interval within 1 to 2^61;
values aren't NaN; the store has room for all.
"""


@cache
def greedy(store: Store[S]) -> Greedy[S]:
    """Algorithm 1 over `store`, compiled (once a process) if the store is compiled."""
    search, succ, prev, insert, remove = store.search, store.succ, store.prev, store.insert, store.remove

    def bracketed(node: Any, interval: int) -> bool:
        return bool(node["la"] + node["ra"] <= interval and node["lb"] + node["rb"] <= interval)

    bracketed = store.compiled(bracketed)

    def take(ts: Any, times: Int64s, values: Floats, ids: Int64s, interval: int) -> None:
        nodes = ts.nodes
        for i in range(len(times)):
            t, v = times[i], values[i]
            la = lb = ra = rb = FAR
            left = search(ts, t)
            right = succ(ts, left)
            if left != NONE and nodes[left]["time"] == t:
                row, left = left, prev(ts, left)
                known = False
                while row != NONE and nodes[row]["time"] == t and not known:
                    after = succ(ts, row)
                    if nodes[row]["value"] == v:
                        known = True
                    elif nodes[row]["value"] > v:
                        la = ra = 0
                        nodes[row]["lb"] = nodes[row]["rb"] = 0
                    else:
                        lb = rb = 0
                        nodes[row]["la"] = nodes[row]["ra"] = 0
                    if not known and bracketed(nodes[row], interval):
                        remove(ts, row)
                    row = after
                if known:
                    continue
                right = row
            row = left
            while row != NONE and FAR in (la, lb) and t - nodes[row]["time"] <= interval:
                after = prev(ts, row)
                distance = t - nodes[row]["time"]
                if nodes[row]["value"] > v:
                    la = min(la, distance)
                    nodes[row]["rb"] = min(nodes[row]["rb"], distance)
                elif nodes[row]["value"] < v:
                    lb = min(lb, distance)
                    nodes[row]["ra"] = min(nodes[row]["ra"], distance)
                if bracketed(nodes[row], interval):
                    remove(ts, row)
                row = after
            row = right
            while row != NONE and FAR in (ra, rb) and nodes[row]["time"] - t <= interval:
                after = succ(ts, row)
                distance = nodes[row]["time"] - t
                if nodes[row]["value"] > v:
                    ra = min(ra, distance)
                    nodes[row]["lb"] = min(nodes[row]["lb"], distance)
                elif nodes[row]["value"] < v:
                    rb = min(rb, distance)
                    nodes[row]["la"] = min(nodes[row]["la"], distance)
                if bracketed(nodes[row], interval):
                    remove(ts, row)
                row = after
            if la + ra > interval or lb + rb > interval:
                row = insert(ts, t, v)
                nodes[row]["la"], nodes[row]["lb"], nodes[row]["ra"], nodes[row]["rb"] = la, lb, ra, rb
                nodes[row]["id"] = ids[i]

    compiled: Greedy[S] = store.compiled(take)
    return compiled
