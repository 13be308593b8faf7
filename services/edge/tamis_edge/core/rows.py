"""The tuples that some entry has not decided yet, in columns, by the handle that the shard gave them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tamis.expressions.vectors import Columns, Vector
from tamis_edge.core.keys import Int64s


@dataclass(frozen=True, slots=True)
class Batch:
    """Decoded tuples of one shard in the order of their offsets, which need not be without gaps.

    `columns`: by name, all of the stream's; `times`: event times; `arrivals`: wall clock; both in
    microseconds.
    """

    columns: dict[str, Vector]
    times: Int64s
    offsets: Int64s
    arrivals: Int64s

    def __len__(self) -> int:
        return len(self.offsets)

    def view(self) -> Columns:
        """The columns as expressions of entries and checks name them."""
        return {("", name): column for name, column in self.columns.items()}

    def take(self, rows: np.ndarray) -> Batch:
        """The given rows (indices or a mask)."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Batch(columns, self.times[rows], self.offsets[rows], self.arrivals[rows])


@dataclass(slots=True)
class Chunk:
    """Rows of a batch: `ids` ascending; `codes`: their partition key by topic's serial number; `published`:
    to any topic.
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
        """One after the other. A row from before a topic has the code -1 there, where nothing looks it up."""
        batches = [chunk.batch for chunk in chunks]
        columns = {name: Vector.concat([b.columns[name] for b in batches]) for name in batches[0].columns}
        topics = set().union(*(chunk.codes for chunk in chunks))
        return cls(
            np.concatenate([chunk.ids for chunk in chunks]),
            Batch(
                columns,
                np.concatenate([b.times for b in batches]),
                np.concatenate([b.offsets for b in batches]),
                np.concatenate([b.arrivals for b in batches]),
            ),
            {
                topic: np.concatenate(
                    [chunk.codes.get(topic, np.full(len(chunk.ids), -1, np.int64)) for chunk in chunks]
                )
                for topic in topics
            },
            np.concatenate([chunk.published for chunk in chunks]),
        )


class Rows:
    """Chunks in the order of their ids; `retain` melts what is still needed into one."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []

    def __len__(self) -> int:
        return sum(len(chunk.ids) for chunk in self._chunks)

    def append(self, chunk: Chunk) -> None:
        """Add rows whose ids are greater than all before."""
        self._chunks.append(chunk)

    def find(self, ids: Int64s) -> list[tuple[Chunk, Int64s]]:
        """Where rows lie: chunks with the places in them. `ids` ascending, all of them stored."""
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
        """The codes of the partition keys of all rows in a topic, by its serial number."""
        found = [chunk.codes[topic] for chunk in self._chunks if topic in chunk.codes]
        return [codes[codes >= 0] for codes in found]

    def retain(self, ids: Int64s) -> int:
        """Forget all rows but these (ascending); returns how many of the others were never published."""
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
