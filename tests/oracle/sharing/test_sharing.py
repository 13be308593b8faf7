"""Shared topics of the real cores of registry and edge against DuckDB, with shards that crash.

Random queries come and go. The rows that a query finds on its topic, from its activation on, are the rows
that DuckDB selects by its filter from the raw readings.

Queries are alerts over one stream and consumers outside the fleet. Joins with omission come and go among
them, for their entries share the topics. Nothing of planning is used to say what must be there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.errors import NotAcceptedError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import Ack
from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import recover

BLOCKS = 4
STEPS = 120
TERM = 60  # seconds of a lease
SECOND = 1_000_000
STREAMS = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  y DOUBLE CHECK (y BETWEEN 0 AND 100), n INT, mode VARCHAR, id BIGINT, WATERMARK FOR ts AS ts);
CREATE STREAM other (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
"""
TYPES = {
    "k": Type.VARCHAR, "ts": Type.TIMESTAMP, "x": Type.DOUBLE, "y": Type.DOUBLE, "n": Type.INT,
    "mode": Type.VARCHAR, "id": Type.BIGINT,
}  # fmt: skip
ARROW = [
    ("k", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("n", pa.int32()),
    ("mode", pa.string()), ("id", pa.int64()),
]  # fmt: skip


def predicate(r: random.Random) -> str:
    """A filter as people write it; it means the same to DuckDB."""
    low, width = r.randint(0, 95), r.choice((1, 5, 20, 60))
    atoms = [
        f"x BETWEEN {low} AND {low + width}",
        f"y {r.choice(('<', '<=', '>', '>='))} {r.randint(0, 100)}",
        f"x > {low} AND y < {low + width}",
        f"n IN ({r.randint(0, 5)}, {r.randint(0, 5)})",
        f"mode {r.choice(('=', '<>'))} '{r.choice('ab')}'",
        "n IS NULL",
        f"x + y > {r.randint(20, 180)}",
        f"NOT (x < {low} OR y IS NULL)",
    ]
    return r.choice((" AND ", " OR ")).join(f"({atom})" for atom in r.sample(atoms, r.choice((1, 1, 2))))


@dataclass
class Query:
    """What was asked for. `since`: by shard, the acknowledged activation; `until`: how far each shard's
    commit had come when the query left.
    """

    name: str
    filter: str
    version: int
    topic: str
    since: dict[str, int] = field(default_factory=dict)
    until: dict[str, int] | None = None


class Source:
    """One shard: its log, its commit, and the edge's run on it, if there is one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log: list[dict[str, Any]] = []
        self.commit = Commit()
        self.run: ShardRun | None = None


class World:
    def __init__(self, seed: str) -> None:
        self.r = random.Random(seed)
        self.now = 0
        self.statements: dict[bytes, bytes] = {}
        self.plan = Plan(0, 2)
        self.sources = [Source("air:e1/s"), Source("air:e2/s")]
        self.queries: dict[str, Query] = {}
        self.ended: list[Query] = []
        self.joins: set[str] = set()
        self.found: dict[str, list[dict[str, Any]]] = {}  # by topic
        self.acks: list[Ack] = []
        self.made = 0
        self.registry = Registry(PLANNER, State(2), None, 0, 0)
        self.perform(self.registry.begin(0))
        self.sql(STREAMS)
        for source in self.sources:
            self.say(source, 0, 0, "waiting")
        self.tick()

    # ---- the registry

    def perform(self, change: Change | None) -> None:
        if change is None:
            return
        for key, value in change.statements.items():
            if value is None:
                del self.statements[key]
            else:
                self.statements[key] = value
        if change.plan is not None:
            self.plan = change.plan
        self.registry.done(change, self.now)

    def sql(self, text: str) -> None:
        self.perform(self.registry.apply(text, self.now)[1])

    def tick(self) -> None:
        self.perform(self.registry.tick(self.now))
        alive = {f"lease/{name}" for name in self.registry.state.leases}
        for name in [name for name in self.queries if name.startswith("lease/") and name not in alive]:
            self.end(name)

    def restart(self) -> None:
        state = recover(self.statements)
        assert state is not None
        self.registry = Registry(PLANNER, state.draft(), state, self.plan.version, self.now)
        for ack in self.acks:
            self.registry.hear(ack, None)
        self.perform(self.registry.begin(self.now))

    def say(self, source: Source, plan: int, activation: int, state: Any) -> None:
        self.acks.append(Ack(source.name, "air", source.name[4:6], plan, activation, state, self.now))
        self.registry.hear(self.acks[-1], self.now)

    # ---- queries

    def ask(self) -> None:
        filter_ = predicate(self.r)
        lease, change = self.registry.subscribe(
            new_lease("air", filter_, "", TERM, self.registry.state.catalog), self.now
        )
        self.perform(change)
        if lease.reader_id not in self.queries:
            topic = self.registry.state.topics["air"].name("air", lease.topics[""])
            self.queries[lease.reader_id] = Query(lease.reader_id, filter_, lease.version, topic)

    def alert(self) -> None:
        self.made += 1
        name, filter_ = f"q{self.made}", predicate(self.r)
        try:
            self.sql(f"CREATE ALERT {name} AS SELECT k, id FROM air WHERE {filter_};")
        except NotAcceptedError as error:
            if "never has a row" not in str(error):
                raise
            return  # test_contradictory_filters.py shows that there is none
        (definition,) = (d for d in self.plan.definitions if d.alert == name)
        self.queries[name] = Query(name, filter_, definition.version, definition.inputs[0].topic)

    def join(self) -> None:
        self.made += 1
        name = f"j{self.made}"
        self.sql(
            f"CREATE ALERT {name} AS SELECT a.k FROM air a JOIN other b ON a.k = b.k AND b.ts BETWEEN "
            f"a.ts - INTERVAL '{self.r.randint(1, 5)}' SECOND AND a.ts + INTERVAL '3' SECOND "
            f"WHERE a.x > b.x AND a.y > {self.r.choice((10, 50))};"
        )
        self.joins.add(name)

    def drop(self) -> None:
        alerts = sorted(self.joins | {name for name in self.queries if not name.startswith("lease/")})
        if alerts:
            name = self.r.choice(alerts)
            self.sql(f"DROP ALERT {name};")
            self.joins.discard(name)
            if name in self.queries:
                self.end(name)

    def end(self, name: str) -> None:
        query = self.queries.pop(name)
        query.until = {source.name: source.commit.done for source in self.sources}
        self.ended.append(query)

    def wait(self) -> None:
        """Time goes by, and some consumers ask again."""
        self.now += self.r.choice((1, 20, 40)) * SECOND
        for source in self.sources:
            if source.run is not None:
                self.acknowledge(source)
        for lease in list(self.registry.state.leases.values()):
            if self.r.random() < 0.8:
                _, change = self.registry.subscribe(lease, self.now)
                self.perform(change)
        self.tick()

    # ---- the edge

    def feed(self) -> None:
        source = self.r.choice(self.sources)
        for _ in range(self.r.choice((1, 5, 20))):
            at = len(source.log)
            r = self.r
            row = {
                "k": r.choice(("k1", "k2", None)),
                "ts": (at + r.choice((0, 0, 0, -3))) * SECOND,
                "x": r.choice((None, *[r.uniform(0, 100)] * 9)),
                "y": r.choice((None, *[float(r.randint(0, 100))] * 9)),
                "n": r.choice((None, *range(6))),
                "mode": r.choice(("a", "b", None)),
                "id": at * 2 + self.sources.index(source),
            }
            source.log.append(row)

    def edge(self) -> None:
        source = self.r.choice(self.sources)
        if source.run is None:
            if source.name in self.plan.since:
                source.run = ShardRun(source.name, "air", source.commit, self.plan)
            return
        self.r.choice((self.read, self.read, self.send, self.send, self.keep, self.obey, self.crash))(source)

    def read(self, source: Source) -> None:
        assert source.run is not None
        first = source.run.next_offset
        rows = source.log[first : first + self.r.choice((1, 5, 50))]
        if rows:
            columns = {name: Vector.from_list([row[name] for row in rows], t) for name, t in TYPES.items()}
            offsets = np.arange(first, first + len(rows))
            batch = Batch(columns, columns["ts"].data, offsets, np.full(len(rows), self.now))
            source.run.take(batch, self.now)

    def send(self, source: Source) -> None:
        assert source.run is not None
        for _ in range(self.r.choice((1, 10, 1000))):
            if not source.run.out:
                return
            record = source.run.out.popleft()
            document = orjson.loads(record.value)
            if "kind" not in document["_"]:
                self.found.setdefault(record.topic, []).append(document)
            source.run.safe(record.token)

    def keep(self, source: Source) -> None:
        assert source.run is not None
        commit = source.run.commit()
        if commit is not None:
            source.commit = commit
            source.run.committed(self.now)
            self.acknowledge(source)

    def acknowledge(self, source: Source) -> None:
        assert source.run is not None
        if source.run.acknowledged is None:
            return
        version, activation = source.run.acknowledged
        self.say(source, version, activation, "active")
        for query in self.queries.values():
            if version >= query.version:
                query.since.setdefault(source.name, activation)

    def obey(self, source: Source) -> None:
        assert source.run is not None
        if self.plan.version > source.run.version and source.name in self.plan.since:
            source.run.obey(self.plan)

    def crash(self, source: Source) -> None:
        if self.r.random() < 0.5:
            source.run = None

    # ---- the judgement

    def play(self) -> None:
        steps = (self.ask, self.ask, self.alert, self.join, self.drop, self.wait, self.restart)
        for _ in range(STEPS):
            if self.r.random() < 0.25:
                self.r.choice(steps)()
            self.feed()
            for _ in range(3):
                self.edge()
        for source in self.sources:
            if source.run is None:
                source.run = ShardRun(source.name, "air", source.commit, self.plan)
            self.obey(source)
            while source.run.next_offset < len(source.log):
                self.read(source)
            while source.run.out:
                self.send(source)
            self.keep(source)

    def judge(self) -> int:
        """How many rows were promised; fails where one of them isn't on its query's topic."""
        promised = 0
        with duckdb.connect() as connection:
            rows = [row for source in self.sources for row in source.log]
            connection.register("air", pa.Table.from_pylist(rows, pa.schema(ARROW)))
            for query in (*self.queries.values(), *self.ended):
                selected = f"SELECT id FROM air WHERE {query.filter}"
                passing = {row[0] for row in connection.execute(selected).fetchall()}
                there = {row["id"] for row in self.found.get(query.topic, ()) if "id" in row}
                for source in self.sources:
                    since = query.since.get(source.name)
                    if since is None:
                        continue
                    until = len(source.log) if query.until is None else query.until[source.name]
                    wanted = {r["id"] for r in source.log[:until] if r["ts"] >= since} & passing
                    promised += len(wanted)
                    assert wanted <= there, (query, source.name, sorted(wanted - there)[:5])
        return promised

    def values(self) -> None:
        """Every tuple on every topic is a reading of its shard, column by column."""
        for rows in self.found.values():
            for row in rows:
                source = next(s for s in self.sources if s.name == row["_"]["shard"])
                if "id" in row:
                    raw = source.log[row["id"] // 2]
                    assert all(raw[name] == value for name, value in row.items() if name != "_"), (raw, row)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_each_query_finds_its_rows_from_its_activation_on(block: int) -> None:
    promised, topics = 0, 0
    for case in range(cases(1 / 2000 / BLOCKS)):
        seed = f"{SEED} {block} {case}"
        world = World(seed)
        try:
            world.play()
            promised += world.judge()
            world.values()
        except AssertionError as error:
            raise AssertionError(f"seed {seed!r}: {error}") from error
        topics = max(topics, len(world.found))
    assert promised > 100 and topics > 1


def test_a_topic_without_readers_ends_and_narrows_before() -> None:
    world = World("0")
    world.now = 0
    for filter_ in ("x > 50", "x > 40"):
        _, change = world.registry.subscribe(
            new_lease("air", filter_, "", TERM, world.registry.state.catalog), world.now
        )
        world.perform(change)
        world.now += 30 * SECOND
    assert [len(t.entries) for t in world.plan.streams[0].topics] == [1]
    wide = world.plan.streams[0].topics[0].entries[0]
    world.perform(world.registry.subscribe(world.registry.state.leases[first(world)], world.now)[1])
    world.now += 40 * SECOND
    world.tick()
    (topic,) = world.plan.streams[0].topics
    assert topic.entries != (wide,) and len(topic.entries) == 1
    world.now += 100 * SECOND
    world.tick()
    assert world.plan.streams[0].topics == ()


def first(world: World) -> str:
    return min(world.registry.state.leases.values(), key=lambda lease: lease.version).id
