"""Slots of pairs of integers."""

from __future__ import annotations

import numpy as np

from tamis.operators.windows.slots.kernels import find_slots
from tamis.operators.windows.table import Places

# Slots for which there is room at first.
_LEAST = 1_024


class SlotIndex:
    """Gives each pair of integers a slot, from 0. The caller makes room before there are more slots than fit:
    it has arrays by slot, too.
    """

    def __init__(self) -> None:
        none: Places = np.empty(0, np.int64)
        self.used = 0
        self._first, self._second = none, none  # of the pair of each slot
        self._table = none  # of slots, by the hash of the pair

    @property
    def room(self) -> int:
        """The number of slots that fit."""
        return len(self._first)

    @property
    def first(self) -> Places:
        """The first integer of the pair of each slot."""
        return self._first[: self.used]

    @property
    def second(self) -> Places:
        """The second integer of the pair of each slot."""
        return self._second[: self.used]

    def find(self, first: Places, second: Places) -> Places:
        """The slots of pairs, of which there is room for as many new ones."""
        slots = np.empty(len(first), np.int64)
        state = self._table, self._first, self._second
        self.used = find_slots(*state, self.used, first, second, slots)
        return slots

    def fill(self, first: Places, second: Places, room: int) -> int:
        """Have only these pairs, which are all different, in the slots from 0, and room for at least so many
        slots; returns the room that there is.
        """
        room = max(_LEAST, 1 << (room - 1).bit_length())
        self._first, self._second = np.zeros(room, np.int64), np.zeros(room, np.int64)
        # At most half of the places are used.
        self._table = np.full(2 * room, -1, np.int64)
        self.used = 0
        self.find(first, second)
        return room

    @property
    def bytes(self) -> int:
        """The memory that it takes up."""
        return self._table.nbytes + self._first.nbytes + self._second.nbytes
