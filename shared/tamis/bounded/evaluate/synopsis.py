"""The synopsis of one stream: the tuples that stand for all of it, in buckets.

A bucket is what a tuple must not lose: its projected values and its coordinates (see `coordinates`). Without
DISTINCT all coordinates are finite; each bucket has its first tuple and the count of all. With DISTINCT a
coordinate may grow without end. Then in each cell one such coordinate *leads* and is left out of the bucket;
the others of its direction are told by their distance from it, or by their value where they are near their
cap; and a bucket has the one tuple with the greatest leader: it can stand for all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tamis.bounded.closure import Bound
from tamis.bounded.coordinates import Cell, Coordinate

Values = Sequence[Bound | None]
Key = tuple[object, ...]
Merge = Callable[[object, object], None]


@dataclass
class Entry:
    """What a bucket keeps: a tuple, how many it stands for (without DISTINCT), and its leader."""

    values: Values
    payload: object
    count: int = 1
    lead: Bound = 0


@dataclass(frozen=True)
class Layout:
    """How the coordinates of a cell make a bucket. `followers` are endless coordinates with their leader and
    the value from which on they count as they are.
    """

    finite: tuple[Coordinate, ...]
    up: Coordinate | None  # leads the upper limits
    down: Coordinate | None  # leads the lower limits
    followers: tuple[tuple[Coordinate, Coordinate, Bound], ...]


def layout(cell: Cell, distinct: bool) -> Layout:
    """The layout of a cell's buckets. Without DISTINCT nothing leads: tuples are counted, not replaced."""
    if not distinct:
        return Layout(cell.coordinates, None, None, ())
    finite = tuple(one for one in cell.coordinates if math.isfinite(one.count))
    leaders: list[Coordinate | None] = []
    followers: list[tuple[Coordinate, Coordinate, Bound]] = []
    for sign in (1, -1):
        endless = [c for c in cell.coordinates if c.sign == sign and not math.isfinite(c.count)]
        leader = max(endless, key=lambda one: one.cap, default=None)
        leaders.append(leader)
        followers += [
            (one, leader, _zone(cell, one, leader))
            for one in endless
            if leader is not None and one is not leader
        ]
    return Layout(finite, leaders[0], leaders[1], tuple(followers))


def _zone(cell: Cell, one: Coordinate, leader: Coordinate) -> Bound:
    """The least value that a coordinate can have by terms that its leader lacks."""
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
    """One occurrence's synopsis; `cells` as `coordinates.cells` gives them."""

    cells: tuple[Cell, ...]
    distinct: bool
    needed: tuple[int, ...]  # nodes whose values belong to every bucket
    merge: Merge | None = None  # of payloads, without DISTINCT
    buckets: list[dict[Key, Entry]] = field(init=False)
    layouts: list[Layout] = field(init=False)

    def __post_init__(self) -> None:
        self.buckets = [{} for _ in self.cells]
        self.layouts = [layout(cell, self.distinct) for cell in self.cells]

    def __len__(self) -> int:
        return sum(map(len, self.buckets))

    def entries(self) -> Iterator[Entry]:
        """What stands for all tuples so far; a tuple that leads in several cells comes once."""
        if len(self.buckets) == 1:
            yield from self.buckets[0].values()
            return
        seen: set[int] = set()
        for bucket in self.buckets:
            for entry in bucket.values():
                if id(entry) not in seen:
                    seen.add(id(entry))
                    yield entry

    def insert(self, values: Values, payload: object) -> None:
        """Take in a tuple that keeps all conditions on its stream alone."""
        entry = Entry(values, payload)
        kept = tuple(values[node] for node in self.needed)
        for buckets, layout_ in zip(self.buckets, self.layouts, strict=True):
            placed = _place(layout_, values)
            if placed is None:
                continue
            key, lead = (kept, *placed[0]), placed[1]
            old = buckets.get(key)
            if old is None:
                # A lead is one cell's: an entry that two cells share has one in each.
                buckets[key] = entry if len(self.buckets) == 1 else Entry(values, payload)
                buckets[key].lead = lead
            elif not self.distinct:
                old.count += 1
                if self.merge is not None:
                    self.merge(old.payload, payload)
            elif lead > old.lead:
                old.values, old.payload, old.lead = values, payload, lead

    def restore(self, cell: int, values: Values, payload: object, count: int) -> None:
        """Put back an entry of a cell, as it was in `buckets`."""
        placed = _place(self.layouts[cell], values)
        assert placed is not None, "it had a place in this cell"
        kept = tuple(values[node] for node in self.needed)
        self.buckets[cell][(kept, *placed[0])] = Entry(values, payload, count, placed[1])


def _place(layout_: Layout, values: Values) -> tuple[Key, Bound] | None:
    """The bucket of a tuple and its leader's value; None where nothing can join it in this cell."""
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
