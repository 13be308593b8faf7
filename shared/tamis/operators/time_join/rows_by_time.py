"""A join by time whose rows another operator reads in order of time.

The rows have the event time of one source, called the first one here. A combination is decided when no tuple
that could join its tuple of the first source can come any more: each watermark has passed this tuple's time
plus the longest time by which a tuple of that stream may follow it. So each tuple of the first source is
joined once, in order of event time, with the tuples of the other sources that are kept. A combination is a
row if all of its tuples came before it was decided, in whatever order.

The partners of a tuple are found as in `temporal_join`: with rows sorted by (key, time), they are one range,
and this range decides all bounds on times.

If the sources are in windows of TUMBLE, all tuples of a combination are in one window. Tuples are then also
decided when all watermarks have passed their window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Columns, Vector
from tamis.operators.contract import Batch, Rows
from tamis.operators.row_store import KeptSource, WaitingTuples
from tamis.operators.state import pack_state, unpack_state
from tamis.operators.time_join.key_codes import KeyCodes
from tamis.operators.time_join.temporal_join import BLOCK, blocks, expand, windows
from tamis.plan import nodes
from tamis.plan.nodes import JoinStep

Ints = NDArray[np.int64]

_NEVER = -(1 << 62)


class TimedJoin:
    """A join by time that gives its rows in order of event time. `late` counts the tuples that came too late
    for some of their rows.
    """

    def __init__(self, node: nodes.TimeJoin) -> None:
        self._node, self._first, self._window = node, node.first, node.window
        self._upper = {(one.later, one.earlier): one.most for one in node.distances}
        self._sides = {scan.alias: _Side(scan) for scan in node.scans}
        self._roles = {
            name: [side for side in self._sides.values() if side.stream == name]
            for name in dict.fromkeys(scan.stream for scan in node.scans)
        }
        self.streams = frozenset(self._roles)
        self.late = 0
        self._watermarks = dict.fromkeys(self.streams, _NEVER)
        self._clock = _NEVER

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Keep the tuples that can still be in a row; rows come only with watermarks."""
        late = np.zeros(rows, np.bool_)
        for side in self._roles.get(stream, ()):
            keep, times = side.passing(batch, rows)
            first, last = self._reach(side.alias, times)
            late |= keep & (first < self._clock)
            keep &= last >= self._clock
            side.waiting.add(times[keep], [batch[name].take(keep) for name in side.names])
        self.late += int(np.count_nonzero(late))
        return self._rows([])

    def _reach(self, alias: str, times: Ints) -> tuple[Ints, Ints]:
        """The least and the greatest time of a tuple of the first source that a tuple of `alias` can join."""
        first = times - self._upper[alias, self._first]
        last = times + self._upper[self._first, alias]
        if self._window is None:
            return first, last
        start = _start(times, self._window)
        return np.maximum(first, start), np.minimum(last, start + self._window.size - 1)

    def advance(self, stream: str, watermark: int) -> Rows:
        """Join the tuples of the first source that are now decided; returns their rows in order of event
        time, which is that of the first source.
        """
        if stream not in self._watermarks or watermark <= self._watermarks[stream]:
            return self._rows([])
        self._watermarks[stream] = watermark
        clock = min(
            self._watermarks[side.stream] - self._upper[side.alias, self._first]
            for side in self._sides.values()
        )
        if self._window is not None:
            clock = max(clock, _start(min(self._watermarks.values()), self._window))
        if clock <= self._clock:
            return self._rows([])
        self._clock = clock
        times, columns = self._sides[self._first].waiting.remove_before(clock)
        rows = self._rows(list(self._decided(times, columns)) if len(times) else [])
        for alias, side in self._sides.items():
            if alias != self._first:
                side.waiting.remove_before(clock - self._upper[self._first, alias])
        return rows

    def _decided(self, times: Ints, found: Sequence[Vector]) -> Iterator[_Found]:
        """The combinations of tuples of the first source."""
        side = self._sides[self._first]
        order = np.argsort(times, kind="stable")
        columns_ = {(self._first, name): one.take(order) for name, one in zip(side.names, found, strict=True)}
        yield from self._extended(_Found({self._first: times[order]}, columns_), self._node.steps)

    def _extended(self, found: _Found, steps: Sequence[JoinStep]) -> Iterator[_Found]:
        """Combinations with one source more for each step."""
        if not steps or not len(found):
            yield found
            return
        step, side = steps[0], self._sides[steps[0].alias]
        lo, hi = self._range(found, step.alias)
        times, kept = side.waiting.between(int(lo.min()), int(hi.max()))
        codes = KeyCodes()
        own = {(step.alias, name): one for name, one in zip(side.names, kept, strict=True)}
        keys = codes.encode([evaluate(expr, own, len(times)) for expr in step.own], len(times))
        order = np.lexsort((times, keys))
        order = order[np.searchsorted(keys[order], 0) :]  # a key with NULL has a negative code
        keys, times = keys[order], times[order]
        own = {name: one.take(order) for name, one in own.items()}
        probe = codes.encode([evaluate(expr, found.columns, len(found)) for expr in step.before], len(found))
        start, stop = windows(keys, times, probe, lo, hi)
        for which, begin, end in blocks(start, stop, BLOCK):
            left, right = expand(begin, end)
            longer = found.with_partners(which[left], step.alias, times[right], own, right)
            yield from self._extended(longer.meeting(step.conditions), steps[1:])

    def _range(self, found: _Found, alias: str) -> tuple[Ints, Ints]:
        """The least and the greatest time of a tuple of `alias` for each combination."""
        lo = [times - self._upper[other, alias] for other, times in found.times.items()]
        hi = [times + self._upper[alias, other] for other, times in found.times.items()]
        if self._window is not None:
            start = _start(found.times[self._first], self._window)
            lo, hi = [*lo, start], [*hi, start + self._window.size - 1]
        return np.max(lo, axis=0), np.min(hi, axis=0)

    def _rows(self, parts: Sequence[_Found]) -> Rows:
        if not parts:
            none = {at: one for side in self._sides.values() for at, one in side.nothing().items()}
            parts = (_Found({self._first: np.zeros(0, np.int64)}, none),)
        made = []
        for one in parts:
            selected = {name: evaluate(expr, one.columns, len(one)) for name, expr in self._node.select}
            made.append(Rows(selected, np.full(len(one), -1, np.int64), one.times[self._first]))
        return Rows.concat(made)

    @property
    def passed(self) -> int | None:
        """No later row has an event time before this one, in microseconds; None if nothing is decided yet."""
        return None if self._clock == _NEVER else self._clock

    def entries(self) -> int:
        """The number of kept tuples of all sources."""
        return sum(len(side.waiting) for side in self._sides.values())

    def dump(self) -> bytes:
        """The watermarks and all kept tuples, as JSON."""
        kept = {
            "clock": self._clock,
            "watermarks": self._watermarks,
            "late": self.late,
            "waiting": {alias: side.waiting.dumped() for alias, side in self._sides.items()},
        }
        return pack_state(self._form(), kept)

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        kept = unpack_state(state, self._form())
        self._clock, self._watermarks, self.late = kept["clock"], dict(kept["watermarks"]), kept["late"]
        for alias, side in self._sides.items():
            side.waiting.restore(kept["waiting"][alias])

    def _form(self) -> list[object]:
        distances = sorted([*pair, most] for pair, most in self._upper.items())
        window = None if self._window is None else [self._window.size, self._window.offset]
        return ["timed join", self._first, distances, window, *(side.form() for side in self._sides.values())]


