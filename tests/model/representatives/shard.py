"""A source and the runs that read it. Records and commits arrive late, or never."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import Ack
from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.core.shedding import Shedder

Place = tuple[str, int]  # topic and output partition


@dataclass
class Log:
    """One partition of a topic. Records before `first` are deleted."""

    values: list[bytes] = field(default_factory=list)
    first: int = 0


Logs = defaultdict[Place, Log]


@dataclass(eq=False)
class EdgeRun:
    """A run with the records that are on their way, in order, and the tokens of those whose arrival it
    doesn't know yet. `landing`: its commit that isn't durable yet.
    """

    core: ShardRun
    queue: list[Record] = field(default_factory=list)
    unreported: list[int] = field(default_factory=list)
    landing: Commit | None = None

    def send(self) -> None:
        """Hand all records to the producer."""
        self.queue += self.core.out
        self.core.out.clear()

    def deliver(self, r: random.Random, logs: Logs, *, report: bool = True) -> None:
        """The first record of some partition arrives."""
        if self.queue:
            place = _place(r.choice(self.queue))
            record = self.queue.pop(next(i for i, one in enumerate(self.queue) if _place(one) == place))
            logs[place].values.append(record.value)
            if report:
                self.unreported.append(record.token)

    def report(self, count: int) -> None:
        """The run learns which records have arrived."""
        told, self.unreported = self.unreported[:count], self.unreported[count:]
        self.core.safe(*told)

    @property
    def arrived(self) -> int:
        """All readings before this offset were decided, and their records have arrived."""
        core, tokens = self.core, [one.token for one in (*self.queue, *self.core.out)]
        offsets = [core.place(token) - core._cursor.born for token in tokens if core.carries_tuple(token)]
        return min(offsets, default=core.next_offset)


def _place(record: Record) -> Place:
    return record.topic, record.partition


class Shard:
    """A Kafka partition of readings, of which the first `available` are there.

    `durable`: its commit. `begun`: by plan version, the position from which it counts, of the first durable
    commit under the version. `versions`: by offset, the versions under which runs have decided it.
    """

    def __init__(self, name: str, stream: str, types: Mapping[str, Type]) -> None:
        self.name, self.stream, self._types = name, stream, types
        self.readings: list[dict[str, Any]] = []
        self.available = 0
        self.durable = Commit()
        self.begun: dict[int, int] = {}
        self.versions: defaultdict[int, set[int]] = defaultdict(set)
        self.run: EdgeRun | None = None
        self.zombies: list[EdgeRun] = []  # of former owners that work on
        self.ghosts: list[EdgeRun] = []  # that have ended, but whose records may still arrive
        self.omitted = 0
        self.shedder = Shedder(np.random.default_rng(0))

    def runs(self) -> list[EdgeRun]:
        """All runs that work."""
        return [*([self.run] if self.run else ()), *self.zombies]

    # ---- plans

    def obey(self, plan: Plan, run: EdgeRun | None, now: int) -> None:
        """Take up a plan, or begin to serve the shard under it."""
        if run is not None:
            core = run.core
            if plan.version > core.version and not core.rereading and core.ready(plan):
                core.obey(plan, now)
        elif self.name in plan.since and plan.version >= self.durable.form:
            core = ShardRun(self.name, self.stream, self.durable, plan, self.shedder, now=now)
            self.run = EdgeRun(core)

    def ack(self, plan: int, now: int) -> Ack | None:
        """The edge's report."""
        if self.run is None or self.run.core.acknowledged is None:
            return (
                Ack(self.name, self.stream, "e", plan, 0, "waiting", now, unread=True) if not plan else None
            )
        version, activation = self.run.core.acknowledged
        return Ack(self.name, self.stream, "e", version, activation, "active", now)

    # ---- readings

    def read(self, run: EdgeRun, most: int, now: int) -> None:
        """Take some readings, unless the plan must be committed first."""
        core, first = run.core, run.core.next_offset
        rows = self.readings[first : min(self.available, first + most)]
        if core.settling or not rows:
            return
        offsets = np.arange(first, first + len(rows))
        for offset in offsets.tolist():
            self.versions[offset].add(core.version)
        core.take(Batch(self._columns(rows), np.zeros(len(rows), np.int64), offsets, offsets * 0 + now), now)

    def _columns(self, rows: Sequence[dict[str, Any]]) -> dict[str, Vector]:
        return {n: Vector.from_list([row[n] for row in rows], t) for n, t in self._types.items()}

    # ---- commits, and ends

    def begin_commit(self, run: EdgeRun) -> None:
        """A commit is on its way."""
        run.landing = run.landing or run.core.commit()

    def land(self, run: EdgeRun, now: int, *, known: bool = True) -> None:
        """A commit becomes durable, if the shard is still the run's. `known`: the run learns of it."""
        commit, run.landing = run.landing, None
        if commit is None:
            return
        if run is not self.run:
            run.core.commit_failed()
            return
        self.durable = commit
        self.begun.setdefault(commit.version, max(0, commit.activation - commit.born))
        if known:
            run.core.committed(now)

    def lose(self, run: EdgeRun, *, ghost: bool) -> None:
        """A run ends. `ghost`: what is on its way may still arrive."""
        self.omitted += run.core.totals["omitted"]
        if run is self.run:
            self.run = None
        else:
            self.zombies.remove(run)
        if ghost:
            run.send()
            self.ghosts.append(run)

    def move(self) -> None:
        """Another edge owns the shard; the former owner doesn't know it yet."""
        if self.run is not None:
            self.zombies.append(self.run)
            self.run = None
