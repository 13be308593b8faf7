"""Slices of a batch of payloads, whose objects are made and forgotten one slice after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tamis.recordings.json_values import excerpt
from tamis_edge.decode.by_schema.logical_types import Unfit

# Payloads of a slice, and their bytes: few enough that their objects stay in the processor's cache. No other
# thread of the edge runs while the parser does, which takes 50 ms for 50,000 nested arrays.
SLICE, SLICE_BYTES = 500, 100_000


def slices(payloads: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """The bounds of the slices: each has at most SLICE payloads, and at most SLICE_BYTES or a single payload.

    >>> list(slices([b"x" * 90_000, b"x" * 9_000, b"x" * 1_001, b"x" * 200_000]))
    [(0, 2), (2, 3), (3, 4)]
    """
    start = size = 0
    for row, payload in enumerate(payloads):
        if row > start and (row - start == SLICE or size + len(payload) > SLICE_BYTES):
            yield start, row
            start, size = row, 0
        size += len(payload)
    if payloads:
        yield start, len(payloads)


def without_nested(values: Sequence[Any]) -> Sequence[Any]:
    """Values with excerpts in place of arrays and objects: no column can have these, and their parts need a
    hundred times the memory of a payload.

    >>> without_nested([1.5, [[], [2]], None])
    [1.5, [[],[2]], None]
    """
    if not {list, dict} & set(map(type, values)):
        return values
    return [Unfit(excerpt(value)) if type(value) in (list, dict) else value for value in values]
