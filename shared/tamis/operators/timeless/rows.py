"""Evaluators of queries without aggregates over streams without event time, and of their unions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.operators.contract import Batch, Rows
from tamis.operators.kept_columns import kept_columns
from tamis.operators.row_store import DistinctRows
from tamis.operators.state import pack_state, unpack_state
from tamis.operators.timeless.alternatives import alternatives
from tamis.operators.timeless.matches import Matches, Wanted
from tamis.plan import nodes


class SelectProjectJoin:
    """A query without aggregates. Without DISTINCT, and as a part of UNION, rows may come again."""

    def __init__(self, node: nodes.Rows) -> None:
        self.streams, self._select = frozenset(node.streams), node.select
        self._given = DistinctRows() if node.distinct else None
        self._kept = kept_columns(node.kept)
        shown = (column for _, expr in node.select for column in columns(expr) if column.alias)
        self._wanted = Wanted(tuple(dict.fromkeys(shown)))
        self._alternatives = alternatives(node.matching, self._kept, self._wanted)

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """The rows that the tuples complete; with DISTINCT only new rows."""
        return self.take_interleaved({stream: batch}, np.zeros(rows, np.int64))

    def take_interleaved(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """The rows that interleaved tuples complete, in the order of these tuples; with DISTINCT only new
        rows.
        """
        return self._rows([one.take(batches, of) for one in self._alternatives])

    def advance(self, stream: str, watermark: int) -> Rows:
        """No rows: watermarks have no effect on streams without event time."""
        return self._rows([])

    def entries(self) -> int:
        """The number of entries of all alternatives, and of rows that DISTINCT remembers."""
        given = 0 if self._given is None else len(self._given.rows)
        return sum(one.entries for one in self._alternatives) + given

    def dump(self) -> bytes:
        """The entries of all alternatives and the rows that DISTINCT remembers, as JSON."""
        return pack_state(self.form(), self.dumped())

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        self.restore(unpack_state(state, self.form()))

    def form(self) -> list[Any]:
        """The form that a state must have."""
        names = dict(sorted(self._kept.names.items()))
        return ["rows", self._given is not None, len(self._alternatives), names]

    def dumped(self) -> list[Any]:
        """The state, as JSON."""
        given = None if self._given is None else self._given.dumped()
        return [[one.dumped() for one in self._alternatives], given]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore a dumped state."""
        alternatives, given = dumped
        for one, kept in zip(self._alternatives, alternatives, strict=True):
            one.restore(kept)
        if self._given is not None:
            self._given.restore(given)

    def _rows(self, parts: Sequence[Matches]) -> Rows:
        matches = Matches.merged([Matches.none(self._wanted), *parts])
        at = np.repeat(np.arange(len(matches.places)), matches.weights.astype(np.int64))
        made = {name: vector.take(at) for name, vector in matches.columns.items()}
        selected = {name: evaluate(expr, made, len(at)) for name, expr in self._select}
        rows = Rows(selected, matches.places[at])
        return rows if self._given is None else rows.take(self._given.new(list(selected.values())))


class Union:
    """The SELECTs of a union. UNION keeps the rows given by any of them; the columns have the names of the
    first SELECT.
    """

    def __init__(self, node: nodes.Union) -> None:
        self._names = [name for name, _ in node.members[0].select]
        self._given = DistinctRows() if node.distinct else None
        self._members = [SelectProjectJoin(member) for member in node.members]
        self.streams = frozenset().union(*(member.streams for member in self._members))

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """The rows of all SELECTs that the tuples complete; UNION without ALL gives only new rows."""
        return self.take_interleaved({stream: batch}, np.zeros(rows, np.int64))

    def take_interleaved(self, batches: Mapping[str, Batch], of: NDArray[np.int64]) -> Rows:
        """The rows of all SELECTs that interleaved tuples complete, in the order of these tuples. UNION
        without ALL gives only new rows.
        """
        return self._merged([one.take_interleaved(batches, of) for one in self._members])

    def advance(self, stream: str, watermark: int) -> Rows:
        """No rows: watermarks have no effect on streams without event time."""
        return self._merged([one.advance(stream, watermark) for one in self._members])

    def entries(self) -> int:
        """The number of entries of all SELECTs, and of rows that UNION without ALL remembers."""
        return sum(one.entries() for one in self._members) + (len(self._given.rows) if self._given else 0)

    def dump(self) -> bytes:
        """The states of all SELECTs and the rows that UNION without ALL remembers, as JSON."""
        given = None if self._given is None else self._given.dumped()
        return pack_state(self._form(), [[one.dumped() for one in self._members], given])

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        members, given = unpack_state(state, self._form())
        for member, dumped in zip(self._members, members, strict=True):
            member.restore(dumped)
        if self._given is not None:
            self._given.restore(given)

    def _form(self) -> list[object]:
        return ["union", self._given is not None, *(one.form() for one in self._members)]

    def _merged(self, members: list[Rows]) -> Rows:
        named = [
            Rows(dict(zip(self._names, one.columns.values(), strict=True)), one.completed) for one in members
        ]
        rows = Rows.concat(named)
        rows = rows.take(np.argsort(rows.completed, kind="stable"))
        return rows if self._given is None else rows.take(self._given.new(list(rows.columns.values())))
