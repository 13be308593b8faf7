"""The policy of cuts: when an edge sends partial aggregates (docs/cuts.md).

Rows of queries don't depend on it, so it may change in any release. It decides how much travels
(`tamis.planning.link.bound`) and how much an edge reads again after a restart.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from tamis.messaging.records import canonical_key
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.table import Places

# Bytes of the rows of a part: far below the limit of a record, since hashes divide groups unevenly.
PART_BYTES = 1_000_000
# After so many microseconds a reading that was not sent is part of a full cut, so that restarts read little
# again.
FULL_EVERY = 600_000_000
# Rows of open panes, with the values that are kept separately, above which a full cut frees their memory.
MOST_ROWS = 500_000
# Bytes of open panes above which a full cut is made if values are kept separately: those of one group are all
# in one record.
MOST_SEPARATE_BYTES = 6_000_000
# Microseconds between commits, for which cuts are drawn. Progress is sent after a commit, and each commit
# costs a synchronisation with the disk.
COMMIT_EVERY = 500_000


def full_cut_due(open_: OpenPanes, waited: int) -> bool:
    """True if all readings shall be sent: the first has waited for so many microseconds, or they take much
    memory. Values that are kept separately of one group are all in one record, which must not become too
    large.
    """
    large = open_.keeps_values and open_.bytes > MOST_SEPARATE_BYTES
    return large or waited > FULL_EVERY or open_.entries > MOST_ROWS


def groups_of_rows(rows: PaneRows) -> list[tuple[Any, ...]]:
    """The group of each row."""
    return list(zip(*(vector.to_list() for vector in rows.groups), strict=True)) or [()] * len(rows)


def part_of_each(rows: PaneRows, parts: int) -> Places:
    """The part of a cut that has each row: the same for the same group, whatever else the cut has."""
    if parts == 1:
        return np.zeros(len(rows), np.int64)
    return np.array([crc32(canonical_key(group)) % parts for group in groups_of_rows(rows)], np.int64)


def parts_of(size: int) -> int:
    """The parts of a cut whose rows take up so many bytes in a document.

    >>> parts_of(0), parts_of(1_000_000)
    (1, 2)
    """
    return 1 + size // PART_BYTES
