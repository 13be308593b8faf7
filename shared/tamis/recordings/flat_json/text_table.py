"""Texts by number: the texts that a stream's readings have had, so that each is made once.

The table grows until it has its largest size. Then it forgets all texts each time when it is full. So texts
that never come again, such as ids of messages, take a bounded amount of memory.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit
from tamis.recordings.flat_json.tokens import HASH, PRIME

FEW, MANY = 1 << 10, 1 << 15
# Bytes of the texts for each that the table can have.
_LENGTH = 32
# Slots for each text that the table can have.
_SLOTS = 4
# Slots that are looked at for a text: senders can choose texts whose hashes are equal. Of other texts, about
# one in a thousand million needs more.
_PROBES = 32
# The multiplier of MurmurHash3's finalizer.
_MIX = np.uint64(0xFF51AFD7ED558CCD)


@njit(cache=True)
def equal(buffer, start, size, others, other):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True if `size` bytes are the same in both arrays."""
    place = 0
    while place < size and buffer[start + place] == others[other + place]:
        place += 1
    return place == size


@njit(cache=True)
def text_slot(value):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The slot for a text with this hash in a table of any size, before it is cut to the table's size. The
    hashes of similar texts differ in few bits, which are mixed here.
    """
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return value ^ (value >> np.uint64(32))


@njit(cache=True)
def number_of(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    buffer, start, stop, value, slots, ends, texts, full
):
    """The number of a text, which is added if it is new; -1 if the table has no place for it.

    `value`: its hash. `slots`: of the hash table, 0 if empty. `ends`: `ends[0]` is the greatest number, and
    the bytes of text n are those of `texts` from `ends[n]` to `ends[n + 1]`. `full[0]` is set where a text
    didn't fit.
    """
    mask = np.uint64(len(slots) - 1)
    size = stop - start
    for probe in range(_PROBES):
        slot = np.int64(text_slot(value) + np.uint64(probe) & mask)
        known = slots[slot]
        if known == 0:
            count = ends[0]
            if count + 2 >= len(ends) or ends[count + 1] + size > len(texts):
                full[0] = True
                return -1
            known = count + 1
            for place in range(size):
                texts[ends[known] + place] = buffer[start + place]
            ends[known + 1] = ends[known] + size
            ends[0] = slots[slot] = known
            return known
        if ends[known + 1] - ends[known] == size and equal(buffer, start, size, texts, ends[known]):
            return known
    return -1


@njit(cache=True)
def place_all(slots, ends, texts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill the hash table `slots`, which is empty, with all texts. One whose slots are taken is left out."""
    mask = np.uint64(len(slots) - 1)
    for known in range(1, ends[0] + 1):
        value = HASH
        for place in range(ends[known], ends[known + 1]):
            value = (value ^ np.uint64(texts[place])) * PRIME
        for probe in range(_PROBES):
            slot = np.int64(text_slot(value) + np.uint64(probe) & mask)
            if slots[slot] == 0:
                slots[slot] = known
                break


class _Identity:
    """Stands for the texts of a table until it forgets them. It can be weakly referenced."""


class TextTable:
    """Up to about `most` texts by number; the number 0 stands for NULL."""

    def __init__(self, most: int = MANY) -> None:
        self._size, self._most = FEW, most
        self._forget()

    def _forget(self) -> None:
        self.slots = np.zeros(_SLOTS * self._size, np.int64)
        self.ends = np.zeros(self._size + 2, np.int64)
        self.texts = np.empty(_LENGTH * self._size, np.uint8)
        self.full = np.zeros(1, np.bool_)
        # The texts that have been asked for, in an array with room for more: the first `_made` are made.
        self._known, self._made = np.array([None], np.object_), 1
        self.identity = _Identity()

    def make_room(self) -> bool:
        """Double the size of the table. If it has its largest size, forget all texts, and return True."""
        if self._size >= self._most:
            self._forget()
            return True
        self._size *= 2
        self.slots = np.zeros(_SLOTS * self._size, np.int64)
        self.ends = np.concatenate((self.ends, np.zeros(self._size + 2 - len(self.ends), np.int64)))
        self.texts = np.concatenate((self.texts, np.empty(_LENGTH * self._size - len(self.texts), np.uint8)))
        self.full[0] = False
        place_all(self.slots, self.ends, self.texts)
        return False

    def strings(self, numbers: NDArray[np.int64]) -> NDArray[np.object_]:
        """The texts with these numbers, None for 0."""
        count = int(self.ends[0]) + 1
        if self._made < count:
            if len(self._known) < count:
                # Twice as many: so a text is copied about once, and not each time a new one comes.
                known = np.empty(min(2 * count, len(self.ends)), np.object_)
                known[: self._made] = self._known[: self._made]
                self._known = known
            ends = self.ends[self._made : count + 1].tolist()
            self._known[self._made : count] = [
                self.texts[start:end].tobytes().decode() for start, end in pairwise(ends)
            ]
            self._made = count
        found: NDArray[np.object_] = self._known[numbers]
        return found
