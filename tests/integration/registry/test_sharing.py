"""Shared topics on a real Kafka against DuckDB, with a registry and two edges that are killed and restarted.

Random queries come and go over twenty minutes of event time. The rows that the filter of a query leaves of
its topic, from the activation of the query on, are the rows that DuckDB selects by this filter from the raw
readings.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import httpx
import orjson
import pyarrow as pa
import pytest
from tests.integration.edges import Bench, RunningEdge
from tests.integration.registry.conftest import Running

from tamis.messaging.topic_reader import TopicReader

SEED = int(os.environ.get("TAMIS_SEED", "1"))
SECOND = 1_000_000
MINUTES = 20
RATE = 1  # readings a second and edge
KILLS = 10  # minutes from one kill to the next
TERM = 60  # seconds of a lease
STREAM = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100),
  y DOUBLE CHECK (y BETWEEN 0 AND 100), n INT, id BIGINT, WATERMARK FOR ts AS ts);
"""
COLUMNS = pa.schema(
    {
        **{"k": pa.string(), "ts": pa.int64(), "x": pa.float64(), "y": pa.float64(), "n": pa.int32()},
        **{"id": pa.int64(), "shard": pa.string()},
    }
)


def predicate(r: random.Random) -> str:
    """A filter as people write it: many ask for the same corners."""
    low = r.choice((10, 10, 50, 80, r.randint(0, 90)))
    atoms = [
        f"x BETWEEN {low} AND {low + r.choice((1, 5, 20))}",
        f"y > {r.choice((20, 50, 90, 95))}",
        f"x > {low} AND n IS NOT NULL",
        f"n IN ({r.randint(0, 5)}, {r.randint(0, 5)})",
        f"NOT (x < {low} OR n IS NULL)",
        f"x + y > {r.choice((150, 190))}",
    ]
    return r.choice((" AND ", " OR ")).join(f"({atom})" for atom in r.sample(atoms, r.choice((1, 1, 2))))


@dataclass
class Query:
    """What was asked for. `present`: the newest plan version that is known to have it; `since`: by shard, its
    activation; `gone`: it isn't asked for any more.
    """

    filter: str
    alert: str | None
    topic: str
    version: int
    present: int
    since: dict[str, int] = field(default_factory=dict)
    asked: float = 0.0
    lease: str = ""
    gone: bool = False

    @property
    def subscriber(self) -> bool:
        return self.alert is None


@dataclass
class Station:
    """An edge, and the readings that it has not taken yet."""

    name: str
    edge: RunningEdge
    waiting: list[dict[str, Any]] = field(default_factory=list)
    down: bool = False

    @property
    def shard(self) -> str:
        return f"air:{self.name}/http"


