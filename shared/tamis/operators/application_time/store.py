"""Store of one part: its partial combinations, in buckets.

A bucket is identified by everything that later tuples can distinguish: the values that are kept as they are,
the coordinates of the unlimited attributes (see `synopses.synopsis`), and the times until which, or from
which on, missing tuples may come, as long as these lie ahead.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tamis.difference_bounds import Bound
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.bound import (
    Times,
    greatest_times,
    least_times,
    limits_by_limited_nodes,
    static_limits,
)
from tamis.operators.application_time.partial_combinations import Part
from tamis.operators.synopses.bucket_coordinates import Coordinate, cells
from tamis.operators.synopses.synopsis import bucket_of, layout

Key = tuple[object, ...]
Shown = tuple[object, ...] | None  # the values of an occurrence's tuple that a result shows


@dataclass(slots=True, eq=False)
class Entry:
    """A partial combination, and the number of combinations that it stands for.

    `values` has the values by node of the whole query; `shown` has what SELECT shows, by occurrence. `least`
    and `greatest` have, by missing occurrence, the first and the last possible time of its tuple.
    """

    values: list[Bound | None]
    shown: list[Shown]
    count: int = 1
    lead: Bound = 0
    least: dict[int, int] = field(default_factory=dict)
    greatest: dict[int, int] = field(default_factory=dict)

    def fits(self, occurrence: int, time: Bound) -> bool:
        """True if a tuple of a missing stream may have this time."""
        most = self.greatest.get(occurrence)
        return self.least.get(occurrence, time) <= time and (most is None or time <= most)


class Index:
    """Entries by the values of some nodes."""

    def __init__(self, nodes: tuple[int, ...]) -> None:
        self.nodes = nodes
        self.found: dict[Key, dict[int, Entry]] = {}

    def add(self, entry: Entry) -> None:
        key = tuple(entry.values[node] for node in self.nodes)
        self.found.setdefault(key, {})[id(entry)] = entry

    def remove(self, entry: Entry) -> None:
        key = tuple(entry.values[node] for node in self.nodes)
        of_key = self.found[key]
        del of_key[id(entry)]
        if not of_key:
            del self.found[key]

    def matching(self, key: Key) -> list[Entry]:
        return list(self.found.get(key, {}).values())


class Store:
    """The entries of one part."""

    def __init__(self, timed: TimedQuery, part: Part) -> None:
        self.part = part
        self.distinct = timed.query.distinct
        self._limited: tuple[Coordinate, ...] = tuple(limits_by_limited_nodes(timed, part))
        self._static = tuple(static_limits(timed, part))
        self._least: tuple[tuple[int, Times], ...] = least_times(timed, part)
        self._greatest: tuple[tuple[int, Times], ...] = greatest_times(timed, part)
        # An entry that is kept until `part.end` waits for no single stream: its key is -1.
        self._end = {} if part.end == math.inf else {-1: int(part.end)}
        self._layouts = [layout(cell, self.distinct) for cell in cells(part.query, part.closure, 0)]
        self.cells: list[dict[Key, Entry]] = [{} for _ in self._layouts]
        self.indexes: dict[tuple[int, ...], Index] = {}

    def __len__(self) -> int:
        return sum(map(len, self.cells))

    def __iter__(self) -> Iterator[Entry]:
        for cell in self.cells:
            yield from cell.values()

    def insert(self, entry: Entry, now: Bound) -> Iterator[tuple[Bound, int, Key]]:
        """Keep a combination that some later tuple can join. Yields the times at which its new entries change
        buckets, with cell and bucket.
        """
        self._set_times(entry)
        for cell in range(len(self.cells)):
            key = self._key(cell, entry, now)
            if key is None:
                continue
            buckets = self.cells[cell]
            old = buckets.get(key)
            if old is None:
                # A lead belongs to one cell: a combination in several cells has an entry in each.
                kept = entry if len(self.cells) == 1 else _copy(entry)
                buckets[key] = kept
                for index in self.indexes.values():
                    index.add(kept)
                change = _change(kept, now)
                if change is not None:
                    yield change, cell, key
            elif not self.distinct:
                old.count += entry.count
            elif entry.lead > old.lead:
                for index in self.indexes.values():
                    index.remove(old)
                old.values, old.shown, old.lead = entry.values, entry.shown, entry.lead
                for index in self.indexes.values():
                    index.add(old)

    def remove(self, cell: int, key: Key) -> Entry | None:
        """Remove a bucket, and return its entry."""
        entry = self.cells[cell].pop(key, None)
        if entry is not None:
            for index in self.indexes.values():
                index.remove(entry)
        return entry

    def candidates(self, nodes: tuple[int, ...], key: Key) -> list[Entry]:
        """The entries whose nodes have these values; all entries if there are no nodes."""
        return self.indexes[nodes].matching(key) if nodes else list(self)

    def index(self, nodes: tuple[int, ...]) -> None:
        """Make an index; call it before anything is kept."""
        if nodes:
            self.indexes.setdefault(nodes, Index(nodes))

    def _set_times(self, entry: Entry) -> None:
        values = entry.values
        entry.least = {y: max(_at(values, t) + w for t, w in times) for y, times in self._least}
        entry.greatest = {y: min(_at(values, t) + w for t, w in times) for y, times in self._greatest}
        entry.greatest.update(self._end)

    def _key(self, cell: int, entry: Entry, now: Bound) -> Key | None:
        """The bucket of an entry, and its lead is set; None if nothing can join it."""
        values = entry.values
        key: list[object] = [values[node] for node in self.part.needed]
        for y, least in entry.least.items():
            key.append(least if least > now else None)
            if least > entry.greatest.get(y, least):
                return None
        for most in entry.greatest.values():
            if most < now:
                return None
            key.append(most)
        for one in self._limited:
            value = one.value(values)
            if value < one.floor:
                return None
            key.append(value)
        for one, known in self._static:
            value = one.value(values)
            at = bisect_right(known, value) - 1 if one.sign == 1 else bisect_left(known, -value)
            if not 0 <= at < len(known):
                return None
            key.append(at)
        part = self.part
        cold = [0, *(values[node] for node in part.unlimited)]
        placed = bucket_of(self._layouts[cell], cold)
        if placed is None:
            return None
        entry.lead = placed[1]
        return (*key, *(cold[node] for node in part.query.needed), placed[0])


def _at(values: Sequence[Bound | None], node: int) -> int:
    value = values[node]
    assert value is not None, "event times aren't NULL"
    return int(value)


def _copy(entry: Entry) -> Entry:
    return Entry(entry.values, entry.shown, entry.count, entry.lead, entry.least, entry.greatest)


def _change(entry: Entry, now: Bound) -> Bound | None:
    """The next time at which an entry's bucket changes; None if it never does."""
    passing = [least for least in entry.least.values() if least > now]
    ending = [most + 1 for most in entry.greatest.values()]
    return min([*passing, *ending], default=None)
