"""A query over the rows of others: a chain of operators with one state.

The rows of an inner query are tuples of the query that reads them, and are taken in order of event time. The
inner query promises that no later row will be earlier, which is the watermark of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import orjson

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Batch, CountsLate, Rows, StandingEvaluator
from tamis.operators.state import pack_state, unpack_state
from tamis.plan.nodes import InnerRows


@runtime_checkable
class RowsInOrder(Protocol):
    """An evaluator whose rows come in order of event time."""

    @property
    def passed(self) -> int | None:
        """No later row has an event time before this one, in microseconds; None if nothing is known yet."""


class NestedEvaluator:
    """A query over the rows of inner queries, each with an evaluator of its own."""

    def __init__(
        self, inner: Sequence[tuple[InnerRows, StandingEvaluator]], outer: StandingEvaluator
    ) -> None:
        self._inner, self._outer = inner, outer
        first = inner[0][0]
        none = {
            name: Vector.from_list([], kind) for name, kind in (*first.columns, (first.time, Type.TIMESTAMP))
        }
        self._nothing = outer.take(first.stream, none, 0)
        made = {rows.stream for rows, _ in inner}
        raw = frozenset().union(*(one.streams for _, one in inner))
        self.streams: frozenset[str] = raw | (outer.streams - made)

    @property
    def late(self) -> int:
        """The number of tuples that arrived too late for a query, added up over all queries."""
        every = (*(one for _, one in self._inner), self._outer)
        return sum(one.late for one in every if isinstance(one, CountsLate))

    @property
    def passed(self) -> int | None:
        """No later row of the outer query has an event time before this one, in microseconds; None if it
        isn't known.
        """
        return self._outer.passed if isinstance(self._outer, RowsInOrder) else None

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Give the tuples to the queries that read them; inner queries give rows only with watermarks."""
        for _, inner in self._inner:
            if stream in inner.streams:
                inner.take(stream, batch, rows)
        return self._outer.take(stream, batch, rows) if stream in self._outer.streams else self._nothing

    def advance(self, stream: str, watermark: int) -> Rows:
        """Advance the queries that read the stream. The outer query takes the rows of an inner query, and the
        time that these have passed as their watermark; returns the rows of the outer query.
        """
        parts: list[Rows] = []
        for made, inner in self._inner:
            if stream not in inner.streams:
                continue
            inner_rows = inner.advance(stream, watermark)
            tuples = tuples_of(made.time, [name for name, _ in made.columns], inner_rows)
            parts.append(self._outer.take(made.stream, tuples, len(inner_rows)))
            passed = inner.passed if isinstance(inner, RowsInOrder) else None
            if passed is not None:
                parts.append(self._outer.advance(made.stream, passed))
        if stream in self._outer.streams:
            parts.append(self._outer.advance(stream, watermark))
        return Rows.concat([one for one in parts if len(one)] or parts[:1])

    def entries(self) -> int:
        """The number of entries of all queries."""
        return self._outer.entries() + sum(one.entries() for _, one in self._inner)

    def dump(self) -> bytes:
        """The states of all queries as JSON, the outer one last."""
        every = (*(one for _, one in self._inner), self._outer)
        return pack_state(["nested"], [orjson.Fragment(one.dump()) for one in every])

    def load(self, state: bytes) -> None:
        """Restore the states of all queries. Raises RefusedError if one is of another query or version."""
        every = (*(one for _, one in self._inner), self._outer)
        for one, kept in zip(every, unpack_state(state, ["nested"]), strict=True):
            one.load(orjson.dumps(kept))


def tuples_of(time: str, names: Iterable[str], rows: Rows) -> dict[str, Vector]:
    """Rows of a query as tuples of a stream with these columns, of which `time` is the event time."""
    times = np.empty(0, np.int64) if rows.times is None else rows.times
    named = {name: rows.columns[name] for name in names if name != time}
    return {**named, time: Vector(np.asarray(times, np.int64))}
