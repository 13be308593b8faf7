"""The registry's core under random schedules, checked against rules recomputed from its logs alone.

A schedule has statements, shards that come, go and send false reports, frontiers, jumps of the clock, and
crashes between any two writes.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tamis.errors import TamisError
from tamis.messaging.records import END_OF_TIME, Frontier, StreamState

SECOND = 1_000_000
STREAMS = ("air", "surface", "noise")
SHARDS = [(stream, edge) for stream in STREAMS for edge in ("e1", "e2")]
SCHEDULES = 200


class Crash(Exception):
    """The registry's process ends here."""


class Schedule:
    """One random run. `retired` collects what the oracle needs to judge the end of old definitions."""

    def __init__(self, fleet: Any, seed: int) -> None:
        self.r = random.Random(seed)
        self.fleet = fleet
        self.alerts: dict[str, tuple[tuple[str, str], int, bool]] = {}  # streams, threshold, paused
        self.ended: set[str] = set()  # alerts dropped or paused since the last plan
        self.front = dict.fromkeys(range(fleet.partitions), 0)
        self.since: dict[str, int] = {}
        self.delisted: dict[str, int] = {}  # shard -> first version of a plan without it
        self.reported: dict[str, int] = {}  # shard -> plan of its newest waiting acknowledgement
        self.known = fleet.version

    # ---- actions

    def define(self) -> None:
        name = self.r.choice("pqr")
        streams = tuple(self.r.sample(STREAMS, 2))
        above = self.r.randint(1, 3)
        old = self.alerts.get(name)
        head = "CREATE OR REPLACE ALERT" if old else "CREATE ALERT"
        sql = (
            f"{head} {name} AS SELECT a.k FROM {streams[0]} a JOIN {streams[1]} s ON a.k = s.k "
            f"AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND "
            f"WHERE a.v + s.v > {above};"
        )
        paused = bool(old and old[2])
        self.run(lambda now: self.fleet.registry.apply(sql, now), {name: (streams, above, paused)})

    def end(self) -> None:
        if not self.alerts:
            return
        name = self.r.choice(sorted(self.alerts))
        streams, above, _ = self.alerts[name]
        what = self.r.choice(("DROP", "PAUSE", "RESUME"))
        after = {name: None if what == "DROP" else (streams, above, what == "PAUSE")}
        self.ended.add(name)
        self.run(lambda now: self.fleet.registry.apply(f"{what} ALERT {name};", now), after)

    def say(self) -> None:
        """A shard says what a right edge could say: it waits under any plan that it may know, or obeys
        one.
        """
        stream, edge = self.r.choice(SHARDS)
        shard = f"{edge}/{stream}"
        plan = self.r.choice(self.fleet.plans[0])
        if shard in plan.since:
            state = self.r.choices(("active", "waiting", "final"), (8, 1, 1))[0]
        else:
            state = "waiting"
        if state == "waiting":
            self.reported[shard] = plan.version
        self.fleet.ack(stream, plan.version, self.r.randint(0, 50) * SECOND, state, edge)

    def advance(self) -> None:
        """The joiner's frontiers of one partition move up; it says which streams are void to it, under which
        plan its shards have told progress, and what waits for old definitions.
        """
        p = self.r.randrange(self.fleet.partitions)
        self.front[p] += self.r.randint(0, 40) * SECOND
        plan = self.r.choice(self.fleet.plans[p])
        listed = {plan.shard_streams[s] for s in plan.since}
        topics = {
            t: StreamState(
                self.front[p] or None,
                0,
                0,
                t.split(".")[2] not in listed,
                obeyed=self.r.choice((None, plan.version, self.r.randint(0, plan.version))),
            )
            for t in self.fleet.topics
        }
        waiting = {old: self.r.choice((0, 0, 2)) for old in plan.retiring}
        self.fleet.registry.follow(
            Frontier(p, plan.version, topics, {}, {}, 0, 0, self.fleet.now, waiting=waiting)
        )

    def wait(self) -> None:
        self.fleet.now += self.r.choice((1, 10, 100, 4000)) * SECOND

    def tick(self) -> None:
        change = self.fleet.registry.tick(self.fleet.now)
        if change:
            self.perform(change)

    def restart(self) -> None:
        before = self.fleet.registry.state
        self.fleet.start(finish=False)
        after = self.fleet.registry.state
        assert after.statements == before.statements
        assert (after.retiring, after.shards, after.topics) == (before.retiring, before.shards, before.topics)
        self.perform(self.fleet.registry.begin(self.fleet.now))

    # ---- performing, with crashes

    def run(self, decide: Any, after: dict[str, Any]) -> None:
        _, change = decide(self.fleet.now)
        self.perform(change, after)

    def perform(self, change: Any, after: dict[str, Any] | None = None) -> None:
        steps = self.r.randint(0, 6) if self.r.random() < 0.15 else None
        written = steps is None or steps > 0
        self.judge_topics(change)
        self.fleet.perform(change, steps)
        for name, value in (after or {}).items() if written else ():
            self.alerts.pop(name, None)
            if value is not None:
                self.alerts[name] = value
        self.judge()
        if steps is not None and self.fleet.registry.state is not change.state:
            self.fleet.start(finish=False)
            self.perform(self.fleet.registry.begin(self.fleet.now))
        self.judge_finals()

    # ---- what must hold

    def judge_topics(self, change: Any) -> None:
        named = {t.name for s in change.plan.streams for t in s.topics} if change.plan else set()
        assert named <= self.fleet.topics | set(change.topics)

    def judge(self) -> None:
        versions = [[plan.version for plan in log] for log in self.fleet.plans]
        for log in versions:
            assert log == sorted(set(log)), "versions rise in every partition"
        by_version: dict[int, Any] = {}
        for log in self.fleet.plans:
            for plan in log:
                assert by_version.setdefault(plan.version, plan) == plan, "one version, one plan"
        new = sorted(v for v in by_version if v > self.known)
        for version in new:
            self.judge_plan(by_version[version], by_version.get(self.known))
            self.known = version
            self.ended.clear()

    def judge_plan(self, plan: Any, before: Any) -> None:
        definitions = {f"{d.alert}@{d.version}" for d in plan.definitions}
        assert all(d.version <= plan.version for d in plan.definitions)
        current = definitions - set(plan.retiring)
        assert {d.partition("@")[0] for d in current} == {a for a, v in self.alerts.items() if not v[2]}
        assert len({d.partition("@")[0] for d in current}) == len(current), "one definition of each in force"
        for old, successor in plan.retiring.items():
            assert old in definitions and int(old.partition("@")[2]) < successor <= plan.version
        for shard, since in plan.since.items():
            was = self.since.get(shard)
            if since != was:
                assert was is None or shard in self.delisted, "listed anew only after a plan without it"
                assert self.reported.get(shard, -1) >= self.delisted.get(shard, 0), (
                    "and only when it knows that"
                )
                assert since <= plan.version
                self.since[shard] = since
                self.delisted.pop(shard, None)
        for shard in self.since:
            if shard not in plan.since and shard not in self.delisted:
                self.delisted[shard] = self.fleet.registry.state.shards[shard].gone or plan.version
        if before:
            ran = {f"{d.alert}@{d.version}": d for d in before.definitions}
            for gone in ran.keys() - definitions:
                if gone.partition("@")[0] not in self.ended:
                    self.judge_end(ran[gone], before)

    def judge_end(self, definition: Any, before: Any) -> None:
        """An old definition may end only when no tuple of older plans can come or waits (`all_told`,
        `none_waits`).
        """
        name = f"{definition.alert}@{definition.version}"
        successor = before.retiring[name]
        seen = self.fleet.registry.seen
        streams = {s.stream for s in definition.inputs}
        listed = [s for s in before.since if before.shard_streams[s] in streams]
        acks = [seen.acks[s] for s in listed]
        assert all(a.plan >= successor and a.state != "waiting" for a in acks)
        newest = max([successor, *(before.since[s] for s in listed)])
        for p in range(self.fleet.partitions):
            frontier = seen.frontiers[p]
            states = [frontier.topics[s.topic] for s in definition.inputs]
            assert all(state.obeyed is None or state.obeyed >= successor for state in states)
            assert (frontier.plan >= newest, frontier.waiting[name]) == (True, 0)

    def judge_finals(self) -> None:
        """Nothing is pending: so of every delisted shard, in every topic of its stream, at its version,
        unless the joiner says that it has taken it.
        """
        state, seen = self.fleet.registry.state, self.fleet.registry.seen
        heard = [seen.frontiers.get(p) for p in range(self.fleet.partitions)]
        for shard in state.shards.values():
            if shard.gone is not None:
                for topic in self.fleet.topics:
                    if topic.split(".")[2] == shard.stream:
                        taken = all(f and f.plan >= shard.gone for f in heard)  # none lists any shard here
                        assert taken or (topic, shard.name, shard.gone) in self.fleet.finals

    def calm(self) -> None:
        """When all obey and the frontiers end, no old definition is left, and nothing is left to do."""
        for _ in range(6):
            for stream, edge in SHARDS:
                shard, version = f"{edge}/{stream}", self.fleet.version
                if shard in self.fleet.plan.since:
                    self.fleet.ack(stream, version, 60 * SECOND, "active", edge)
                else:
                    self.reported[shard] = version
                    self.fleet.ack(stream, version, 0, "waiting", edge)
            self.fleet.frontier(END_OF_TIME)
            self.tick()
        assert self.fleet.registry.tick(self.fleet.now) is None
        assert self.fleet.plan.retiring == {}
        assert set(self.fleet.plan.since) == {f"{edge}/{stream}" for stream, edge in SHARDS}


ACTIONS = {"define": 6, "end": 2, "say": 30, "advance": 12, "wait": 5, "tick": 20, "restart": 1}


@pytest.mark.parametrize("block", range(4))
def test_random_schedules(new_fleet: Any, block: int) -> None:
    for i in range(SCHEDULES // 4):
        seed = block * 1_000_003 + i
        fleet = new_fleet()
        fleet.sql(
            "".join(
                f"CREATE STREAM {s} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
                for s in STREAMS
            )
        )
        schedule = Schedule(fleet, seed)
        try:
            for action in schedule.r.choices(list(ACTIONS), list(ACTIONS.values()), k=60):
                getattr(schedule, action)()
            schedule.calm()
        except (AssertionError, TamisError, KeyError) as error:
            raise AssertionError(f"seed {seed}") from error