class Fleet:
    def __init__(self, registry: Running, bench: Bench, seed: int, queries: int) -> None:
        self.r = random.Random(seed)
        self.registry, self.wanted = registry, queries
        self.queries: list[Query] = []
        self.readings: list[dict[str, Any]] = []
        self.kills, self.newest, self.promised = 0, 0, 0
        self.asking = threading.Lock()  # held by whoever looks at queries or asks for them
        self.ending = threading.Event()
        # By topic, shard and partition: the furthest progress under each plan version.
        self.said: dict[tuple[str, str, int], dict[int, int]] = {}
        registry.sql(STREAM)
        self.stations = [Station(name, bench.edge(name)) for name in ("e1", "e2")]
        for station in self.stations:
            station.edge.process.start()
        for station in self.stations:
            station.edge.process.wait_ready(90)

    # ---- queries

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Consumers that ask again by themselves, whatever else goes on."""

        def work() -> None:
            while not self.ending.wait(TERM / 20):
                with self.asking:
                    self.ask_again()

        with ThreadPoolExecutor(1) as beside:
            asking = beside.submit(work)
            try:
                yield
            finally:
                self.ending.set()
                asking.result()

    def come(self) -> None:
        filter_ = predicate(self.r)
        if self.r.random() < 0.25:
            name = f"q{len(self.queries)}"
            made = self.registry.sql(f"CREATE ALERT {name} AS SELECT k, id FROM air WHERE {filter_};")[0]
            topic = made["explain"]["queries"][0]["streams"][0]["sharing"]["topic"]
            self.queries.append(Query(filter_, name, topic, made["plan"], made["plan"]))
            self.newest = made["plan"]
        else:
            self.lease(filter_)

    def lease(self, filter_: str, before: Query | None = None) -> None:
        answer = self.registry.lease("air", predicate=filter_, lease=TERM)
        known = before or next(
            (q for q in self.queries if q.subscriber and q.version == answer["plan"] and not q.gone), None
        )
        if known is None or known.version != answer["plan"]:
            if known is not None:
                known.gone = True  # it ran out while this machine was busy, and began anew
            known = Query(filter_, None, answer["topic"], answer["plan"], answer["plan"])
            self.queries.append(known)
        self.newest = max(self.newest, answer["plan"])
        known.present, known.asked, known.lease = self.newest, time.monotonic(), answer["lease"]["id"]
        self.note(known, answer["activations"])

    def note(self, query: Query, activations: dict[str, dict[str, int]]) -> None:
        for shard, found in activations.items():
            query.since.setdefault(shard, found["event_time"])
            assert query.since[shard] <= found["event_time"]

    def ask_again(self, all_of_them: bool = False) -> None:
        """Renew the leases that need it; or have all activations that are known told."""
        due = time.monotonic() - TERM / 3
        for query in [query for query in self.queries if not query.gone]:
            if all_of_them or (query.subscriber and query.asked < due):
                self.look(query)

    def look(self, query: Query) -> None:
        if query.subscriber:
            self.lease(query.filter, query)
        else:
            self.note(query, self.registry.get(f"alerts/{query.alert}")["activations"])
            query.present = self.newest

    def go(self) -> None:
        there = [query for query in self.queries if not query.gone]
        if not there:
            return
        query = self.r.choice(there)
        self.look(query)
        query.gone = True
        if query.alert is not None:
            assert self.registry.call("DELETE", f"/v1/alerts/{query.alert}").is_success
        elif self.r.random() < 0.5:  # the others stop asking
            assert self.registry.call("DELETE", f"/v1/leases/{query.lease}").is_success

    # ---- readings

    def feed(self, minute: int) -> None:
        """A minute of readings in order for each edge; one that is down gets them later."""
        for number, station in enumerate(self.stations):
            for tick in range(60 * RATE):
                at = (minute * 60 * RATE + tick) * SECOND // RATE
                row = {
                    "k": f"k{self.r.randrange(4)}",
                    "ts": at,
                    "x": self.r.choice((None, *[round(self.r.uniform(0, 100), 2)] * 9)),
                    "y": self.r.choice((None, *[float(self.r.randint(0, 100))] * 9)),
                    "n": self.r.choice((None, *range(6))),
                    "id": 2 * len(self.readings) + number,
                }
                station.waiting.append(row)
                self.readings.append(row | {"shard": station.shard})
        for station in self.stations:
            self.post(station)

    def post(self, station: Station) -> None:
        # In parts, so that a kill comes between two of them, too.
        while station.waiting and not station.down:
            part = station.waiting[:50]
            try:
                taken = station.edge.post("air", part).status_code == httpx.codes.ACCEPTED
            except httpx.TransportError:
                return
            if not taken:
                return
            del station.waiting[:50]

    def disturb(self, minute: int) -> None:
        """Kill an edge, and start it again a minute later."""
        for station in self.stations:
            if station.down:
                station.edge.process.start()
                station.down = False
        if minute % KILLS == KILLS // 2:
            station = self.r.choice(self.stations)
            station.edge.kill()
            station.down = True
            self.kills += 1

    def play(self) -> None:
        for minute in range(MINUTES):
            for _ in range(-(-self.wanted // MINUTES)):
                with self.asking:
                    if self.r.random() < 0.2 or sum(not q.gone for q in self.queries) > self.wanted // 2:
                        self.go()
                    self.come()
            self.feed(minute)
            self.disturb(minute)
        for station in self.stations:
            if station.down:
                station.edge.process.start()
                station.down = False
            station.edge.process.wait_ready(60)
            self.post(station)
            assert not station.waiting
        with self.asking:
            self.ask_again(all_of_them=True)

    # ---- the judgement

    def lacking(self, records: list[tuple[str, dict[str, Any]]]) -> list[tuple[Query, str, list[int]]]:
        """Queries with the ids of rows that they were promised and that their topics don't have."""
        found: dict[str, set[int]] = {}
        self.said = {}
        for topic, value in records:
            envelope = value["_"]
            if "kind" not in envelope:
                found.setdefault(topic, set()).add(value["id"])
            elif "event_time" in envelope:
                plans = self.said.setdefault((topic, envelope["shard"], value["partition"]), {})
                plans[envelope["plan"]] = max(plans.get(envelope["plan"], 0), envelope["event_time"])
        self.promised, out = 0, []
        with duckdb.connect() as connection:
            connection.register("air", pa.Table.from_pylist(self.readings, COLUMNS))
            for query in self.queries:
                ends = self.reached(query)
                for shard, since in query.since.items():
                    selected = connection.execute(
                        f"SELECT id FROM air WHERE ({query.filter}) AND shard = ? AND ts >= ? AND ts < ?",
                        (shard, since, ends[shard]),
                    ).fetchall()
                    missing = {row[0] for row in selected} - found.get(query.topic, set())
                    self.promised += len(selected)
                    if missing:
                        out.append((query, shard, sorted(missing)[:5]))
        return out

    def judge(self, bootstrap: str) -> None:
        deadline = time.monotonic() + 40
        topics = sorted({query.topic for query in self.queries})
        while True:
            records = read(bootstrap, topics)
            lacking = self.lacking(records)
            if not lacking:
                break
            assert time.monotonic() < deadline, (len(lacking), lacking[:3])
            time.sleep(0.5)
        self.report(records)

    def report(self, records: list[tuple[str, dict[str, Any]]]) -> None:
        """Every tuple is a reading as it was; and how much was written and read, beside either extreme."""
        raw = {row["id"]: row for row in self.readings}
        tuples: dict[str, list[int]] = {}  # topic -> the plan of each
        for topic, value in records:
            if "kind" not in value["_"]:
                columns = {name: item for name, item in value.items() if name not in ("_", "partition")}
                assert columns.items() <= raw[value["id"]].items()
                tuples.setdefault(topic, []).append(value["_"]["plan"])
        written = sum(map(len, tuples.values()))
        by_joiner = sum(len(tuples.get(t, ())) for t in {q.topic for q in self.queries if not q.subscriber})
        lives = [(q, q.version, q.present if q.gone else 2**62) for q in self.queries if q.subscriber]
        read = by_joiner + sum(
            first <= plan <= last for q, first, last in lives for plan in tuples.get(q.topic, ())
        )
        # Each in a topic of its own: what it selects while it is there is written once, and read once.
        alone, whole = 0, 2 * len(self.readings)
        with duckdb.connect() as connection:
            connection.register("air", pa.Table.from_pylist(self.readings, COLUMNS))
            for query in self.queries:
                ends = self.reached(query)
                for shard, since in query.since.items():
                    asked = f"FROM air WHERE shard = '{shard}' AND ts >= {since} AND ts < {ends[shard]}"
                    own, every = connection.execute(
                        f"SELECT count(*) FILTER ({query.filter}), count(*) {asked}"
                    ).fetchall()[0]
                    alone += 2 * own
                    whole += every if query.subscriber else 0
        topics = len({query.topic for query in self.queries})
        print(
            f"{len(self.queries)} queries, {self.kills} edges killed, {self.promised} rows promised. "
            f"Topics: {topics}, tuples written and read: {written} + {read}. "
            f"A topic for each query: {len(self.queries)}, {alone}. Everything in one: 1, {whole}."
        )
        assert topics < len(self.queries) / 2
        assert written + read < whole

    def reached(self, query: Query) -> dict[str, int]:
        """How far each shard had certainly come under plans with the query, in every partition."""
        if not query.gone:
            return dict.fromkeys(query.since, 2**62)
        out = {}
        for shard in query.since:
            parts = [self.said.get((query.topic, shard, partition), {}) for partition in range(2)]
            out[shard] = min(max((t for v, t in p.items() if v <= query.present), default=0) for p in parts)
        return out


def read(bootstrap: str, topics: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Every record of some topics, with its partition."""
    with TopicReader({"bootstrap.servers": bootstrap}, topics) as reader:
        return [
            (record.topic, orjson.loads(record.value) | {"partition": record.partition})
            for record in reader.snapshot()
            if record.value is not None
        ]


@pytest.mark.parametrize(
    "queries",
    [pytest.param(40), pytest.param(200, marks=[pytest.mark.soundness, pytest.mark.timeout(0)])],
)
def test_queries_come_and_go(fresh: str, start: Any, tmp_path: Any, queries: int) -> None:
    bench = Bench(cast(Any, SimpleNamespace(bootstrap=fresh)), tmp_path)
    try:
        fleet = Fleet(start(fresh).ready(), bench, SEED, queries)
        with fleet.clients():
            fleet.play()
        fleet.judge(fresh)
        assert fleet.kills > 1 and fleet.promised > 1000
    finally:
        bench.close()
