"""Bitmaps that say which tuples of a topic pass which filters, kept as long as the tuples.

All filters of all definitions are evaluated in one pass, once for each tuple. A tuple gets a *slot* when it
is evaluated: the number of its bit in the bitmap of each filter. Tuples move when others are added before
them or removed, and their slots don't. So a batch evaluates its new tuples only, even if a million older
ones are held.

The bitmaps live in the memory of one process and are never stored: after a restart, or if the store isn't the
one that the process knows, all tuples are evaluated again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Mask
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis.operators.time_join.slot_kernels import (
    bits_by_slot,
    count_within,
    mask_by_row,
    rows_in_ranges,
    store_results,
    stored_by_filter,
    stored_rows,
)
from tamis_joiner.core.tuples.stored_tuples import NO_SLOT, StoredTuples

Bitmap = NDArray[np.uint64]  # by slot
Rows = NDArray[np.int64]

WORD = 64
# Tuples that are evaluated at a time: their answers are bytes before they become bits.
BLOCK = 1 << 14
# Slots are allocated and freed in pages of this many.
PAGE = 16 * WORD
# If a filter passes a greater share of the tuples, marking its rows is faster than sorting them.
_DENSE = 16
# The memory of bitmaps of more pages is given back when the tuples need less than this part of it, as after
# the stall of a stream. It costs one more evaluation of the tuples that are left.
_FEW_PAGES, _SHRINK = 16, 8


class FilterBitmaps:
    """The results of the filters of `dispatch` for the tuples of one topic: one row of 64-bit words for each
    filter, one bit for each slot.
    """

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.failed: dict[int, FunctionError] = {}  # by row; the bits of blocks that failed are all set
        self.words = np.zeros((len(dispatch), 0), np.uint64)
        self._free: Rows = np.empty(0, np.int64)  # slots of pages that were given out are in order

    def evaluate(self, tuples: StoredTuples) -> StoredTuples:
        """The tuples with a slot for each. Those that have none yet are evaluated."""
        rows = np.flatnonzero(tuples.slots == NO_SLOT)
        if not len(rows):
            return tuples
        taken = self._allocate(len(rows))
        slots = tuples.slots.copy()
        slots[rows] = taken
        for first in range(0, len(rows), BLOCK):
            some = rows[first : first + BLOCK]
            held = self.dispatch.over({n: v.take(some) for n, v in tuples.columns.items()}, len(some))
            store_results(self.words, held.found, taken[first : first + BLOCK])
            self.failed |= held.failed
        return replace(tuples, slots=slots)

    def release(self, tuples: StoredTuples) -> StoredTuples:
        """Free the pages of which most slots are unused. The few tuples in them lose their slots, and are
        evaluated again. `tuples` are all that still have slots.
        """
        size = self.words.shape[1] * WORD // PAGE
        if size > _FEW_PAGES and _SHRINK * len(tuples) < size * PAGE:
            self.words, self._free = self.words[:, :0].copy(), self._free[:0]
            return tuples.without_slots()
        used = np.bincount(tuples.slots[tuples.slots != NO_SLOT] // PAGE, minlength=size)
        free = np.bincount(self._free // PAGE, minlength=size)
        sparse = (2 * used < PAGE - free) & (free < PAGE)
        if not sparse.any():
            return tuples
        # The page from which slots are being taken has its free slots already; they come again below.
        self._free = self._free[~sparse[self._free // PAGE]]
        self.words.reshape(len(self.words), size, PAGE // WORD)[:, sparse] = 0
        pages = np.flatnonzero(sparse)
        self._free = np.concatenate((self._free, (pages[:, None] * PAGE + np.arange(PAGE)).ravel()))
        slots = tuples.slots.copy()
        slots[(slots != NO_SLOT) & sparse[slots // PAGE]] = NO_SLOT
        return replace(tuples, slots=slots)

    def _allocate(self, count: int) -> Rows:
        """Free slots, whose bits are clear."""
        if len(self._free) < count:
            pages = self.words.shape[1] * WORD // PAGE
            more = max(pages, -(-(count - len(self._free)) // PAGE))
            grown = np.zeros((len(self.words), (pages + more) * PAGE // WORD), np.uint64)
            grown[:, : self.words.shape[1]] = self.words
            self.words = grown
            self._free = np.concatenate((self._free, np.arange(pages * PAGE, (pages + more) * PAGE)))
        taken, self._free = self._free[:count], self._free[count:]
        return taken


class PassingTuples:
    """The tuples of a topic that pass each filter of `bitmaps`, by row number. Each tuple has a slot."""

    def __init__(self, bitmaps: FilterBitmaps, tuples: StoredTuples) -> None:
        self.tuples, self.bitmaps = tuples, bitmaps
        self._new_rows = np.flatnonzero(tuples.new)
        self._ends, self._new = stored_by_filter(bitmaps.words, tuples.slots[self._new_rows])

    @cached_property
    def _row_of(self) -> Rows:
        row_of = np.full(self.bitmaps.words.shape[1] * WORD, -1, np.int64)
        row_of[self.tuples.slots] = np.arange(len(self.tuples))
        return row_of

    def has_new(self, row: int) -> bool:
        """True if a new tuple passes the filter at `row`."""
        return bool(self._ends[row] < self._ends[row + 1])

    def new_keys(self, row: int) -> Rows:
        """The keys of the new tuples that pass the filter at `row`."""
        found: Rows = self.tuples.keys[self._new_rows[self._new[self._ends[row] : self._ends[row + 1]]]]
        return found

    def rows(self, row: int, keys: Rows | None = None) -> Rows:
        """The numbers of the tuples that pass the filter at `row`, ascending. `keys`: no tuples of other keys
        are needed; these are ascending, each once. Raises FunctionError if a function that the filter calls
        has failed.
        """
        if row in self.bitmaps.failed:
            raise self.bitmaps.failed[row]
        if keys is not None:
            start, stop = (np.searchsorted(self.tuples.keys, keys, side) for side in ("left", "right"))
            # Looking at a tuple takes about as long as looking at a word of the bitmap.
            if int((stop - start).sum()) <= self.bitmaps.words.shape[1]:
                few: Rows = rows_in_ranges(self.bitmaps.words[row], self.tuples.slots, start, stop)
                return few
        found: Rows = stored_rows(self.bitmaps.words[row], self._row_of)
        if _DENSE * len(found) < len(self.tuples):
            found.sort()
            return found
        return np.flatnonzero(self._mask(found))

    def mask(self, row: int) -> Mask:
        """A mask of the tuples of `rows`; raises the same errors."""
        return self._mask(self.rows(row))

    def _mask(self, rows: Rows) -> Mask:
        mask = np.zeros(len(self.tuples), np.bool_)
        mask[rows] = True
        return mask

    def bitmap(self, mask: Mask) -> Bitmap:
        """A mask of the tuples as a bitmap."""
        found: Bitmap = bits_by_slot(mask, self.tuples.slots, self.bitmaps.words.shape[1])
        return found

    def unpack(self, bitmap: Bitmap) -> Mask:
        """A bitmap as a mask of the tuples."""
        found: Mask = mask_by_row(bitmap, self.tuples.slots)
        return found

    def count(self, rows: Rows, within: Bitmap, union: Bitmap) -> Rows:
        """The number of tuples in the bitmap `within` that pass each of the filters `rows`. The bits of all
        of them are set in `union`.
        """
        found: Rows = count_within(self.bitmaps.words, rows, within, union)
        return found
