"""The policy of cuts: when an edge sends partial aggregates (docs/cuts.md).

Rows of queries don't depend on it, so it may change in any release. It decides how much travels
(`tamis.planning.link_bound`) and how much an edge reads again after a restart.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from tamis.messaging.records import canonical_key

# Bytes of the rows of a part: far below the limit of a record, since hashes divide groups unevenly.
PART_BYTES = 1_000_000
# After so many microseconds a reading that was not sent is part of a full cut, so that restarts read little
# again.
FULL_EVERY = 600_000_000
# Rows of open panes above which a full cut frees their memory.
MOST_ROWS = 500_000
# Bytes of open panes above which a full cut is made if values are kept separately: those of one group are all
# in one record.
MOST_SEPARATE_BYTES = 6_000_000
# Microseconds between commits, for which cuts are drawn. Progress is sent after a commit, and each commit
# costs a synchronisation with the disk.
COMMIT_EVERY = 500_000


def part_of(group: tuple[Any, ...], parts: int) -> int:
    """The part of a cut that has a group: the same for the same group, whatever else the cut has."""
    return crc32(canonical_key(group)) % parts


def parts_of(size: int) -> int:
    """The parts of a cut whose rows take up so many bytes in a document.

    >>> parts_of(0), parts_of(1_000_000)
    (1, 2)
    """
    return 1 + size // PART_BYTES
