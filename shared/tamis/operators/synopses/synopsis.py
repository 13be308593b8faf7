"""Synopsis of one stream: the tuples that stand for all of its tuples, in buckets.

Two tuples are in the same bucket if no later tuple can distinguish them: they have the same projected values
and the same coordinates (see `bucket_coordinates`).

- Without DISTINCT, each coordinate has a limited number of values. A bucket keeps its first tuple and the
  number of its tuples.
- With DISTINCT, a coordinate may have unlimited values. Then one such coordinate of each cell is the *lead*
  and is not part of the bucket. Of the other unlimited coordinates of the same direction, the bucket has the
  distance from the lead, or the value itself if it is near the cap. A bucket keeps the tuple with the
  greatest lead, because it can stand for all other tuples of the bucket.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tamis.difference_bounds import Bound
from tamis.operators.synopses.bucket_coordinates import Cell, Coordinate

Values = Sequence[Bound | None]
Key = tuple[object, ...]
_NONE: Mapping[int, Entry] = {}


@dataclass
class Entry:
    """The tuple that a bucket keeps, the number of tuples that it stands for (without DISTINCT), and its
    lead.
    """

    values: Values
    payload: object
    count: int = 1
    lead: Bound = 0


@dataclass(frozen=True)
class Layout:
    """The rule by which the coordinates of a cell make a bucket.

    `followers` are unlimited coordinates that are kept as a distance from their leader. From a given value
    on, the value itself is kept.
    """

    finite: tuple[Coordinate, ...]
    up: Coordinate | None  # leads the upper limits
    down: Coordinate | None  # leads the lower limits
    followers: tuple[tuple[Coordinate, Coordinate, Bound], ...]

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All coordinates."""
        leaders = tuple(one for one in (self.up, self.down) if one is not None)
        return (*self.finite, *leaders, *(one for one, _, _ in self.followers))


def layout(cell: Cell, distinct: bool) -> Layout:
    """The layout of a cell's buckets. Without DISTINCT nothing leads: tuples are counted, not replaced."""
    if not distinct:
        return Layout(cell.coordinates, None, None, ())
    finite = tuple(one for one in cell.coordinates if math.isfinite(one.count))
    leaders: list[Coordinate | None] = []
    followers: list[tuple[Coordinate, Coordinate, Bound]] = []
    for sign in (1, -1):
        unlimited = [c for c in cell.coordinates if c.sign == sign and not math.isfinite(c.count)]
        leader = max(unlimited, key=lambda one: one.cap, default=None)
        leaders.append(leader)
        followers += [
            (one, leader, _zone(cell, one, leader))
            for one in unlimited
            if leader is not None and one is not leader
        ]
    return Layout(finite, leaders[0], leaders[1], tuple(followers))


def _zone(cell: Cell, one: Coordinate, leader: Coordinate) -> Bound:
    """The least value that a coordinate can have by the terms that its leader lacks."""
    rows = cell.closure.rows
    shared = {node for node, _ in leader.terms}
    own = [
        weight - (rows[0][node] if one.sign == 1 else rows[node][0])
        for node, weight in one.terms
        if node not in shared
    ]
    return min([one.cap, *own])


@dataclass
class Synopsis:
    """The synopsis of one occurrence. `cells` are those of `bucket_coordinates.cells`."""

    cells: tuple[Cell, ...]
    distinct: bool
    needed: tuple[int, ...]  # nodes whose values belong to every bucket
    indexed: tuple[tuple[int, ...], ...] = ()  # nodes by whose values entries are looked up
    buckets: list[dict[Key, Entry]] = field(init=False)
    layouts: list[Layout] = field(init=False)
    _found: list[dict[Key, dict[int, Entry]]] = field(init=False)

    def __post_init__(self) -> None:
        self.buckets = [{} for _ in self.cells]
        self.layouts = [layout(cell, self.distinct) for cell in self.cells]
        self._found = [{} for _ in self.indexed]

    def __len__(self) -> int:
        return sum(map(len, self.buckets))

    def entries(self) -> Iterable[Entry]:
        """The entries that stand for all tuples so far. A tuple that leads in several cells has an entry in
        each.
        """
        return itertools.chain.from_iterable(bucket.values() for bucket in self.buckets)

    def with_values(self, nodes: tuple[int, ...], values: Key) -> Iterable[Entry]:
        """The entries that have these values at indexed nodes."""
        return self._found[self.indexed.index(nodes)].get(values, _NONE).values()

    def insert(self, values: Values, payload: object) -> None:
        """Take in a tuple that satisfies all conditions on its stream alone."""
        for buckets, layout_ in zip(self.buckets, self.layouts, strict=True):
            key, lead = self._bucket(layout_, values)
            if lead is None:
                continue
            old = buckets.get(key)
            if old is None:
                buckets[key] = entry = Entry(values, payload, 1, lead)
                self._index(entry)
            elif not self.distinct:
                old.count += 1
            elif lead > old.lead:
                moved = [nodes for nodes in self.indexed if any(old.values[n] != values[n] for n in nodes)]
                if moved:
                    self._forget(old)
                old.values, old.payload, old.lead = values, payload, lead
                if moved:
                    self._index(old)

    def restore(self, cell: int, values: Values, payload: object, count: int) -> None:
        """Put back an entry of a cell, as it was in `buckets`."""
        key, lead = self._bucket(self.layouts[cell], values)
        assert lead is not None, "it had a place in this cell"
        self.buckets[cell][key] = entry = Entry(values, payload, count, lead)
        self._index(entry)

    def _bucket(self, layout_: Layout, values: Values) -> tuple[Key, Bound | None]:
        """The bucket of a tuple and its lead, which is None if nothing can join the tuple."""
        key, lead = bucket_of(layout_, values) or ((), None)
        return (tuple(values[node] for node in self.needed), *key), lead

    def _index(self, entry: Entry) -> None:
        for nodes, found in zip(self.indexed, self._found, strict=True):
            found.setdefault(tuple(entry.values[node] for node in nodes), {})[id(entry)] = entry

    def _forget(self, entry: Entry) -> None:
        for nodes, found in zip(self.indexed, self._found, strict=True):
            key = tuple(entry.values[node] for node in nodes)
            del found[key][id(entry)]
            if not found[key]:
                del found[key]


def bucket_of(layout_: Layout, values: Values) -> tuple[Key, Bound] | None:
    """The bucket of a tuple and its lead; None if nothing can join the tuple in this cell."""
    key: list[object] = []
    for one in layout_.finite:
        value = one.value(values)
        if value < one.floor:
            return None
        key.append(value)
    led: dict[int, Bound] = {}
    for leader in (layout_.up, layout_.down):
        if leader is not None:
            value = leader.value(values)
            if value < leader.floor:
                return None
            led[leader.sign] = value
    for one, leader, zone in layout_.followers:
        value = one.value(values)
        if value < one.floor:
            return None
        near = value >= zone and one.cap != math.inf
        key.append((near, value if near else value - led[leader.sign]))
    if layout_.up is None or layout_.down is None:
        return tuple(key), next(iter(led.values()), 0)
    if led[1] == layout_.up.cap:
        return (*key, None), led[-1]
    return (*key, led[-1]), led[1]
