"""Random schedules of the real cores: crashes between any two steps, and in the end a fleet that is healed.

python -m tests.model.schedule --seed 17            play one schedule, and print what broke
python -m tests.model.schedule --seed 17 --trace    and every step of it
python -m tests.model.schedule --runs 2000          play many, and count what they saw
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from traceback import format_exception
from unittest.mock import patch

import structlog
from tests.model import counts, windows
from tests.model.counts import judge_counts
from tests.model.edge import Edge
from tests.model.judge import Broken, judge
from tests.model.kafka import decode_once
from tests.model.link import FarSource
from tests.model.readings import FAR, WIDEST, Alert, Shard
from tests.model.registry import certify_once, parse_once
from tests.model.windows import judge_windows
from tests.model.world import World

from tamis.errors import TamisError
from tamis.messaging.topics import stream_of
from tamis.planning import omission_rules
from tamis_edge.shards.worker import Worker
from tamis_joiner.core import compiled_plan
from tamis_registry.core.statements import recovery

# Weights of the steps.
ACTIONS = {
    "emit": 8,
    "turn": 14,
    "plan": 2,
    "obey": 2,
    "read": 3,
    "settle": 2,
    "deliver": 4,
    "poll": 2,
    "commit": 2,
    "land": 2,
    "speak": 2,
    "batch": 10,
    "hear": 5,
    "registry": 7,
    "crash": 0.4,
    "repair": 6,
    "cut": 0.25,
    "mute": 0.15,
    "move": 0.5,
    "wake": 1,
}
# Later than every reading: what a shard without an end is given at the end, later each round.
END = 1_000_000


class Schedule:
    """One schedule. What happens in it is decided by the seed alone."""

    def __init__(self, seed: int, trace: bool = False) -> None:
        self.world = World(seed, trace)
        self.r = self.world.r
        self.left = 6  # operations of the users that are still to come
        self.pace = 0.8 if self.world.alters else self.r.choice((0.1, 0.3, 0.8))
        self.readings: dict[str, int] = {}  # of each shard, before the end

    def play(self) -> list[Broken]:
        """What broke."""
        world, r = self.world, self.r
        self.begin()
        weights = [weight * r.choice((0.4, 1, 1, 2)) for weight in ACTIONS.values()]
        steps = [getattr(self, name) for name in ACTIONS]
        count = 80 + 3 * sum(len(s.log) for s in world.shards.values())
        for number, step in enumerate(r.choices(steps, weights, k=count)):
            if number == count // 2:
                self.upgrade()
            world.now += world.tick
            self.fill_disks()
            step()
            if world.broken:
                return world.broken
        stuck = self.heal()
        return [*world.broken, *judge(world), *judge_counts(world), *judge_windows(world), *stuck]

    def upgrade(self) -> None:
        """Edges take no more readings from the future."""
        for shard in self.world.shards.values():
            shard.swallows = False

    def begin(self) -> None:
        """A fleet that has just come up: most of its shards announce themselves at once."""
        world, office = self.world, self.world.office
        office.start()
        self.perform()
        counted = counts.STREAM_SQL % world.stall if world.counted else ""
        if world.windowed:
            counted += windows.stream_sql(world.inputs.delay, world.stall)
        limits = {stream: world.limit(stream, 0) for stream in world.inputs.streams}
        office.say(world.inputs.streams_sql(world.stall, limits) + counted, lambda version: None)
        self.perform()
        if world.counted:
            self.count()
            self.perform()
        for _ in range(self.r.choice((1, 2)) if world.windowed else 0):
            self.sum_windows()
            self.perform()
        for _ in range(self.r.choice((1, 2, 3))):
            self.define()
            self.perform()
        for edge in world.edges:
            edge.start()
            if self.r.random() < 0.85:
                edge.read_plans(None)
                edge.turn(100)
        if self.r.random() < 0.8:
            office.hear()
            office.tick()
            self.perform()
            for edge in world.edges:
                edge.read_plans(None)

    def perform(self) -> None:
        """All effects of what the registry has decided."""
        while self.world.office.effects:
            self.world.office.effect()

    # ---- sources

    def emit(self) -> None:
        live = [s for s in self.world.shards.values() if s.available < len(s.log)]
        for _ in range(self.r.choice((1, 2, 4)) if live else 0):
            shard = min(
                live,
                key=lambda s: (
                    s.log[min(s.available, len(s.log) - 1)].t % FAR + self.r.randint(0, 12) * self.unit
                ),
            )
            shard.available = min(len(shard.log), shard.available + 1)

    @property
    def unit(self) -> int:
        return self.world.inputs.unit

    # ---- edges

    def one_edge(self) -> Edge | None:
        """One that is up."""
        up = [edge for edge in self.world.edges if edge.up]
        return self.r.choice(up) if up else None

    def with_worker(self, step: Callable[[Edge, Worker], object]) -> None:
        """A step of one worker, perhaps of one whose shard is elsewhere by now."""
        every = [(e, w) for e in self.world.edges if e.up for w in e.all_workers()]
        if every:
            step(*self.r.choice(every))

    def plan(self) -> None:
        if edge := self.one_edge():
            edge.read_plans(self.r.choice((1, 1, 3)))

    def turn(self) -> None:
        if edge := self.one_edge():
            edge.turn(self.r.choice((100, 100, self.r.randint(1, 30))))

    def obey(self) -> None:
        self.with_worker(lambda edge, worker: edge.obey(worker))

    def read(self) -> None:
        self.with_worker(lambda edge, worker: edge.read(worker, self.r.choice((1, 1, 2, 5))))

    def settle(self) -> None:
        self.with_worker(lambda edge, worker: edge.settle(worker))

    def deliver(self) -> None:
        if edge := self.one_edge():
            edge.deliver(self.r.choice((1, 2, 8)))

    def poll(self) -> None:
        if edge := self.one_edge():
            edge.publisher.poll()

    def commit(self) -> None:
        self.with_worker(lambda edge, worker: edge.commit(worker))

    def land(self) -> None:
        if edge := self.one_edge():
            edge.land()

    def speak(self) -> None:
        if edge := self.one_edge():
            for worker in edge.all_workers():
                edge.speak(worker)

    # ---- joiner

    def batch(self) -> None:
        self.r.choice(self.world.joiners).batch(calm=False)

    # ---- registry

    def hear(self) -> None:
        self.world.office.hear()

    def registry(self) -> None:
        office, r = self.world.office, self.r
        if office.registry is None:
            if r.random() < 0.5:
                office.start()
        elif office.effects:
            if r.random() < 0.05:
                office.crash()
            else:
                for _ in range(r.choice((1, 1, 3, 10))):
                    office.effect()
        elif not office.tick() and self.left and r.random() < self.pace:
            self.left -= 1
            self.operate()

    def define(self, old: Alert | None = None) -> None:
        """CREATE ALERT, or CREATE OR REPLACE ALERT."""
        world, office = self.world, self.world.office
        version = office.next_version
        name = old.name if old else f"q{len({alert.name for alert in world.every.values()})}"
        made = world.inputs.alert(name, version, old)
        try:
            office.say(made.sql(old is not None), partial(world.define, made, old))
        except TamisError:
            # With the CHECKs of its streams it can never hold.
            world.seen["refused"] += 1

    def alter(self) -> None:
        """ALTER STREAM: another CHECK of `v`, wider or narrower, and sometimes a new column."""
        world, r = self.world, self.world.r
        stream, top = r.choice(r.choice(list(world.current.values())).streams), world.inputs.top
        wide = world.limit(stream, world.office.next_version) > top - 2
        limit = r.choice((top - 2, top - 1) if wide else (top, WIDEST))
        changes = [f"ALTER COLUMN v SET CHECK (v BETWEEN 0 AND {limit})"]
        changes += ["ADD COLUMN added BIGINT"] if r.random() < 0.4 else []
        try:
            world.office.say(
                f"ALTER STREAM {stream} {', '.join(changes)};", partial(world.alter, stream, limit)
            )
        except TamisError:
            world.seen["refused"] += 1

    def count(self, old: counts.Count | None = None) -> None:
        """CREATE ALERT of a standing query, or CREATE OR REPLACE ALERT."""
        world, office = self.world, self.world.office
        name = old.name if old else f"c{len({name for name, _ in world.counts})}"
        made = counts.Count.draw(self.r, name, office.next_version)
        office.say(made.sql(old is not None), partial(world.count, made, old))

    def recount(self) -> None:
        """Replace, drop or add a standing query."""
        world, x = self.world, self.r.random()
        some = self.r.choice(list(world.counting.values())) if world.counting else None
        if some is None or x < 0.3:
            self.count()
        elif x < 0.8:
            self.count(some)
            world.seen["recounted"] += 1
        else:
            world.office.say(f"DROP ALERT {some.name};", lambda version: world.uncount(some.name))

    def sum_windows(self, old: windows.WindowSum | None = None) -> None:
        """CREATE ALERT of an aggregate over windows, or CREATE OR REPLACE ALERT."""
        world, office = self.world, self.world.office
        name = old.name if old else f"w{len({name for name, _ in world.window_sums})}"
        made = windows.WindowSum.draw(self.r, name, office.next_version, self.unit)
        office.say(made.sql(old is not None), partial(world.sum_windows, made, old))

    def resum_windows(self) -> None:
        """Replace, drop or add an aggregate over windows."""
        world, x = self.world, self.r.random()
        some = self.r.choice(list(world.summing.values())) if world.summing else None
        if some is None or x < 0.3:
            self.sum_windows()
        elif x < 0.8:
            self.sum_windows(some)
            world.seen["windows replaced"] += 1
        else:
            world.office.say(f"DROP ALERT {some.name};", lambda version: world.unsum(some.name))

    def operate(self) -> None:
        """Replace, drop, pause, resume or add an alert."""
        world, r, x = self.world, self.r, self.r.random()
        if world.counted and r.random() < 0.5:
            self.recount()
            return
        if world.windowed and r.random() < 0.5:
            self.resum_windows()
            return
        if world.alters and world.current and r.random() < 0.8:
            self.alter()
            return
        if world.current and x < 0.6:
            self.define(r.choice(list(world.current.values())))
            what = "replaced"
        elif len(world.current) > 1 and x < 0.75:
            name, drop = r.choice(list(world.current)), r.random() < 0.6
            text = f"{'DROP' if drop else 'PAUSE'} ALERT {name};"
            world.office.say(text, lambda version: world.end(name, paused=not drop))
            what = "dropped or paused"
        elif world.paused and x < 0.85:
            name, alert = r.choice(list(world.paused.items()))
            made = world.made(alert, world.office.next_version)
            world.office.say(f"RESUME ALERT {name};", partial(world.define, made, None))
            what = "resumed"
        elif len(world.current) < 4:
            self.define()
            what = "added"
        else:
            return
        world.seen[what] += 1

    # ---- faults

    def crash(self) -> None:
        world, r = self.world, self.r
        edge = r.choice(world.edges)
        if edge.up:
            edge.crash()
            if r.random() < 0.3:  # its disk's plan is old or gone (its spool never)
                edge.disk = r.choice([None, *r.choice(world.plans)])
            edge.dead = r.random() < 0.04 and sum(not other.dead for other in world.edges) > 1
            world.seen["edge crashes"] += 1
            world.say(edge.name, "dies" if edge.dead else "crashes")

    def repair(self) -> None:
        edge = self.r.choice(self.world.edges)
        if not edge.up and not edge.dead:
            edge.start()
            self.world.say(edge.name, "restarts with plan", edge.plan and edge.plan.version)
        elif not edge.connected:
            edge.connected = True
            self.world.say(edge.name, "connected")
        else:
            edge.muted = False

    def cut(self) -> None:
        edge = self.r.choice(self.world.edges)
        if edge.connected:
            edge.connected = False
            self.world.seen["cut off"] += 1
            self.world.say(edge.name, "cut off")

    def mute(self) -> None:
        """It works on, and the registry hears nothing of it."""
        self.r.choice(self.world.edges).muted = True

    def move(self) -> None:
        world, r = self.world, self.r
        movable = [s for s in world.shards.values() if s.kind == "kafka"]
        new = r.choice(world.edges)
        if not movable or new.dead:
            return
        shard = r.choice(movable)
        old = world.owner[shard.name]
        if old is not new:
            old.release(shard, told=r.random() < 0.5)
            self.assign(shard, new)
            world.seen["moves"] += 1
            world.say(shard.name, "moves from", old.name, "to", new.name)

    def assign(self, shard: Shard, edge: Edge) -> None:
        """A shard is of this edge from now on."""
        self.world.owner[shard.name] = edge
        self.world.durable[shard.name].source = None
        if edge.up:
            edge.adopt(shard)

    def fill_disks(self) -> None:
        """In some schedules disks become full, and have room again."""
        disks = self.world.disks
        if disks is None:
            return
        for edge in self.world.edges:
            if disks.random() < (0.1 if edge.disk_full else 0.04):
                edge.disk_full = not edge.disk_full
                self.world.seen["full disks"] += edge.disk_full
                # What fills a disk is the spool, mostly.
                edge.connected = edge.connected and not (edge.disk_full and disks.random() < 0.7)
                self.world.say(edge.name, "has a full disk" if edge.disk_full else "has room on its disk")

    def wake(self) -> None:
        """Who has lost a shard learns of it."""
        for edge in self.world.edges:
            edge.zombies = []

    # ---- the end

    def heal(self) -> list[Broken]:
        """Repair what is not dead, let the sources go on, drain; what waits even then is stuck."""
        world = self.world
        world.say("heal")
        self.wake()
        self.upgrade()
        alive = [edge for edge in world.edges if not edge.dead]
        for edge in alive:
            edge.connected, edge.muted, edge.disk_full = True, False, False
            if not edge.up:
                edge.start()
        for shard in world.shards.values():
            if shard.kind == "kafka" and world.owner[shard.name].dead:
                self.assign(shard, self.r.choice(alive))
        if world.office.registry is None:
            world.office.start()
        self.readings = {name: len(shard.log) for name, shard in world.shards.items()}
        stuck: list[Broken] = []
        for turn in range(1, 31):
            for _ in range(25):
                world.now += world.tick
                for edge in alive:
                    edge.listen()
            self.drain(alive, turn)
            stuck = self.stuck()
            if not stuck or world.broken:
                break
        return stuck

    def drain(self, alive: list[Edge], turn: int) -> None:
        """Everything that can go on does."""
        world, office = self.world, self.world.office
        for shard in world.shards.values():
            if shard.kind != "file":
                later = world.inputs.reading(shard.name, len(shard.log), turn * END * self.unit, None)
                later.v = 0  # which every CHECK accepts
                shard.log.append(later)
            shard.available = len(shard.log)
        self.perform()
        for edge in alive:
            edge.read_plans(None)
            for worker in edge.all_workers():
                edge.obey(worker)
                while edge.read(worker, 100):
                    edge.settle(worker)
            for _ in range(2):  # what a commit lets be said is covered by the next one
                for worker in edge.all_workers():
                    edge.settle(worker)
                self.flush(edge)
                for worker in edge.all_workers():
                    edge.commit(worker)
                edge.land(all_of_them=True)
                for worker in edge.all_workers():
                    edge.commit(worker)
                    edge.speak(worker)
            self.flush(edge)
        office.hear()
        while office.tick():
            self.perform()
        for joiner in world.joiners:
            joiner.batch(calm=True)

    def flush(self, edge: Edge) -> None:
        """All that is on its way arrives."""
        while edge.producer.queue or edge.publisher.in_flight or edge.publisher.spooling:
            edge.deliver(1_000)
            edge.publisher.poll()

    def stuck(self) -> list[Broken]:
        """What an idle fleet should not have."""
        world = self.world
        registry = world.office.registry
        assert registry is not None
        # An old definition waits for its shards to come back where all of them are gone.
        outcomes = [joiner.outcome() for joiner in world.joiners]
        # What has never had a shard is waited for: nobody knows when its first tuples come.
        begun = {topic for joiner in world.joiners for _, topic, _ in joiner.included}
        void = {topic for last in outcomes for topic, state in last.topics.items() if state.void}
        # One that counts waits for each of them.
        dead = {s.stream for s in world.shards.values() if world.owner[s.name].dead}
        found = [
            ("STUCK", f"old definition {definition.alert}@{definition.version}")
            for definition in registry.plan.queries
            if f"{definition.alert}@{definition.version}" in registry.state.retiring
            and not {source.topic for source in definition.inputs} <= void
            and {source.topic for source in definition.inputs} <= begun
            and not (definition in registry.plan.standing and definition.inputs[0].stream in dead)
        ]
        sources = [worker.source for edge in world.edges if edge.up for worker in edge.all_workers()]
        found += [
            ("STUCK", f"{source.name} is read to {source.reached}")
            for source in sources
            if isinstance(source, FarSource)
            and registry.plan.stream(source.stream) is not None
            and source.reached < self.readings[source.name]
        ]
        for last in outcomes:
            if last.parked or last.plan != registry.plan.version:
                found.append(("STUCK", f"joiner {last.partition}: plan {last.plan}, parked {last.parked}"))
                continue  # it has other topics yet
            for topic, state in last.topics.items():
                if stream_of(topic) == counts.STREAM:
                    continue  # it has no time
                partners = {
                    source.topic
                    for definition in registry.plan.definitions
                    if topic in (topics := {source.topic for source in definition.inputs})
                    for source in definition.inputs
                    if source.topic != topic or len(topics) == 1
                }
                # Nobody is there to say how far these have come, and few can be left of those that have gone.
                still = (
                    state.tuples
                    and partners <= begun
                    and not all(last.topics[partner].void for partner in partners)
                )
                if still or (not state.void and (state.frontier or 0) < END * self.unit // 2):
                    found.append(("STUCK", f"joiner {last.partition}: {topic} {state}"))
        return found


def play(seed: int, trace: list[str] | None = None) -> tuple[list[Broken], Counter[str]]:
    """What broke in a schedule, and what happened in it; the steps are added to `trace`."""
    with (
        patch.object(omission_rules, "certify", certify_once),
        patch.object(recovery, "parse", parse_once),
        patch.object(compiled_plan, "decode_plan", decode_once),
    ):
        schedule = Schedule(seed, trace is not None)
        try:
            broken = schedule.play()
        except Exception as error:
            broken = [("ERROR", "".join(format_exception(error)))]
    if trace is not None:
        trace += schedule.world.trace or []
    return broken, schedule.world.seen


def main() -> None:
    """Play from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    asked = parser.parse_args()
    quiet()
    began, seen, count = time.perf_counter(), Counter[str](), 0
    for seed in range(asked.seed, asked.seed + asked.runs):
        trace: list[str] | None = [] if asked.trace else None
        broken, happened = play(seed, trace)
        print(*trace or (), sep="\n", end="\n" if trace else "")
        seen += happened
        count += bool(broken)
        for what in broken[:3]:
            print(f"seed {seed}:", *what)
    print(f"{asked.runs} runs, {count} broken, {time.perf_counter() - began:.1f} s; {dict(seen)}")


def quiet() -> None:
    """What the services log is of no interest here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


if __name__ == "__main__":
    main()
