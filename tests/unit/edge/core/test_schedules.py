"""The shard's core under random schedules: crashes between any two steps, and plans that change.

The tests check the guarantees on which the joiner relies. Take the tuples that are not late and lie at or
behind an entry's acknowledged activation. Every window of length L that holds one of them has its greatest
and its least value among the tuples published at the entry's version or above (cai-2021, Theorem 3.1). The
same holds at every progress record, without those tuples before its event time that only came after it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import orjson
import pytest
from tests.unit.edge.plans import TEMP, TOPIC, air, compare, entry, plan, topic

from tamis.expressions.vectors import Vector
from tamis.messaging.partitioner import partition_of
from tamis.messaging.records import END_OF_TIME, canonical_key
from tamis.plan.model import Entry, Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SHARD = "air:source/0"
SEED = 20_240_601
SECOND_TOPIC = "tamis.stream.air.2"


@dataclass
class Reading:
    station: str
    time: int
    temp: float
    late: bool


@dataclass
class Promise:
    """An entry of a topic, from the activation that was acknowledged for it."""

    entry: Entry
    topic: str
    since: int  # plan version
    until: int | None = None
    activation: int | None = None


@dataclass
class World:
    """One shard, its log, its commit, its topics, and the checks."""

    random: random.Random
    movable: bool
    delay: int
    log: list[Reading]
    now: int = 0
    commit: Commit = field(default_factory=Commit)
    run: ShardRun | None = None
    plan: Plan | None = None
    version: int = 0
    queue: list[Record] = field(default_factory=list)  # handed over, not yet confirmed
    spool: list[Record] = field(default_factory=list)
    cut_off: bool = False
    topics: dict[tuple[str, int], list[tuple[str, int, Reading | None, int]]] = field(default_factory=dict)
    promises: list[Promise] = field(default_factory=list)
    stations: dict[str, int] = field(default_factory=dict)  # station -> partition
    acknowledged: int = 0

    # ---- steps

    def new_plan(self) -> None:
        r = self.random
        self.version += 1
        current = {p.entry: p.topic for p in self.promises if p.until is None}
        wanted = {e: t for e, t in current.items() if r.random() < 0.6}
        while not wanted or r.random() < 0.4:
            hot = compare(">", TEMP, 3) if r.random() < 0.3 else None
            sides = r.choice(["both", "above", "below"])
            delay = r.choice([None, None, 0, 7])
            new = entry(r.choice([0, 3, 6, 10]), self.version, filter=hot, sides=sides, max_delay=delay)
            if new not in wanted:
                wanted[new] = r.choice([TOPIC, TOPIC, SECOND_TOPIC])
        topics = [topic([e for e, t in wanted.items() if t == name], name) for name in (TOPIC, SECOND_TOPIC)]
        self.plan = plan(air([t for t in topics if t.entries], self.delay), [SHARD], self.version)
        for promise in self.promises:
            if promise.until is None and promise.entry not in wanted:
                promise.until = self.version
        for e, t in wanted.items():
            if e not in current:
                self.promises.append(Promise(e, t, self.version))

    def start(self) -> None:
        if self.run is None and self.plan is not None and self.plan.version >= self.commit.version:
            self.run = ShardRun(SHARD, "air", self.commit, self.plan)

    def switch(self) -> None:
        if self.run is not None and self.plan is not None and self.plan.version > self.run.version:
            self.run.obey(self.plan)

    def read(self) -> None:
        if self.run is None:
            return
        first = self.run.next_offset
        rows = self.log[first : first + self.random.choice([1, 1, 2, 5, 20])]
        if rows:
            columns = {
                "station": Vector(np.array([row.station for row in rows], np.object_)),
                "ts": Vector(np.array([row.time for row in rows], np.int64)),
                "temp": Vector(np.array([row.temp for row in rows], np.float64)),
            }
            offsets = np.arange(first, first + len(rows))
            batch = Batch(columns, columns["ts"].data, offsets, np.full(len(rows), self.now))
            self.run.take(batch, self.now)
        else:
            self.run.settle(self.now)

    def send(self) -> None:
        """Hand over some of what the run has to send, as the publisher does."""
        if self.run is None:
            return
        for _ in range(self.random.choice([1, 3, 100])):
            if not self.run.out:
                return
            if (self.cut_off or self.spool) and not self.movable:
                record = self.run.out.popleft()
                if self.run.carries_tuple(record.token):
                    self.spool.append(record)
                    self.run.safe(record.token)
                else:
                    self.run.retract(record.token)
            else:
                self.queue.append(self.run.out.popleft())

    def deliver(self) -> None:
        """Kafka takes a record: in order within a partition, in any order between them."""
        if self.cut_off:
            return
        while self.spool and len(self.queue) < 5:
            self.queue.append(self.spool.pop(0)._replace(token=0))  # its confirmation is the spool's business
        for _ in range(self.random.choice([1, 3, 100])):
            if not self.queue:
                return
            where = self.random.choice(self.queue)
            i = next(
                i
                for i, q in enumerate(self.queue)
                if (q.topic, q.partition) == (where.topic, where.partition)
            )
            record = self.queue.pop(i)
            self.arrive(record)
            if self.run is not None and record.token:
                self.run.safe(record.token)

    def make_commit(self) -> None:
        if self.run is None:
            return
        commit = self.run.commit()
        assert commit is not None
        if self.random.random() < 0.1:
            self.run.commit_failed()
            return
        assert commit.done >= self.commit.done
        self.commit = commit
        if self.random.random() < 0.1:
            self.crash()  # durable, and nothing told
            return
        self.run.committed(self.now)
        assert self.run.acknowledged is not None
        version, activation = self.run.acknowledged
        if version > self.acknowledged:
            self.acknowledged = version
            for promise in self.promises:
                if (
                    promise.activation is None
                    and promise.since <= version
                    and (promise.until is None or version < promise.until)
                ):
                    promise.activation = activation

    def crash(self) -> None:
        # What was spooled stays; what is on its way may be lost, or arrive all the same.
        self.run = None
        while self.queue and not self.cut_off and self.random.random() < 0.5:
            self.arrive(self.queue.pop(0))
        # Kafka has no gaps: what was sent from the spool and did not arrive is still in the spool.
        self.spool = [q for q in self.queue if q.token == 0] + self.spool
        self.queue = []

    def ended(self) -> bool:
        return self.run is not None and self.run.final_version == self.version

    # ---- what came of it

    def arrive(self, record: Record) -> None:
        envelope = (value := orjson.loads(record.value)).pop("_")
        place = self.topics.setdefault((record.topic, record.partition), [])
        if envelope.get("kind") == "progress":
            if "event_time" in envelope:  # else no event time is known yet
                place.append(("progress", envelope["plan"], None, envelope["event_time"]))
        elif envelope.get("kind") == "final":
            place.append(("final", envelope["plan"], None, 0))
        else:
            reading = Reading(value["station"], value["ts"], value["temp"], envelope.get("late", False))
            self.stations.setdefault(reading.station, record.partition)
            assert self.stations[reading.station] == record.partition
            place.append(("tuple", envelope["plan"], reading, 0))

    def judge(self) -> None:
        """The omission condition by brute force, as of every progress record and for all that came."""
        for (name, partition), records in self.topics.items():
            for promise in self.promises:
                if promise.topic == name and promise.activation is not None and promise.until is None:
                    counted = [
                        (i, x)
                        for i, (kind, v, x, _) in enumerate(records)
                        if x is not None and v >= promise.since
                    ]
                    self.hit_all_windows(promise, partition, [x for _, x in counted])
                    for i, (kind, version, _, time) in enumerate(records):
                        # After it the partners' tuples that could still join what lies before it are gone.
                        if kind == "progress" and version >= promise.since:
                            usable = [x for k, x in counted if k < i or x.time >= time]
                            if len(usable) < len(counted):
                                self.hit_all_windows(promise, partition, usable)

    def hit_all_windows(self, promise: Promise, partition: int, have: list[Reading]) -> None:
        e = promise.entry
        assert promise.activation is not None
        wanted = [
            x
            for x in self.log
            if (e.filter is None or x.temp > 3)
            and not x.late
            and x.time >= promise.activation
            and partition_of(canonical_key((x.station,)), 2) == partition
        ]
        for x in wanted:
            for start in (x.time, x.time - e.interval):
                end = start + e.interval
                inside = [y.temp for y in wanted if start <= y.time <= end and y.station == x.station]
                got = [y.temp for y in have if start <= y.time <= end and y.station == x.station]
                if e.sides != "below":
                    assert max(got, default=-99) >= max(inside), (promise, x, start, end)
                if e.sides != "above":
                    assert min(got, default=99) <= min(inside), (promise, x, start, end)
                if e.interval == 0 or e.max_delay == 0:
                    assert set(inside) <= set(got), (promise, x, start)


def make_log(r: random.Random, delay: int) -> list[Reading]:
    out: list[Reading] = []
    base, top = 0, -(10**9)
    for _ in range(r.randint(5, 60)):
        base += r.choice([0, 1, 1, 2, 4])
        late = r.random() < 0.05
        time = max(0, base - r.randint(0, delay) - (delay + r.randint(1, 6) if late else 0))
        out.append(Reading(r.choice("abc"), time, float(r.randint(0, 9)), time < top - delay))
        top = max(top, time)
    return out


def play(seed: int) -> World:
    r = random.Random(seed)
    delay = r.randint(0, 4)
    world = World(r, r.random() < 0.5, delay, make_log(r, delay))
    steps = {
        world.new_plan: 1,
        world.start: 4,
        world.switch: 3,
        world.read: 8,
        world.send: 8,
        world.deliver: 8,
        world.make_commit: 5,
        world.crash: 0.6,
    }
    world.new_plan()
    for step in r.choices(list(steps), list(steps.values()), k=r.randint(40, 160)):
        world.now += 1
        world.cut_off ^= r.random() < 0.03
        step()
    world.cut_off = False
    for _ in range(400):
        world.now += 1
        world.start()
        world.switch()
        world.read()
        assert world.run is not None
        if world.run.next_offset == len(world.log):
            world.run.finish()
            world.run.settle(world.now)
        world.send()
        world.deliver()
        world.make_commit()
        if world.ended():
            world.judge()
            return world
    raise AssertionError("the shard did not come to its end")


@pytest.mark.parametrize("block", range(4))
def test_no_schedule_loses_what_a_window_needs(block: int) -> None:
    for i in range(100):
        seed = SEED + 1000 * block + i
        try:
            world = play(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert world.commit.done == len(world.log)
        for (name, partition), records in world.topics.items():
            if name in {p.topic for p in world.promises if p.until is None}:
                assert records[-1][0] == "final", (seed, name, partition)
                ends = [r for r in records if r[0] == "progress" and r[1] == world.version]
                assert ends[-1][3] == END_OF_TIME, (seed, name, partition)
