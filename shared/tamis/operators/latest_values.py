"""ASOF JOIN: each tuple of the first stream with the latest tuples of others.

A row is decided when the watermarks of all streams have passed the tuple of the first stream. All tuples that
may be chosen for it have come by then, so the rows don't depend on the order of arrival.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Batch, Rows
from tamis.operators.latest_candidates import Candidates
from tamis.operators.row_store import KeptSource, WaitingTuples
from tamis.operators.state import pack_state, unpack_state
from tamis.plan import nodes

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Joined = dict[tuple[str, str], Vector]

_NEVER = -(1 << 63)


class LatestValues:
    """Each tuple of the first source with the latest tuples of the others. `late` counts tuples of the first
    source that came after the watermarks had passed them, and so have no row, and tuples of others that came
    too late for rows that are already decided.
    """

    def __init__(self, node: nodes.LatestValues) -> None:
        self._node = node
        self.late = 0
        self._first = KeptSource(node.first)
        self._joined = [(join, KeptSource(join.scan)) for join in node.joins]
        sources = [self._first, *(source for _, source in self._joined)]
        self.streams = frozenset(source.stream for source in sources)
        self._roles = {
            stream: [one.alias for one in sources if one.stream == stream] for stream in self.streams
        }
        self._watermarks = dict.fromkeys(self.streams, _NEVER)
        self._clock = _NEVER
        self._waiting = WaitingTuples(self._first.types)
        self._candidates = {
            source.alias: Candidates(
                source.types, [source.names.index(c.name) for _, c in join.keys], join.most
            )
            for join, source in self._joined
        }

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Keep the tuples that pass; rows come only with watermarks."""
        roles = self._roles.get(stream, ())
        if self._first.alias in roles:
            keep, times = self._first.passing(batch, rows)
            self.late += int(np.count_nonzero(keep & (times < self._clock)))
            self._waiting.add(*_taken(self._first, batch, keep & (times >= self._clock), times))
        for _, source in self._joined:
            if source.alias in roles:
                keep, times = source.passing(batch, rows)
                self.late += self._candidates[source.alias].add(*_taken(source, batch, keep, times))
        return self._rows({}, np.zeros(0, np.int64))

    def advance(self, stream: str, watermark: int) -> Rows:
        """The rows of the first source's tuples that all watermarks have passed, in order of event time."""
        nothing: Ints = np.zeros(0, np.int64)
        if stream not in self._watermarks or watermark <= self._watermarks[stream]:
            return self._rows({}, nothing)
        self._watermarks[stream] = watermark
        clock = min(self._watermarks.values())
        if clock <= self._clock:
            return self._rows({}, nothing)
        times, columns = self._waiting.remove_before(clock)
        order = np.argsort(times, kind="stable")
        times = times[order]
        rows = {
            (self._first.alias, name): one.take(order)
            for name, one in zip(self._first.names, columns, strict=True)
        }
        for join, source in self._joined:
            times, rows = self._join(join, source, clock, times, rows)
        keep = np.ones(len(times), np.bool_)
        for expr in self._node.filter:
            keep &= holds(expr, rows, len(times))
        self._clock = clock
        return self._rows({at: one.take(keep) for at, one in rows.items()}, times[keep])

    def _join(
        self, join: nodes.LatestJoin, source: KeptSource, clock: int, times: Ints, rows: Joined
    ) -> tuple[Ints, Joined]:
        """The rows with the columns of one more source."""
        candidates = self._candidates[source.alias]
        key = [rows[column.alias, column.name] for column, _ in join.keys]
        chosen, at = candidates.choose(clock - join.least, times - join.least, key)
        candidates.forget_before(clock)
        has_partner = at != _NEVER
        if join.most is not None:
            has_partner &= at >= times - join.most
        rows = rows | {(source.alias, name): one for name, one in zip(source.names, chosen, strict=True)}
        if not join.outer:
            return times[has_partner], {at: one.take(has_partner) for at, one in rows.items()}
        if not has_partner.all():
            for name in source.names:
                one = rows[source.alias, name]
                data = one.data
                if data.dtype == np.object_:
                    data = data.copy()
                    data[~has_partner] = None
                rows[source.alias, name] = Vector(
                    data, ~has_partner if one.null is None else one.null | ~has_partner
                )
        return times, rows

    def _rows(self, rows: Joined, times: Ints) -> Rows:
        if not rows:
            for source in (self._first, *(source for _, source in self._joined)):
                rows = rows | source.nothing()
        count = len(times)
        selected = {name: evaluate(expr, rows, count) for name, expr in self._node.select}
        return Rows(selected, np.full(count, -1, np.int64), times)

    def entries(self) -> int:
        """The number of kept tuples: those of the first source that wait, and the candidates of others."""
        return len(self._waiting) + sum(map(len, self._candidates.values()))

    def dump(self) -> bytes:
        """The watermarks and all kept tuples, as JSON."""
        kept = {
            "clock": self._clock,
            "watermarks": self._watermarks,
            "late": self.late,
            "waiting": self._waiting.dumped(),
            "candidates": {alias: one.dumped() for alias, one in self._candidates.items()},
        }
        return pack_state(self._form(), kept)

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        kept = unpack_state(state, self._form())
        self._clock, self._watermarks, self.late = kept["clock"], dict(kept["watermarks"]), kept["late"]
        self._waiting.restore(kept["waiting"])
        for alias, one in self._candidates.items():
            one.restore(kept["candidates"][alias])

    def _form(self) -> list[object]:
        joins = [
            [one.alias, [[a.alias, a.name, b.name] for a, b in join.keys], join.least, join.most, join.outer]
            for join, one in self._joined
        ]
        return ["latest values", joins, *(one.form() for one in (self._first, *(s for _, s in self._joined)))]


def _taken(source: KeptSource, batch: Batch, keep: Bools, times: Ints) -> tuple[Ints, list[Vector]]:
    """The times and the kept columns of the tuples in a mask."""
    if keep.all():
        return times, [batch[name] for name in source.names]
    return times[keep], [batch[name].take(keep) for name in source.names]
