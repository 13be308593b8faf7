"""Columns of the tuples that some entry has not decided on yet, found by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tamis.expressions.vectors import Columns, Vector
from tamis.omission.columns import Int64s


@dataclass(frozen=True, slots=True)
class Batch:
    """Decoded tuples of one shard in the order of their offsets, which may have gaps.

    `columns`: all columns of the stream, by name. `times`: event times. `arrivals`: wall clock. Both are in
    microseconds.
    """

    columns: dict[str, Vector]
    times: Int64s
    offsets: Int64s
    arrivals: Int64s

    def __len__(self) -> int:
        return len(self.offsets)

    def view(self) -> Columns:
        """The columns by the names that expressions of entries and checks use."""
        return {("", name): column for name, column in self.columns.items()}

    def take(self, rows: np.ndarray | slice) -> Batch:
        """The given rows (indices, a mask, or a slice, which copies nothing)."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Batch(columns, self.times[rows], self.offsets[rows], self.arrivals[rows])

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """The tuples of several batches, at least one, one batch after the other."""
        if len(batches) == 1:
            return batches[0]
        return cls(
            {name: Vector.concat([b.columns[name] for b in batches]) for name in batches[0].columns},
            np.concatenate([b.times for b in batches]),
            np.concatenate([b.offsets for b in batches]),
            np.concatenate([b.arrivals for b in batches]),
        )


@dataclass(slots=True)
class Chunk:
    """Tuples of a batch, with ascending `ids`.

    `codes` has the code of each tuple's partition key by the serial number of a topic. `published` is true
    for a tuple that was sent to at least one topic.
    """

    ids: Int64s
    batch: Batch
    codes: dict[int, Int64s]
    published: np.ndarray

    def take(self, rows: np.ndarray) -> Chunk:
        """The given rows (indices or a mask)."""
        codes = {topic: column[rows] for topic, column in self.codes.items()}
        return Chunk(self.ids[rows], self.batch.take(rows), codes, self.published[rows])

    @classmethod
    def concat(cls, chunks: list[Chunk]) -> Self:
        """The tuples of several chunks, in order.

        A tuple that arrived before a topic existed has the code -1 for that topic. Nothing reads this code.
        """
        topics = set().union(*(chunk.codes for chunk in chunks))
        return cls(
            np.concatenate([chunk.ids for chunk in chunks]),
            Batch.concat([chunk.batch for chunk in chunks]),
            {
                topic: np.concatenate(
                    [chunk.codes.get(topic, np.full(len(chunk.ids), -1, np.int64)) for chunk in chunks]
                )
                for topic in topics
            },
            np.concatenate([chunk.published for chunk in chunks]),
        )


class Rows:
    """Chunks in the order of their ids. `retain` merges the tuples that are still needed into one chunk."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []

    def __len__(self) -> int:
        return sum(len(chunk.ids) for chunk in self._chunks)

    def append(self, chunk: Chunk) -> None:
        """Add tuples whose ids are greater than all stored ids."""
        self._chunks.append(chunk)

    def find(self, ids: Int64s) -> list[tuple[Chunk, Int64s]]:
        """The chunks that contain the given tuples, with their rows in each. `ids` ascend, and all of them
        are stored.
        """
        found = []
        start = 0
        for chunk in self._chunks:
            if start == len(ids):
                break
            end = int(np.searchsorted(ids, chunk.ids[-1], side="right"))
            if end > start:
                found.append((chunk, np.searchsorted(chunk.ids, ids[start:end])))
                start = end
        return found

    def codes(self, topic: int) -> list[Int64s]:
        """The codes of the partition keys of all tuples in a topic, given by its serial number."""
        found = [chunk.codes[topic] for chunk in self._chunks if topic in chunk.codes]
        return [codes[codes >= 0] for codes in found]

    def retain(self, ids: Int64s) -> int:
        """Forget all other tuples than these (ids ascend); returns how many of the forgotten tuples were
        never published.
        """
        omitted = 0
        kept = []
        for chunk in self._chunks:
            if len(ids):
                place = np.minimum(np.searchsorted(ids, chunk.ids), len(ids) - 1)
                needed = ids[place] == chunk.ids
            else:
                needed = np.zeros(len(chunk.ids), np.bool_)
            omitted += int(np.count_nonzero(~needed & ~chunk.published))
            if needed.any():
                kept.append(chunk if needed.all() else chunk.take(needed))
        self._chunks = [Chunk.concat(kept)] if len(kept) > 1 else kept
        return omitted
