"""Garbage collection of reference cycles: less often than by default, since services make few of them."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Collect cycles seldom, and never look at the objects that exist now.

    A batch of tuples, or a plan of thousands of queries, has many objects and no cycles. Python's default
    thresholds would cost an edge a quarter of its time, and a large registry more.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
