"""Interface of the evaluators of all kinds of standing queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Vector
from tamis.operators.windows.pane_rows import PaneRows
from tamis.plan.nodes import Grouping

# The column that marks the rows of groups for which HAVING no longer holds.
WITHDRAWN = "_withdrawn"

Batch = Mapping[str, Vector]  # the columns of tuples of one stream, all of one length


@dataclass(frozen=True)
class Rows:
    """Rows that tuples add to a result: the columns of SELECT, and `_withdrawn` if the query has HAVING.

    A row that arises several times is listed as many times. For each row, `completed` has the position in the
    batch of the tuple that completed it; positions ascend. If the watermark completes rows, `times` are their
    event times.
    """

    columns: Mapping[str, Vector]
    completed: NDArray[np.int64]
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.completed)

    def take(self, at: NDArray[np.int64]) -> Rows:
        """The rows at these positions."""
        columns = {name: vector.take(at) for name, vector in self.columns.items()}
        return Rows(columns, self.completed[at], None if self.times is None else self.times[at])

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """The rows of all parts in order; at least one part, all of one query."""
        columns = {name: Vector.concat([one.columns[name] for one in parts]) for name in parts[0].columns}
        times = [one.times for one in parts if one.times is not None]
        completed = np.concatenate([one.completed for one in parts])
        return Rows(columns, completed, np.concatenate(times) if len(times) == len(parts) else None)


@dataclass(frozen=True)
class RecordedRun:
    """Result of a run over recordings.

    `rows`: all rows in the order in which they arise; `completed` has positions among all tuples. `entries`:
    the greatest number of entries after any batch. `late`: the number of tuples that are missing in a window
    because they arrived after its end.
    """

    rows: Rows
    entries: int
    late: int = 0


class StandingEvaluator(Protocol):
    """A standing query and its state. `streams` are the raw streams that it reads."""

    streams: frozenset[str]

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Take `rows` tuples of one stream in order; returns the rows that they complete. `batch` has at
        least the columns that the query reads.
        """

    def advance(self, stream: str, watermark: int) -> Rows:
        """Take the promise that no more tuples of `stream` before `watermark` (microseconds) will arrive;
        returns the rows that this completes. Their position is -1, because no tuple completed them.
        """

    def entries(self) -> int:
        """The number of synopsis entries now, which the bound of the query limits."""

    def dump(self) -> bytes:
        """The whole state."""

    def load(self, state: bytes) -> None:
        """Continue from a state that an operator of the same query dumped; this evaluator must have empty
        state.

        Raises RefusedError if the state belongs to another release or another query.
        """


@runtime_checkable
class CountsLate(Protocol):
    """An evaluator that also takes tuples behind the watermark if they can still be counted.

    `late`: the number of tuples that came too late for some of their rows.
    """

    late: int


@runtime_checkable
class TakesPanes(Protocol):
    """An evaluator that also takes partial aggregates of tuples, as edges compute them."""

    def take_panes(self, rows: PaneRows, sent: Grouping) -> None:
        """Count the tuples of some panes and groups. `sent`: the grouping of the rows, which may have more
        than the query needs. Raises RefusedError if it has less.
        """


@runtime_checkable
class InterleavedInput(Protocol):
    """An evaluator that takes batches of several streams at once, with their tuples in any interleaving."""

    def take_interleaved(self, batches: Mapping[str, Batch], batch_of: NDArray[np.int64]) -> Rows:
        """Take tuples as if they were taken one by one; returns the rows that they complete.

        `batch_of`: for each tuple, in order, the number of its batch. The tuple is the next one of that
        batch. Positions in `completed` are in this order.
        """
