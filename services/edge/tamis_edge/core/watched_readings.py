"""The readings of watched streams: in the order of event times, and in series by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tamis.declarations.watches import AnyWatch, Watch
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Type
from tamis.expressions.python_functions import FunctionError
from tamis.expressions.vectors import Vector
from tamis.omission.columns import Int64s
from tamis.operators.time_join.key_table import KeyTable
from tamis.plan.model import StreamPlan
from tamis.telemetry.logs import get_logger
from tamis.watching.key_history import LatestTimes
from tamis.watching.series_watcher import SeriesWatcher
from tamis.watching.watched_columns import AddedColumns, WatchedColumns
from tamis_edge.core.rows import Batch

# Then every second one is forgotten. With fewer, a restart reads more readings again than it needs.
MOST = 4096


class Checkpoints:
    """Offsets, each with the greatest event time before it. Both never fall."""

    def __init__(self, offset: int, latest: int) -> None:
        """`latest`: no reading before `offset` has a greater event time."""
        self._known = [(latest, offset)]

    def add(self, offset: int, latest: int) -> None:
        """Note the greatest event time before an offset."""
        if (latest, offset) <= self._known[-1]:
            return
        self._known.append((latest, offset))
        if len(self._known) > MOST:
            del self._known[1:-1:2]

    def before(self, time: int, offset: int) -> tuple[int, int]:
        """Event time and offset of the last checkpoint before all needed readings. These have event times
        from `time` on, and those at `time` itself have offsets from `offset` on.

        If there is none, it is the first checkpoint. Checkpoints before the returned one are forgotten.
        """
        del self._known[: max(bisect_right(self._known, (time, offset)) - 1, 0)]
        return self._known[0]


class EventOrder:
    """Buffer of readings. Readings with equal event times leave in the order in which they came."""

    def __init__(self) -> None:
        # In the order of arrival; within a batch in the order of event times.
        self._parts: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def oldest(self) -> int | None:
        """The least event time that waits; None if nothing waits."""
        return min((int(part.times[0]) for part in self._parts), default=None)

    def add(self, batch: Batch) -> None:
        """Add readings."""
        if len(batch):
            self._parts.append(_in_order(batch))

    def add_columns(self, columns: Mapping[str, Type]) -> None:
        """Add columns that are NULL to the readings that wait."""
        for number, part in enumerate(self._parts):
            new = {name: Vector.nulls(type_, len(part)) for name, type_ in columns.items()}
            self._parts[number] = replace(part, columns=new | part.columns)

    def release(self, watermark: int) -> Batch | None:
        """Remove the readings with an event time up to the watermark; returns them in order, None if there
        are none.
        """
        ready, waiting = [], []
        for part in self._parts:
            count = int(np.searchsorted(part.times, watermark, side="right"))
            if count:
                ready.append(part.take(slice(0, count)))
            if count < len(part):
                waiting.append(part.take(slice(count, None)))
        self._parts = waiting
        return _in_order(Batch.concat(ready)) if ready else None


def _in_order(batch: Batch) -> Batch:
    if (batch.times[1:] >= batch.times[:-1]).all():
        return batch
    return batch.take(np.argsort(batch.times, kind="stable"))


_log = get_logger("edge.series")
_NEVER = 2**63 - 1


class KeySeries:
    """Series of the readings of each key, told apart by the values of the columns `key`."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = key
        self._keys = KeyTable()
        self._watcher = SeriesWatcher((), _failed)
        self._times = LatestTimes(0)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def bytes(self) -> int:
        """The memory of the series."""
        per_key = self._watcher.bytes_per_key + 8 * (self._watcher.most_needed + 1)
        return len(self._keys) * per_key + self._watcher.history_bytes

    def watch(self, watches: Sequence[AnyWatch]) -> None:
        """Compute the columns of other watches from now on, over the series as they are."""
        watcher = SeriesWatcher(watches, _failed)
        watcher.continue_from(self._watcher)
        self._watcher, self._times = watcher, self._times.keeping(watcher.most_needed)

    def push(self, batch: Batch) -> tuple[AddedColumns, ...]:
        """Append readings, in the order of their event times; returns the columns of each watch."""
        codes = self._keys.codes([batch.columns[name] for name in self.key], len(batch))
        self._times.push(codes, batch.times)
        return self._watcher.push(codes, batch.times, batch.view(), len(batch))

    def oldest_needed(self, watermark: int) -> int | None:
        """The least event time in any window or frame of a reading that may still come; None if there is
        none.
        """
        found = int(self._watcher.forget_history(watermark).min(initial=_NEVER))
        in_windows = self._times.oldest(self._watcher.needed(watermark))
        if in_windows is not None:
            found = min(found, in_windows)
        return None if found == _NEVER else found

    def forget_ended(self, watermark: int) -> None:
        """Forget the keys whose readings no window or frame can have any more, if there are many keys."""
        if self._keys.grown:
            needed = self._watcher.needed(watermark) > 0
            needed |= self._watcher.forget_history(watermark) != _NEVER
            self._watcher.forget(np.flatnonzero(~needed))
            self._keys.forget([np.flatnonzero(needed)])


def _failed(error: FunctionError) -> None:
    _log.error(
        "a value can't be computed: no pattern matches at these readings, and window functions read NULL",
        error=str(error),
    )


def needed_matches(filter_: Expr | None, watches: Sequence[AnyWatch]) -> frozenset[int] | None:
    """Watches of which one matches at each reading that passes the filter, as places in `watches`; None if a
    reading may pass at which no pattern matches.
    """
    places = {
        column: place
        for place, watch in enumerate(watches)
        if isinstance(watch, Watch)
        for column in watch.columns
    }
    return None if filter_ is None else _needed(filter_, places)


def _needed(filter_: Expr, places: Mapping[Column, int]) -> frozenset[int] | None:
    match filter_:
        case Call("and", parts):
            known = [found for part in parts if (found := _needed(part, places)) is not None]
            return min(known, key=len, default=None)
        case Call("or", parts):
            all_parts = [_needed(part, places) for part in parts]
            return None if None in all_parts else frozenset().union(*filter(None, all_parts))
        case Call("not", (Call("is_null", (Column() as column,)),)) if column in places:
            return frozenset((places[column],))
        case Call(op, arguments) if op in COMPARISONS:
            # A comparison with NULL is not true.
            compared = [places[one] for one in arguments if isinstance(one, Column) and one in places]
            return frozenset(compared[:1]) or None
    return None


class MatchingRows:
    """The readings of a batch that a watched stream must look at."""

    def __init__(self, stream: StreamPlan) -> None:
        filters = [entry.filter for topic in stream.topics for entry in topic.entries]
        found = [needed_matches(one, stream.all_watches) for one in filters]
        self._all = None in found
        self._watches = sorted(frozenset().union(*filter(None, found)))

    def of(self, columns: Sequence[AddedColumns], count: int) -> Int64s:
        """The rows, ascending. `columns`: of the stream's watches, in a batch of `count` readings."""
        if self._all:
            return np.arange(count)
        matching = (columns[place] for place in self._watches)
        return _union(one.rows for one in matching if isinstance(one, WatchedColumns))


def _union(rows: Iterable[Int64s]) -> Int64s:
    return np.unique(np.concatenate([np.empty(0, np.int64), *rows]))
