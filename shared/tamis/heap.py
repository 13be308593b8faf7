"""The heap of the C library: free memory goes back to the system, in services whose memory matters."""

from __future__ import annotations

import ctypes

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
