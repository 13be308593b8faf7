"""Memory of services: the heap of the C library, and garbage collection of reference cycles."""

from __future__ import annotations

import ctypes
import gc

# Parameters of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# The defaults, which the library raises by itself up to 32 MiB as soon as larger blocks are freed.
_BYTES = 128 * 1024
# By default each thread may have an arena of its own, up to eight for a core. What one has freed, others
# don't use.
_ARENAS = 2


def return_freed_memory() -> None:
    """Let the C library give freed memory back, and share it between threads. Call it before threads start.
    Without the GNU C library nothing changes.
    """
    options = getattr(ctypes.CDLL(None), "mallopt", None)
    if options is not None:
        for parameter, value in (
            (_TRIM_THRESHOLD, _BYTES),
            (_MMAP_THRESHOLD, _BYTES),
            (_ARENA_MAX, _ARENAS),
        ):
            options(parameter, value)


def collect_seldom() -> None:
    """Collect cycles seldom, and never look at the objects that exist now.

    A batch of tuples, or a plan of thousands of queries, has many objects and no cycles. Python's default
    thresholds would cost an edge a quarter of its time, and a large registry more.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
