"""The joiner of one partition of a topic: it adds raw tuples and cuts to panes and gives rows of windows."""

from __future__ import annotations

import copy
from collections import Counter
from typing import NamedTuple

from tests.model.cuts.terms import INF, Plan, Query, Record, Shard

# A row's query, end of window and group, and how often each reading (shard, number) is in it.
Key = tuple[Query, int, int]
Row = tuple[Key, dict[tuple[Shard, int], int]]


class Take(NamedTuple):
    """A reading that a query has counted. `raw`: as a raw tuple."""

    query: Query
    shard: Shard
    number: int
    raw: bool


class Joiner:
    """`taken`: for each query and shard the greatest place, of cuts and of raw tuples. `fences`: the greatest
    number of a fence of each shard. `since`: for each shard the version that lists it, and whether it is
    listed now. `included`: the frontier that a shard which came back found.
    """

    def __init__(self, off: frozenset[str], partition: int) -> None:
        """`off`: the rules that it breaks."""
        self._off, self.partition = off, partition
        self.plan: Plan | None = None
        self.epoch, self.frontier = 0, -INF
        self.parked: list[Record] = []
        self.since: dict[Shard, tuple[int, bool]] = {}
        self.progress: dict[Shard, float] = {}
        self.included: dict[Shard, float] = {}
        self.fences: Counter[Shard] = Counter()
        self.taken: dict[tuple[Query, Shard, str], tuple[int, int]] = {}
        self.panes: dict[Query, dict[int, dict[int, Counter[tuple[Shard, int]]]]] = {}
        self.bounds: dict[tuple[Query, Shard], tuple[int, tuple[int, int, float]]] = {}
        self.takes: Counter[Take] = Counter()
        self.rows: list[Row] = []
        self.went_back = 0
        # Read so far: plans and records.
        self.plans_read = self.records_read = 0

    def on(self, rule: str) -> bool:
        return rule not in self._off

    def copy(self) -> Joiner:
        """A joiner with the same state, which is its own."""
        new = copy.copy(self)
        for name, value in vars(self).items():
            setattr(new, name, copy.copy(value))
        new.panes = {
            query: {
                pane: {group: readings.copy() for group, readings in groups.items()}
                for pane, groups in panes.items()
            }
            for query, panes in self.panes.items()
        }
        return new

    def obey(self, plan: Plan) -> None:
        """Take up a newer plan, and the records that waited for it."""
        if self.plan and plan.version <= self.plan.version:
            return
        if plan.epoch != self.epoch:
            self.epoch, self.frontier, self.panes = plan.epoch, -INF, {}
            self.progress = dict.fromkeys(self.progress, -INF)
        self.plan = plan
        for shard, version in plan.listed.items():
            if version > self.since.get(shard, (0, False))[0]:
                self.since[shard], self.progress[shard] = (version, True), -INF
                found = self.frontier if version > 1 else -INF
                self.included[shard] = max(self.included.get(shard, -INF), found)
        parked, self.parked = self.parked, []
        for record in parked:
            self._take(record)

    def arrive(self, record: Record) -> None:
        """Take the next record of the partition. A raw tuple of an earlier owner is dropped."""
        if self.on("fence_at_arrival"):
            if self._fenced(record):
                return
            self._raise_fence(record)
        self._take(record)

    def _fenced(self, record: Record) -> bool:
        return record.kind == "raw" and record.fence < self.fences[record.shard] and self.on("raw_fence")

    def _raise_fence(self, record: Record) -> None:
        self.fences[record.shard] = max(self.fences[record.shard], record.fence)

    def _take(self, record: Record) -> None:
        needed = 0 if not self.on("park") else record.form if self.on("form") else record.version
        if needed > (self.plan.version if self.plan else 0):
            self.parked.append(record)
            return
        if self.plan is None or record.epoch != self.epoch:
            return
        if not self.on("fence_at_arrival"):
            if self._fenced(record):
                return
            self._raise_fence(record)
        if record.kind in {"cut", "raw"}:
            for query in self.plan.serves(record.topic, record.version):
                self._add(query, record)
            return
        if record.kind == "fence":
            return
        version, listed = self.since.get(record.shard, (0, False))
        if listed and (record.version >= version or not self.on("final_versioned")):
            if record.kind == "progress":
                self.progress[record.shard] = max(self.progress[record.shard], record.progress)
            else:
                self._advance()
                self.since[record.shard] = version, False
            self._advance()

    def _add(self, query: Query, record: Record) -> None:
        """Add the readings of a record to the panes of a query, unless it was taken before."""
        place = query, record.shard, record.kind
        if record.kind == "cut":
            self._compare_bounds(query, record)
        if self.on("drop_taken") and record.place <= self.taken.get(place, (-1, 0)):
            return
        self.taken[place] = record.place
        reading = record.reading
        rows = record.rows or {}
        if reading is not None:
            rows = {(reading.time, reading.group): [reading.number]}
        for (start, group), numbers in rows.items():
            readings = Counter((record.shard, number) for number in numbers)
            for number in set(numbers):
                self.takes[Take(query, record.shard, number, record.kind == "raw")] += 1
            pane = query.pane(start)
            if query.end(pane) > self.frontier:
                groups = self.panes.setdefault(query, {}).setdefault(pane, {})
                groups.setdefault(group, Counter()).update(readings)

    def _compare_bounds(self, query: Query, record: Record) -> None:
        """Cuts follow one another; otherwise a commit has gone back, which can only be reported."""
        assert record.bounds is not None
        number, (before, to) = record.place[0], record.bounds
        last_number, last = self.bounds.get((query, record.shard), (0, (0, 0, -INF)))
        if number == last_number:
            self.went_back += to[0] == last[0] and to != last
        elif number > last_number:
            self.went_back += before[:2] < last[:2]
            self.bounds[query, record.shard] = number, to

    def _advance(self) -> None:
        """Raise the frontier, and give the rows of the windows that have ended."""
        listed = [self.progress[shard] for shard, (_, listed) in self.since.items() if listed]
        frontier = min(listed, default=-INF)
        if frontier <= self.frontier:
            return
        for query, panes in self.panes.items():
            ends = {query.end(pane) - i * query.slide for pane in panes for i in range(query.width)}
            for end in sorted(ends):
                if self.frontier < end <= frontier:
                    self._give(query, panes, end)
            for pane in [pane for pane in panes if query.end(pane) <= frontier]:
                del panes[pane]
        self.frontier = frontier

    def _give(self, query: Query, panes: dict[int, dict[int, Counter[tuple[Shard, int]]]], end: int) -> None:
        """Give the rows of one window."""
        last = query.pane(end - 1)
        groups: dict[int, Counter[tuple[Shard, int]]] = {}
        for pane in range(last - query.width + 1, last + 1):
            for group, readings in panes.get(pane, {}).items():
                groups.setdefault(group, Counter()).update(readings)
        self.rows += [((query, end, group), dict(readings)) for group, readings in groups.items()]
