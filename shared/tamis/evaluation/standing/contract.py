"""What every kind of standing query does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Vector

# The column that marks the rows of groups for which HAVING stopped to hold.
WITHDRAWN = "_withdrawn"

Batch = Mapping[str, Vector]  # the columns of tuples of one stream, all of one length


@dataclass(frozen=True)
class Rows:
    """What tuples add to a result: the columns of SELECT, and `_withdrawn` where the query has HAVING. A row
    that arises several times stands here as often. `completed` is, for each row, the place in the batch of
    the tuple that completed it; places rise. Where the watermark completes rows, `times` are their event
    times.
    """

    columns: Mapping[str, Vector]
    completed: NDArray[np.int64]
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.completed)

    def take(self, at: NDArray[np.int64]) -> Rows:
        """The rows at some places."""
        columns = {name: vector.take(at) for name, vector in self.columns.items()}
        return Rows(columns, self.completed[at], None if self.times is None else self.times[at])

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """One after the other: at least one, all of one query."""
        columns = {name: Vector.concat([one.columns[name] for one in parts]) for name in parts[0].columns}
        times = [one.times for one in parts if one.times is not None]
        completed = np.concatenate([one.completed for one in parts])
        return Rows(columns, completed, np.concatenate(times) if len(times) == len(parts) else None)


class Standing(Protocol):
    """A standing query and its state. `streams` are the raw streams that it reads."""

    streams: frozenset[str]

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """What `rows` tuples of one stream, in their order, add to the result. `batch` has at least the
        columns that the query reads.
        """

    def advance(self, stream: str, watermark: int) -> Rows:
        """What follows from that no tuple of `stream` before `watermark`, in microseconds, will come any
        more. Its rows were completed by no tuple: their place is -1.
        """

    def entries(self) -> int:
        """How many synopsis entries there are now: what the bound of the query limits."""

    def dump(self) -> bytes:
        """The whole state."""

    def load(self, state: bytes) -> None:
        """Go on from a state that was dumped by a standing query of the same SQL; this one must be fresh.

        Raises RefusedError where the state is of another release or another query.
        """


@runtime_checkable
class CountsLate(Protocol):
    """A standing query that takes tuples behind the watermark, too, as far as they still count. `late`: how
    many came too late for some of what they belong to.
    """

    late: int


@runtime_checkable
class InTurn(Protocol):
    """A standing query that takes batches of several streams at once, however their tuples alternate."""

    def take_in_turn(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """What tuples add to the result, as if each was taken by itself. `of` says, for each in their order,
        the number of its batch, of which it is the next one; places in `completed` are in that order.
        """
