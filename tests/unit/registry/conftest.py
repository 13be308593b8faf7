"""Fixtures: the registry's core with a simple planner, and helpers for the messages of the fleet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tamis.bounded.memory import Memory
from tamis.messaging.records import Ack, Frontier, ShardState, StreamState
from tamis.messaging.topics import stream_topic
from tamis.plan.model import Definition, Input, Plan, StreamPlan, TimeBound, TopicPlan
from tamis.planning.derived_topics import DerivedNumber
from tamis.planning.incremental import Built
from tamis.planning.topic_readers import ReaderSource
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.sharing.selectivity import StreamStatistics
from tamis.sharing.topic_choice import TopicKey
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import recover
from tamis_registry.core.statements.outcomes import Outcome

SECOND = 1_000_000
# Every definition of the simple planner: |difference of times| <= SPAN, omission interval L.
SPAN, L = 10 * SECOND, 5 * SECOND


def decide(made: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    """An alert called `unbounded…` isn't bounded; all others are."""
    bounded = not made.name.startswith("unbounded")
    allowed = isinstance(made, AlertDef) and made.options.allow_unbounded
    memory = Memory("bounded" if bounded else "unbounded", None, "", "", "its name", ("another name",))
    return Verdict(made.name, "alert", bounded or allowed, "its name", (), memory)


def build(
    version: int,
    catalog: Catalog,
    sources: Sequence[ReaderSource],
    *,
    partitions: int,
    topic_numbers: Mapping[TopicKey, tuple[int, ...]],
    outside: Mapping[str, frozenset[int]],
    retiring: Mapping[str, int],
    since: Mapping[str, int],
    shard_streams: Mapping[str, str],
    statistics: Mapping[str, StreamStatistics],
    derived_numbers: Mapping[str, DerivedNumber],
    partials: Collection[str] | None,
    aggregated: Collection[str],
    before: Built | None,
) -> Built:
    """One topic per stream, read by every definition whole."""
    readers = [source.as_reader for source in sources]
    running = [(r.origin, r.version) for r in readers if r is not None and isinstance(r.origin, AlertDef)]
    keys = {name: stream.key for name, stream in catalog.streams.items()}
    numbers = dict(topic_numbers)
    for name in sorted({source.stream for alert, _ in running for source in alert.query.sources}):
        if (name, keys[name]) not in numbers:
            used = [n for (s, _), ns in numbers.items() for n in ns if s == name]
            numbers[name, keys[name]] = (1 + max(used, default=0),)
    topics = {s: stream_topic(s, ns[0]) for (s, key), ns in numbers.items() if key == keys.get(s)}
    streams = tuple(
        StreamPlan(
            name,
            (),
            stream.time,
            stream.delay,
            None,
            None,
            stream.max_stall,
            (TopicPlan(topics[name], keys[name], (), ()),) if name in topics else (),
        )
        for name, stream in catalog.streams.items()
    )
    definitions = tuple(_definition(alert, n, topics, keys) for alert, n in running)
    plan = Plan(version, partitions, streams, definitions, dict(since), dict(shard_streams), dict(retiring))
    return Built(plan, numbers, partials=partials is not None)


def _definition(
    alert: AlertDef, n: int, topics: dict[str, str], keys: dict[str, tuple[str, ...]]
) -> Definition:
    inputs = tuple(
        Input(s.alias, s.stream, topics[s.stream], "ts", keys[s.stream], None, L) for s in alert.query.sources
    )
    bounds = tuple(TimeBound(inputs[0].alias, other.alias, -SPAN, SPAN) for other in inputs[1:])
    return Definition(alert.name, n, inputs, (), bounds, None, ())


SIMPLE = Planner(decide, build)


