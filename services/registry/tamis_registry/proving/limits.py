"""Limits of a process: memory, processor time and the size of its answer."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from tamis.errors import RefusedError


def data_bytes(process: int | str = "self") -> int:
    """The memory of a process that counts for RLIMIT_DATA, in bytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit(what: int, soft: int) -> None:
    """Set a limit of this process, as far as it may have it."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def too_large(most: int) -> RefusedError:
    """The error for an answer of more bytes than are sent."""
    return RefusedError(
        f"the answer for these SQL statements takes more than {most >> 20} MiB",
        hint="send fewer statements at a time",
    )
