"""Evaluator of a query with ASOF JOIN.

A row is decided when the watermarks of all streams have passed the tuple of the first stream. All tuples that
may be chosen for it have come by then, so the rows don't depend on the order of arrival.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import ColumnDef
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Expr, aliases, columns
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Batch, Rows
from tamis.operators.latest_candidates import Candidates
from tamis.operators.row_store import KeptSource, WaitingTuples
from tamis.operators.state import pack_state, unpack_state
from tamis.query.model import AsOfJoin, Catalog, LatestValueJoin

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Joined = dict[tuple[str, str], Vector]

_NEVER = -(1 << 63)


def read_columns(query: LatestValueJoin, alias: str, catalog: Catalog) -> tuple[ColumnDef, ...]:
    """The columns of a source of a query with ASOF JOIN that the query reads, in the order of the stream."""
    exprs: list[Expr] = [conjunct.expr for conjunct in query.conjuncts]
    exprs += [output.expr for output in query.select]
    for join in query.joins:
        exprs += [column for pair in join.keys for column in pair]
        exprs += [conjunct.expr for conjunct in join.filters]
    read = {column.name for expr in exprs for column in columns(expr) if column.alias == alias}
    (stream,) = (catalog.streams[one.stream] for one in query.sources if one.alias == alias)
    return tuple(column for column in stream.columns if column.name in read)


class LatestValues:
    """See `StandingEvaluator`. `late` counts the tuples that came too late for some of their rows: for their
    own, if they are of the first stream; for rows that are already decided, if they are of another.
    """

    def __init__(self, query: LatestValueJoin, catalog: Catalog) -> None:
        self._query = query
        streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
        self.streams = frozenset(source.stream for source in query.sources)
        self.late = 0
        sources = [
            KeptSource(alias, str(stream.time), read_columns(query, alias, catalog))
            for alias, stream in streams.items()
        ]
        self._first, self._joined = sources[0], list(zip(query.joins, sources[1:], strict=True))
        self._roles = {stream: [a for a, s in streams.items() if s.name == stream] for stream in self.streams}
        own = {self._first.alias}
        self._before = [c.expr for c in query.conjuncts if aliases(c.expr) == own]
        self._after = [c.expr for c in query.conjuncts if aliases(c.expr) != own]
        self._watermarks = dict.fromkeys(self.streams, _NEVER)
        self._clock = _NEVER
        self._waiting = WaitingTuples(self._first.types)
        self._candidates = {
            join.alias: Candidates(
                source.types, [source.names.index(c.name) for _, c in join.keys], join.most
            )
            for join, source in self._joined
        }

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `StandingEvaluator`. Only watermarks complete rows."""
        roles = self._roles.get(stream, ())
        if self._first.alias in roles:
            keep, times = self._first.passing(self._before, batch, rows)
            self.late += int(np.count_nonzero(keep & (times < self._clock)))
            self._waiting.add(*_taken(self._first, batch, keep & (times >= self._clock), times))
        for join, source in self._joined:
            if join.alias in roles:
                keep, times = source.passing([c.expr for c in join.filters], batch, rows)
                self.late += self._candidates[join.alias].add(*_taken(source, batch, keep, times))
        return self._rows({}, np.zeros(0, np.int64))

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `StandingEvaluator`. The rows are in the order of their times."""
        nothing: Ints = np.zeros(0, np.int64)
        if stream not in self._watermarks or watermark <= self._watermarks[stream]:
            return self._rows({}, nothing)
        self._watermarks[stream] = watermark
        clock = min(self._watermarks.values())
        if clock <= self._clock:
            return self._rows({}, nothing)
        times, found = self._waiting.remove_before(clock)
        order = np.argsort(times, kind="stable")
        times = times[order]
        rows = {
            (self._first.alias, name): one.take(order)
            for name, one in zip(self._first.names, found, strict=True)
        }
        for join, source in self._joined:
            times, rows = self._join(join, source, clock, times, rows)
        keep = np.ones(len(times), np.bool_)
        for expr in self._after:
            keep &= holds(expr, rows, len(times))
        self._clock = clock
        return self._rows({at: one.take(keep) for at, one in rows.items()}, times[keep])

    def _join(
        self, join: AsOfJoin, source: KeptSource, clock: int, times: Ints, rows: Joined
    ) -> tuple[Ints, Joined]:
        """The rows with the columns of one more source."""
        candidates = self._candidates[join.alias]
        key = [rows[column.alias, column.name] for column, _ in join.keys]
        chosen, at = candidates.choose(clock - join.least, times - join.least, key)
        candidates.forget_before(clock)
        found = at != _NEVER
        if join.most is not None:
            found &= at >= times - join.most
        rows = rows | {(join.alias, name): one for name, one in zip(source.names, chosen, strict=True)}
        if not join.outer:
            return times[found], {at: one.take(found) for at, one in rows.items()}
        if not found.all():
            for name in source.names:
                one = rows[join.alias, name]
                data = one.data
                if data.dtype == np.object_:
                    data = data.copy()
                    data[~found] = None
                rows[join.alias, name] = Vector(data, ~found if one.null is None else one.null | ~found)
        return times, rows

    def _rows(self, rows: Joined, times: Ints) -> Rows:
        if not rows:
            for source in (self._first, *(source for _, source in self._joined)):
                rows = rows | source.nothing()
        count = len(times)
        selected = {one.name: evaluate(one.expr, rows, count) for one in self._query.select}
        return Rows(selected, np.full(count, -1, np.int64), times)

    def entries(self) -> int:
        """See `StandingEvaluator`. Tuples that wait for watermarks are counted, too."""
        return len(self._waiting) + sum(map(len, self._candidates.values()))

    def dump(self) -> bytes:
        """See `StandingEvaluator`."""
        kept = {
            "clock": self._clock,
            "watermarks": self._watermarks,
            "late": self.late,
            "waiting": self._waiting.dumped(),
            "candidates": {alias: one.dumped() for alias, one in self._candidates.items()},
        }
        return pack_state(self._form(), kept)

    def load(self, state: bytes) -> None:
        """See `StandingEvaluator`."""
        kept = unpack_state(state, self._form())
        self._clock, self._watermarks, self.late = kept["clock"], dict(kept["watermarks"]), kept["late"]
        self._waiting.restore(kept["waiting"])
        for alias, one in self._candidates.items():
            one.restore(kept["candidates"][alias])

    def _form(self) -> list[object]:
        joins = [
            [join.alias, [[a.alias, a.name, b.name] for a, b in join.keys], join.least, join.most, join.outer]
            for join in self._query.joins
        ]
        return ["latest values", joins, *(one.form() for one in (self._first, *(s for _, s in self._joined)))]


def _taken(source: KeptSource, batch: Batch, keep: Bools, times: Ints) -> tuple[Ints, list[Vector]]:
    """The times and the kept columns of the tuples in a mask."""
    if keep.all():
        return times, [batch[name] for name in source.names]
    return times[keep], [batch[name].take(keep) for name in source.names]