@dataclass
class Fleet:
    """A registry whose changes go to two logs in place of Kafka, in the order in which they must."""

    partitions: int = 2
    now: int = 0
    statements: dict[bytes, bytes] = field(default_factory=dict)
    plans: list[list[Plan]] = field(default_factory=list)
    finals: list[tuple[str, str, int]] = field(default_factory=list)  # topic, shard, version
    topics: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.plans = [[] for _ in range(self.partitions)]
        self.registry = self.start()

    def start(self, finish: bool = True) -> Registry:
        """A new process that knows what the logs hold, and acknowledgements and frontiers of the old one."""
        before = recover(self.statements)
        state = before.draft() if before else State(self.partitions)
        greatest = max((log[-1].version for log in self.plans if log), default=0)
        registry = Registry(SIMPLE, state, before, greatest, self.now)
        if hasattr(self, "registry"):
            for ack in self.registry.seen.acks.values():
                registry.hear(ack, None)
            registry.seen.frontiers = self.registry.seen.frontiers
        self.registry = registry
        if finish:
            self.perform(registry.begin(self.now))
        return registry

    def perform(self, change: Change, steps: int | None = None) -> None:
        """Do the change; with `steps` crash after so many writes: statements, topics, each plan, each
        final.
        """
        writes: list[Any] = [lambda: self.write(change), lambda: self.topics.update(change.topics)]
        if change.plan is not None:
            plan = change.plan
            assert plan.version > max((log[-1].version for log in self.plans if log), default=0)
            writes += [lambda p=p: self.plans[p].append(plan) for p in range(self.partitions)]
            writes += [lambda f=f: self.finals.append((f.topic, f.shard, f.version)) for f in change.finals]
        for write in writes[:steps]:
            write()
        if steps is None or steps >= len(writes):
            self.registry.done(change, self.now)

    def write(self, change: Change) -> None:
        for key, value in change.statements.items():
            if value is None:
                del self.statements[key]
            else:
                self.statements[key] = value

    def sql(self, text: str) -> list[Outcome]:
        """Apply a text."""
        outcomes, change = self.registry.apply(text, self.now)
        self.perform(change)
        return outcomes

    def tick(self) -> Change | None:
        """Do what is due."""
        change = self.registry.tick(self.now)
        if change:
            self.perform(change)
        return change

    def ack(
        self,
        stream: str,
        plan: int = 0,
        activation: int = 0,
        state: ShardState = "waiting",
        edge: str = "e1",
        *,
        quiet: int = 0,
        failing: dict[str, str] | None = None,
        tuples: dict[str, int] | None = None,
        doubts: list[str] | None = None,
        unread: bool | None = None,
        unused: bool | None = None,
    ) -> None:
        """A shard says something."""
        shard, now = f"{edge}/{stream}", self.now
        told = Ack(shard, stream, edge, plan, activation, state, now, quiet)
        ack = replace(told, failing=failing, tuples=tuples, doubts=doubts, unread=unread, unused=unused)
        self.registry.hear(ack, self.now)

    def join(self, stream: str, edge: str = "e1") -> None:
        """A shard comes, is listed and obeys."""
        self.ack(stream, self.version, edge=edge)
        self.tick()
        self.ack(stream, self.version, 100, "active", edge)

    def frontier(
        self,
        value: int | None,
        void: bool = False,
        plan: int | None = None,
        shards: tuple[str, ...] = (),
        *,
        obeyed: int | None = None,
        waiting: int = 0,
    ) -> None:
        """The joiner's frontiers of all topics are there in all partitions, and it lists these shards, which
        have told progress under plan `obeyed`; of old tuples so many are `waiting` for each old definition.
        """
        newest = self.version if plan is None else plan
        told = newest if obeyed is None else obeyed
        for partition in range(self.partitions):
            topics = {
                topic: StreamState(value, 0, 0, void, shards, obeyed=None if void else told)
                for topic in self.topics
            }
            waits = dict.fromkeys(self.plan.retiring, waiting)
            self.registry.follow(Frontier(partition, newest, topics, {}, {}, 0, 0, self.now, waiting=waits))

    @property
    def version(self) -> int:
        """The newest plan's."""
        return self.registry.plan.version

    @property
    def plan(self) -> Plan:
        """The newest plan."""
        return self.registry.plan


@pytest.fixture
def fleet() -> Fleet:
    """A fleet with two streams and nothing else yet."""
    made = Fleet()
    made.sql(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE STREAM surface (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
    )
    return made


@pytest.fixture
def new_fleet() -> type[Fleet]:
    """For tests that make many."""
    return Fleet
