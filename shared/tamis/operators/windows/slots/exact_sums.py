"""Exact sums by slot."""

from __future__ import annotations

import numpy as np

from tamis.expressions.exact.sums import SCALE, squares_of_doubles, units
from tamis.operators.windows.slots import kernels
from tamis.operators.windows.slots.arrays import SlotArrays, slot_array
from tamis.operators.windows.table import Array, Places

# Digits of sums of DOUBLEs and of their squares: numbers between 2^-64 and 2^63 times the first one fit.
_DIGITS, _DIGITS_OF_SQUARES = 6, 13
# The last bit of a DOUBLE with the exponent e in its bits is 2^(e + _LAST) in units of 2^-SCALE.
_LAST = SCALE - 1075


class SlotSums:
    """The exact sum of the values of a column, or of their squares, by slot, in units of 2^-SCALE or its
    square for DOUBLEs.
    """

    def __init__(self, *, double: bool, squares: bool) -> None:
        self._double, self._squares = double, squares
        digits = kernels.DIGITS_OF_SQUARES if squares else kernels.DIGITS
        if double:
            digits = _DIGITS_OF_SQUARES if squares else _DIGITS
        self._arrays = SlotArrays(digits=slot_array(np.int64, digits))
        if double:
            self._arrays.of |= {"base": slot_array(np.int64), "known": slot_array(np.bool_)}
        self._more: dict[int, int] = {}  # what digits don't hold
        self._added = 0

    def add(self, slots: Places, values: Array) -> None:
        """Add values."""
        self._added += len(slots)
        if self._added > kernels.MOST:
            self._carry()
            self._added = len(slots)
        arrays = self._arrays.of
        if not self._double:
            add = kernels.add_squares_of_whole if self._squares else kernels.add_whole
            add(arrays["digits"], slots, values)
            return
        outside = np.empty(len(slots), np.int64)
        state = arrays["digits"], arrays["base"], arrays["known"]
        count = kernels.add_doubles(*state, slots, values.view(np.int64), outside, self._squares)
        if count:
            rows = outside[:count]
            whole = (
                squares_of_doubles(values[rows], np.arange(count)) if self._squares else units(values[rows])
            )
            for slot, number in zip(slots[rows].tolist(), whole.tolist(), strict=True):
                self._more[slot] = self._more.get(slot, 0) + number

    def _carry(self) -> None:
        """Take the sums out of the digits, before these overflow."""
        digits = self._arrays.of["digits"]
        used = np.flatnonzero(digits.any(axis=1))
        self._more |= dict(zip(used.tolist(), self.totals(used), strict=True))
        digits[:] = 0

    def totals(self, slots: Places) -> list[int]:
        """The sums of some slots."""
        digits = self._arrays.of["digits"][slots].astype(np.object_)
        totals = digits[:, -1]
        for place in range(digits.shape[1] - 2, -1, -1):
            totals = (totals << 32) + digits[:, place]
        if self._double:
            shift = self._arrays.of["base"][slots] + _LAST
            totals <<= (2 * shift if self._squares else shift).astype(np.object_)
        found: list[int] = totals.tolist()
        if self._more:
            more = self._more
            found = [total + more.get(slot, 0) for total, slot in zip(found, slots.tolist(), strict=True)]
        return found

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room."""
        self._arrays.keep(slots, room)
        if self._more:
            more = self._more
            self._more = {new: more[old] for new, old in enumerate(slots.tolist()) if old in more}

    @property
    def bytes(self) -> int:
        """The memory that they take up, about."""
        return self._arrays.bytes + SCALE // 2 * len(self._more)
