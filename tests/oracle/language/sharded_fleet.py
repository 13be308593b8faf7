"""A fleet of several shards for each stream: the cores of edges and joiner, which restart at random.

The clock is that of the readings. A shard is never behind it by more than `max_stall` of its stream, so that
the memory bound must hold after each batch.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState
from tests.oracle.fleet.test_windows_in_the_fleet import Fleet
from tests.oracle.language.readings import NAMES, START, TICK, RandomReadings, Shard

from tamis.declarations.file_access import UNRESTRICTED
from tamis.expressions.vectors import Vector
from tamis.messaging import topics
from tamis.messaging.records import Frontier
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans


class ShardedFleet(Fleet):
    """The fleet of one plan over random readings. `most`: the greatest live state of the alert q."""

    def __init__(self, plan: Plan, readings: RandomReadings, r: random.Random) -> None:
        self.random, self.plan, self.readings = r, plan, readings
        self.shards = {one.name: one for one in readings.shards if one.name in plan.shard_streams}
        self.now = START
        self.runs = {
            name: ShardRun(name, one.stream, Commit(), plan, now=START) for name, one in self.shards.items()
        }
        self.at = dict.fromkeys(self.runs, 0)
        self.offsets: Counter[str] = Counter()
        self.alarms: dict[str, dict[str, Any]] = {}
        self.frontier: Frontier | None = None
        self.state, self.memory = DictState(), None
        self.tokens = itertools.count()
        self.most = 0
        self._columns = {name: _vectors(plan, one) for name, one in self.shards.items()}

    def play(self) -> None:
        """Run to the end of all shards."""
        r = self.random
        self.join([Records(topics.PLANS, 0, [encode_plan(self.plan)], *self.numbers(topics.PLANS, 1))])
        # Progress follows its tuples a batch later, so a batch must not bring more than half of `max_stall`.
        most = min(one.stall for one in self.readings.declared.values()) // 2
        present, step = 0, min(most, r.choice((2, 4, 12)))
        while present < self.readings.ticks:
            present += r.randint(1, step)
            self.now = START + present * TICK
            for name, shard in self.shards.items():
                slack = self.readings.declared[shard.stream].stall // 2 - 1
                self.read(name, present - r.choice((0, 0, 0, r.randint(0, slack))))
            if r.random() < 0.05:
                self.crash(r.choice(list(self.runs)))
            self.join(self.published())
        self.now += TICK
        for name in self.runs:
            self.read(name, self.readings.ticks + 1)
        self.join(self.published())  # the tuples
        self.join(self.published())  # the end of time and the final records
        self.join([])  # the state is reported a batch behind the alarms

    def read(self, name: str, until: int) -> None:
        """Give an edge the readings that arrived before this tick."""
        shard, run = self.shards[name], self.runs[name]
        if run.ended:
            return
        first = self.at[name]
        last = first
        while last < len(shard.rows) and shard.arrivals[last] < until:
            last += 1
        while first < last:
            end = min(last, first + self.random.choice((1, 4, 50)))
            rows = np.arange(first, end)
            columns = {column: vector.take(rows) for column, vector in self._columns[name].items()}
            run.take(Batch(columns, columns["ts"].data, rows, np.full(len(rows), self.now)), self.now)
            first = self.at[name] = end
        if last == len(shard.rows) and shard.end < until:
            run.finish()
        run.settle(self.now)

    def crash(self, name: str) -> None:
        """Restart an edge from its commit."""
        run = self.runs[name]
        if run.ended:
            return
        again = ShardRun(run.shard, run.stream_name, run.durable, self.plan, now=self.now)
        self.runs[name], self.at[name] = again, again.next_offset

    def join(self, records: list[Records]) -> None:
        """A batch of the joiner, which now and then begins with its state alone."""
        memory = None if self.random.random() < 0.1 else self.memory
        group = Group.load(0, 1, self.state, memory, UNRESTRICTED)
        out = group.process(*split_plans(records), self.state, now=self.now, token=f"{next(self.tokens):x}")
        assert not out.dead_letters
        for alarm in (orjson.loads(one) for _, one in out.alarms):
            assert self.alarms.setdefault(alarm["id"], alarm)["row"] == alarm["row"], alarm
        if out.frontier:
            self.frontier = Frontier.from_bytes(out.frontier)
            assert not self.frontier.unable, self.frontier.unable
            self.most = max(self.most, *(self.frontier.definitions.values() or [0]))
        self.memory = group


def _vectors(plan: Plan, shard: Shard) -> dict[str, Vector]:
    """The rows of a shard as columns."""
    stream = plan.stream(shard.stream)
    assert stream is not None
    columns = [list(column) for column in zip(*shard.rows, strict=True)] or [[] for _ in NAMES]
    given = dict(zip(NAMES, columns, strict=True))
    return {column.name: Vector.from_list(given[column.name], column.type) for column in stream.columns}
