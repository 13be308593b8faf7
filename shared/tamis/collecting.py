"""How often a service looks for objects that only refer to each other."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Look for such garbage seldom, and never again among what is there now.

    A batch of tuples, or a plan of thousands of queries, is many objects without cycles: to look through
    them as often as by default takes a quarter of an edge's time, and more of a large registry's.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
