"""The fleet: edges, sources, what of shards is durable, the topics in Kafka, plans and joiners."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tests.model.cuts.joiner import Joiner, Key
from tests.model.cuts.run import Run
from tests.model.cuts.source import Source
from tests.model.cuts.terms import INF, ChainCommit, Commit, Plan, Query, Reading, Record, Shard

Place = tuple[int, int]  # topic and partition


@dataclass(eq=False)
class Edge:
    """A machine with a spool. `dead`: it never comes back. `zombies`: runs that have lost their shard and
    don't know it. `plans_read`: how many plans it has read.
    """

    name: str
    up: bool = True
    dead: bool = False
    connected: bool = True
    plan: Plan | None = None
    plans_read: int = 0
    runs: dict[Shard, Run] = field(default_factory=dict)
    zombies: list[Run] = field(default_factory=list)
    spool: defaultdict[Shard, list[tuple[int, Record]]] = field(default_factory=lambda: defaultdict(list))


class LateCommit(NamedTuple):
    """A commit whose answer was lost. It may arrive later."""

    shard: Shard
    generation: int
    commit: Commit
    began: list[int]


class Fleet:
    """State of everything. `calm`: nothing fails any more. `delay`: of the watermark. `two_clusters`: sources
    can be reached while the output topics can't. `raw_first`: topics begin with raw tuples, change often, and
    sources are slow, so that edges reach their ends.
    """

    def __init__(self, seed: int, off: Collection[str] = (), *, trace: bool = False) -> None:
        r = self.r = random.Random(seed)
        self.off = frozenset(off)
        self.trace: list[str] | None = [] if trace else None
        self.seen: Counter[str] = Counter()
        self.calm = False
        self.two_clusters, self.raw_first = r.random() < 0.4, r.random() < 0.35
        self.partitions, self.topics = r.choice((1, 1, 2)), r.choice((1, 2, 2))
        self.delay, self.idle_timeout = r.randint(0, 4), r.choice((None, None, 0, 3))
        self.future, self.clock = seed % 5 == 2, 0.0
        self.edges = [Edge(f"e{i}") for i in range(r.choice((2, 2, 3)))]
        movable = [r.random() < 0.65 for _ in range(r.choice((1, 2, 2, 3)))]
        self.shards = [Shard(f"s{i}{'k' if moves else 'e'}", moves) for i, moves in enumerate(movable)]
        self.owner = {shard: r.choice(self.edges) for shard in self.shards}
        self.sources = {
            shard: Source(r, shard, self.topics, self.delay, future=self.future) for shard in self.shards
        }
        self._begin_kafka()
        self._begin_plans()
        self._begin_judging()

    def _begin_kafka(self) -> None:
        """The topics, and all that edges commit and joiners read."""
        places = [(topic, p) for topic in range(self.topics) for p in range(self.partitions)]
        self.generations = dict.fromkeys(self.shards, 0)
        self.commits = dict.fromkeys(self.shards, Commit())
        self.late: list[LateCommit] = []
        self.logs: dict[Place, list[Record]] = {place: [] for place in places}
        # What dead runs sent, in order: it may arrive much later.
        self.in_flight: list[list[tuple[int, Record]]] = []
        self.joiners = {place: Joiner(self.off, place[1]) for place in places}
        self.plans_between = self.r.random() < 0.5
        # A batch that was interrupted is repeated: plans, records, and the seed of their order.
        self.batches: dict[Place, tuple[int, int, float]] = {}
        self.rows: dict[tuple[Place, Key], dict[tuple[Shard, int], int]] = {}
        self.changed_rows: list[Key] = []

    def _begin_plans(self) -> None:
        r = self.r
        self.every_query: list[Query] = []
        self.dropped: set[Query] = set()
        self.gone: list[Shard] = []
        self.pace, self.changes = r.choice((0.1, 0.4)), 0
        queries = {
            self.new_query(f"q{topic}{i}", topic, 1): INF
            for topic in range(self.topics)
            for i in range(r.choice((1, 1, 2)))
        }
        share = 0.1 if self.raw_first else 0.7
        partial = frozenset(topic for topic in range(self.topics) if r.random() < share)
        self.plans = [Plan(1, queries, 0, dict.fromkeys(self.shards, 1), partial)]

    def _begin_judging(self) -> None:
        """Observations that only the judge uses.

        `history`: durable commits. `began`: the reading from which a shard works under a version, for each
        topic. `sent`: the versions under which Kafka has a reading of a topic. `deleted`: those when the
        source deleted it, and `held`: the run that had it then. `before_raw`: the progress that was in the
        partition before a raw tuple of a version. `progress`: the greatest in a partition, for each version,
        and whether it followed raw tuples.
        """
        self.history: dict[Shard, list[Commit]] = {shard: [] for shard in self.shards}
        self.began: dict[tuple[int, Shard, int], int] = {}
        self.sent: defaultdict[tuple[int, Shard, int], set[int]] = defaultdict(set)
        self.fences: Counter[tuple[Place, Shard]] = Counter()
        self.deleted: dict[tuple[int, Shard, int], frozenset[int]] = {}
        self.held: dict[tuple[int, Shard, int], Run] = {}
        self.before_raw: dict[tuple[tuple[int, Shard, int], int], float] = {}
        self.progress: defaultdict[tuple[Place, Shard], dict[tuple[int, bool], float]] = defaultdict(dict)

    def on(self, rule: str) -> bool:
        return rule not in self.off

    def say(self, *words: object) -> None:
        if self.trace is not None:
            self.trace.append(" ".join(map(str, words)))

    def new_query(self, name: str, topic: int, version: int) -> Query:
        r = self.r
        query = Query(name, topic, version, r.choice((4, 6, 10)), r.choice((1, 1, 2, 3)), r.choice((0, 0, 1)))
        self.every_query.append(query)
        return query

    def add_plan(self, plan: Plan) -> None:
        self.plans.append(plan)
        self.seen["plans"] += 1
        self.say("plan", plan)

    # ---- Kafka

    def reaches(self, edge: Edge, shard: Shard) -> bool:
        """The edge reaches the source of the shard."""
        return edge.connected or not shard.movable or self.two_clusters

    def append(self, partition: int, record: Record) -> None:
        """A record arrives in its topic."""
        place = record.topic, partition
        self.logs[place].append(record)
        fence = self.fences[place, record.shard] = max(self.fences[place, record.shard], record.fence)
        # The joiner drops raw tuples behind a fence, so Kafka doesn't really have them.
        for number in record.readings if record.kind == "cut" or record.fence == fence else ():
            key = record.topic, record.shard, number
            if record.kind == "raw" and record.version not in self.sent[key]:
                before = self.progress[place, record.shard].values()
                self.before_raw[key, record.version] = max(before, default=-INF)
            self.sent[key].add(record.version)
        if record.kind == "progress":
            told, sender = self.progress[place, record.shard], (record.version, record.raw)
            told[sender] = max(told.get(sender, -INF), record.progress)

    def commit(self, run: Run, commit: Commit) -> Literal["stored", "refused", "unanswered"]:
        """A run's commit arrives, unless its answer is lost: then it is stored now, later or never."""
        shard = run.shard
        mine = run.generation == self.generations[shard]
        if not mine and self.on("fenced"):
            self.stop(run)
            return "refused"
        if shard.movable and not self.calm and self.r.random() < 0.1:
            self.seen["unanswered commits"] += 1
            late = LateCommit(shard, run.generation, commit, run.began)
            if self.r.random() < 0.4:
                self.store(late)
            else:
                self.late.append(late)
            if self.on("unknown_ends"):
                self.generations[shard] += mine
                self.stop(run)
            return "unanswered"
        self.store(LateCommit(shard, run.generation, commit, run.began))
        return "stored"

    def store(self, late: LateCommit) -> None:
        """A commit becomes durable."""
        shard, commit = late.shard, late.commit
        self.commits[shard] = commit
        self.history[shard].append(commit)
        for topic, number in enumerate(late.began):
            self.began.setdefault((topic, shard, commit.version), number)
        self.seen["chains after raw tuples"] += sum(
            isinstance(part, ChainCommit) and part.since == commit.done > 0 for _, part in commit.topics
        )
        self.say(shard.name, "commit", commit)

    # ---- runs

    def runs(self) -> list[Run]:
        """All of edges that are up, zombies too."""
        return [run for edge in self.edges if edge.up for run in [*edge.runs.values(), *edge.zombies]]

    def stop(self, run: Run) -> None:
        """A run ends."""
        self.leave_in_flight(run)
        edge = run.edge
        edge.runs = {shard: other for shard, other in edge.runs.items() if other is not run}
        edge.zombies = [other for other in edge.zombies if other is not run]

    def leave_in_flight(self, run: Run) -> None:
        """Records that a run sent before it died may come to Kafka much later, in its order."""
        if run.edge.connected and not self.calm and self.r.random() < 0.3:
            sent = (run.edge.spool[run.shard] + run.out)[: self.r.randint(1, 4)]
            if sent:
                self.in_flight.append(sent)

    def note_deleted(self, deleted: list[Reading]) -> None:
        """Readings were deleted. Runs may have them."""
        for reading in deleted:
            for topic in range(self.topics):
                key = topic, reading.shard, reading.number
                self.deleted[key] = frozenset(self.sent[key])
                run = self.owner[reading.shard].runs.get(reading.shard)
                if run is not None and run.has(topic, reading):
                    self.held[key] = run
