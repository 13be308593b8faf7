"""DOUBLEs as whole numbers that keep their order: their places among all DOUBLEs."""

from __future__ import annotations

import struct


def place(value: float) -> int:
    """The place of a DOUBLE among all: of two, the greater one's is greater; that of 0.0 is 0.

    >>> place(0.0), place(-0.0), place(5e-324), place(-1.5) < place(-1.0)
    (0, 0, 1, True)
    """
    bits = int.from_bytes(struct.pack(">d", abs(value)))
    return -bits if value < 0 else bits


def at_place(number: int) -> float:
    """The DOUBLE at a place.

    >>> at_place(place(-1.5)), at_place(place(1e300))
    (-1.5, 1e+300)
    """
    (value,) = struct.unpack(">d", abs(number).to_bytes(8))
    return -float(value) if number < 0 else float(value)
