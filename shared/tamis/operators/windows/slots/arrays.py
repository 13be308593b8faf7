"""Arrays by slot, and values as the compiled loops take them."""

from __future__ import annotations

import numpy as np

from tamis.expressions.vectors import Vector
from tamis.operators.windows.table import Array, Places


class SlotArrays:
    """Arrays with an item for each slot; the items of unused slots are 0."""

    def __init__(self, **arrays: Array) -> None:
        self.of = arrays

    def keep(self, slots: Places, room: int) -> None:
        """Keep some slots, ascending, and make room for those below a number."""
        for name, array in self.of.items():
            kept = np.zeros((room, *array.shape[1:]), array.dtype)
            kept[: len(slots)] = array[slots]
            self.of[name] = kept

    @property
    def bytes(self) -> int:
        """The memory that they take up."""
        return sum(array.nbytes for array in self.of.values())


def slot_array(type_: type, *shape: int) -> Array:
    """An array for no slots yet; `shape`: that of an item."""
    return np.zeros((0, *shape), type_)


def numbers(vector: Vector) -> Array:
    """Values as compiled loops take them; -0.0 becomes 0.0, and a BOOLEAN 0 or 1."""
    if vector.data.dtype.kind == "f":
        return vector.data + 0.0
    return np.ascontiguousarray(vector.data, np.int64)