_Times = TypeVar("_Times", int, Ints)


def _start(times: _Times, window: Window) -> _Times:
    """The starts of the windows of these times."""
    return (times - window.offset) // window.size * window.size + window.offset


@dataclass(frozen=True)
class _Found:
    """Combinations of tuples of some sources: their times by alias, and their columns."""

    times: Mapping[str, Ints]
    columns: Columns

    def __len__(self) -> int:
        return len(next(iter(self.times.values())))

    def with_partners(self, at: Ints, alias: str, times: Ints, own: Columns, rows: Ints) -> _Found:
        """The combinations `at`, each with the tuple of `alias` at the same place of `times` and `rows`."""
        columns = {name: vector.take(at) for name, vector in self.columns.items()}
        columns |= {name: vector.take(rows) for name, vector in own.items()}
        return _Found({**{one: picked[at] for one, picked in self.times.items()}, alias: times}, columns)

    def meeting(self, conditions: Sequence[Expr]) -> _Found:
        """The combinations that meet all conditions."""
        keep = np.ones(len(self), np.bool_)
        for condition in conditions:
            keep &= holds(condition, self.columns, len(self))
        if keep.all():
            return self
        return _Found(
            {alias: times[keep] for alias, times in self.times.items()},
            {name: vector.take(keep) for name, vector in self.columns.items()},
        )


class _Side(KeptSource):
    """One source of the join, with its tuples that are kept."""

    def __init__(self, scan: nodes.Scan) -> None:
        super().__init__(scan)
        self.waiting = WaitingTuples(self.types)
