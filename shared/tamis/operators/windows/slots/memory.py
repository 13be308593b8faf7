"""Memory of partial aggregates by slot, before there are any."""

from __future__ import annotations

import numpy as np

from tamis.expressions.nodes import Type
from tamis.operators.windows.partials import partials
from tamis.operators.windows.slots.build import slot_aggregates
from tamis.operators.windows.slots.tables import MOST_WAITING, SlotTables
from tamis.plan.nodes import Grouping

# The slots of which the memory is measured, and for which `OpenPanes` has room at least.
_LEAST = 1_024
# Bytes of a short text, and of an entry of a dictionary or a table that refers to it.
_TEXT = 180


def most_bytes(grouping: Grouping, rows: int, groups: int, values: int) -> int:
    """The memory of so many open rows with short texts, about. `groups`: of all panes together; `values`:
    those that are kept separately.
    """
    # Arrays are up to twice as long as they have rows. Pane, group, and the table that finds slots.
    slots = max(_LEAST, 2 * rows)
    held = 4 * 8 * slots
    for partial in partials(grouping.aggregates):
        (aggregates,) = slot_aggregates([partial])
        aggregates.keep(np.empty(0, np.int64), _LEAST)
        held += aggregates.bytes * (max(_LEAST, 2 * values) if partial.each else slots) // _LEAST
        if isinstance(aggregates, SlotTables):
            # A table and the entries that wait for it, each with three keys and a measure.
            held += (3 * rows + MOST_WAITING) * (4 * 8 + _TEXT)
        elif partial.each and partial.column is not None and partial.column.type is Type.VARCHAR:
            held += values * _TEXT
    return held + groups * (1 + len(grouping.by)) * _TEXT
