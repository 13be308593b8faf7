"""Reports from the fleet. They are kept only in memory, because they are durable in topics of their own.

Acknowledgements give the rates of the counts of shards by decision. Some frontier records of the joiner wait
for its next batch: the record of a batch with alarms comes with the next batch (decision 6). If all sources
have ended or are silent, no batch follows: nobody would learn how far the joiner is. Any record that the
joiner reads makes a batch, so the registry writes the plan again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation
from tamis.predicates.sketch import Sketch, merge
from tamis.sharing.selectivity import StreamStatistics

# A rate is an average over one to two such spans, in microseconds of the edge's clock.
SPAN = 10_000_000
# What is told as recent happened within one to two of these.
RECENT_SPAN = 300_000_000
# Over less than this, single batches would decide on a rate.
LEAST_SPAN = 1_000_000
_SECOND = 1_000_000


@dataclass(frozen=True)
class _Counted:
    time: int
    tuples: Mapping[str, int]


@dataclass(frozen=True)
class Growth:
    """Tuples by decision that were added within some time, in microseconds."""

    span: int
    tuples: Mapping[str, int]


class Rates:
    """Counts of shards at three moments: two that are at least a span apart, and the last one."""

    def __init__(self, span: int = SPAN) -> None:
        self._span = span
        self._known: dict[str, tuple[_Counted, _Counted, _Counted]] = {}

    def hear(self, ack: Ack) -> None:
        """Take a shard's acknowledgement. One without counts, as of an older edge, forgets the shard."""
        if ack.tuples is None:
            self._known.pop(ack.shard, None)
            return
        new = _Counted(ack.time, ack.tuples)
        first, second, last = self._known.get(ack.shard, (new, new, new))
        if new.time < last.time or any(new.tuples.get(name, 0) < n for name, n in last.tuples.items()):
            # The edge has restarted, or the shard has moved.
            first = second = new
        elif new.time - second.time >= self._span:
            first, second = second, new
        self._known[ack.shard] = first, second, new

    def growth(self, shard: str) -> Growth | None:
        """The tuples that were added within the last one to two spans; None if they are not known."""
        if shard not in self._known:
            return None
        first, _, last = self._known[shard]
        added = {name: n - first.tuples.get(name, 0) for name, n in last.tuples.items()}
        return Growth(last.time - first.time, added)

    def of(self, shard: str) -> dict[str, float] | None:
        """Tuples a second by decision; None if they are not known yet."""
        found = self.growth(shard)
        if found is None or found.span < LEAST_SPAN:
            return None
        return {name: n * _SECOND / found.span for name, n in found.tuples.items()}


def total(each: Iterable[Mapping[str, float] | None]) -> dict[str, float] | None:
    """The sum by decision over those that are known; None if none is known.

    >>> total([{"late": 1.0}, None, {"late": 2.0, "dead": 0.5}])
    {'late': 3.0, 'dead': 0.5}
    """
    found: dict[str, float] = {}
    known = [one for one in each if one is not None]
    for one in known:
        for name, amount in one.items():
            found[name] = found.get(name, 0) + amount
    return found if known else None


def retained_share(tuples: Mapping[str, float] | None) -> float | None:
    """The share of usable tuples that edges published, late ones among them; None without tuples.

    >>> retained_share({"published": 1, "omitted": 2, "filtered": 4, "late": 1, "dead": 9})
    0.25
    """
    if tuples is None:
        return None
    published = tuples.get("published", 0) + tuples.get("late", 0)
    every = published + sum(tuples.get(name, 0) for name in ("omitted", "filtered", "aggregated"))
    return published / every if every else None


# Some batches of a busy joiner, microseconds: the next one nearly always comes by itself.
PATIENCE = 10_000_000


class NextReports:
    """The partitions whose last record announces another one."""

    def __init__(self) -> None:
        # By partition, the record and when it was first seen, microseconds; None after it was overdue.
        self._seen: dict[int, tuple[Frontier, int | None]] = {}

    def take_overdue(self, frontiers: Iterable[Frontier], now: int) -> bool:
        """True if a record has been announced for too long, once for each announcement."""
        before, self._seen = self._seen, {}
        overdue = False
        for one in frontiers:
            if one.next_waits:
                known, since = before.get(one.partition, (one, now))
                since = since if known is one else now
                if since is not None and now - since >= PATIENCE:
                    overdue, since = True, None
                self._seen[one.partition] = one, since
        return overdue


# Some heartbeats of an edge (one every 2 s): what restarts within it is no news.
AWAY_AFTER = 15_000_000
# Of a shard that are remembered: of what an older plan made a later activation is told, which is safe.
MOST_ACTIVATIONS = 1_000
# Shards and samples are remembered as long as the process runs, and every plan lists the shards. No fleet has
# so many; a writer with a fault, or with bad intent, can't make more.
MOST_SHARDS_OF_EDGE = 10_000
MOST_SHARDS_OF_STREAM = 50_000
MOST_SHARDS = 200_000
MOST_SAMPLES = 50_000
# No registry counts so far: a report that claims a greater version is ignored (`plans.history`).
GREATEST_PLAN = 2**52


@dataclass
class FleetReports:
    """The newest acknowledgement of each shard, the newest sign of life of each edge that has no shards, the
    newest frontier of each output partition, and the newest heartbeat of the joiner and of each worker of the
    alerts service.

    Times are microseconds. `floor`: the time at which the registry last began to listen. Silence of a shard
    before that proves nothing, because no shard could be heard. `heard`, `services_heard`, `edges`, `asked`
    and `activations` have only reports since the process started, but `activations` always has the newest of
    each shard.
    """

    floor: int = 0
    acks: dict[str, Ack] = field(default_factory=dict)
    edges: dict[str, Ack] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)  # lease -> when somebody last asked for it
    activations: dict[str, dict[int, int]] = field(default_factory=dict)  # shard -> plan -> activation
    frontiers: dict[int, Frontier] = field(default_factory=dict)
    heartbeats: dict[str, Heartbeat] = field(default_factory=dict)  # by the keys of their records
    services_heard: dict[str, int] = field(default_factory=dict)  # by the same keys
    sketches: dict[str, dict[str, bytes]] = field(default_factory=dict)  # stream -> shard -> sketch
    rates: Rates = field(default_factory=Rates)
    recent: Rates = field(default_factory=lambda: Rates(RECENT_SPAN))
    _statistics: dict[str, StreamStatistics] = field(default_factory=dict)
    _of_edge: Counter[str] = field(default_factory=Counter)
    _of_stream: Counter[str] = field(default_factory=Counter)
    # By stream, the last comparison of statistics in force with these, and its result.
    compared: dict[str, tuple[StreamStatistics | None, StreamStatistics, bool]] = field(default_factory=dict)

    def greatest_plan(self) -> int:
        """The greatest plan version that a shard or the joiner says it obeys; 0 without any."""
        reports: list[Ack | Frontier] = [*self.acks.values(), *self.frontiers.values()]
        return max((one.plan for one in reports if one.plan < GREATEST_PLAN), default=0)

    def takes_partials(self, shards: Iterable[str]) -> bool:
        """True if the edges of these shards and the joiner can exchange partial aggregates, as far as they
        have reported: releases before can't read plans with them.
        """
        joiner = self.heartbeats.get(JOINER)
        if joiner is None and self.frontiers:
            return False
        if joiner is not None and not joiner.partials:
            return False
        return all(ack.partials for ack in self._reports(shards))

    def _reports(self, shards: Iterable[str]) -> Iterator[Ack]:
        """The reports of these shards, and of the edges without shards."""
        yield from (self.acks[shard] for shard in shards if shard in self.acks)
        yield from self.edges.values()

    def takes_representatives(self, shards: Iterable[str]) -> bool:
        """True if the edges of these shards, as far as they have reported, and the joiner can read plans with
        representatives.
        """
        began = all(one.began for one in self.frontiers.values())
        return began and all(ack.representatives for ack in self._reports(shards))

    def joiner_began(self, partitions: int) -> int | None:
        """When the joiner last lost state, or began; None if not all of its partitions have said so."""
        began = [one.began for one in self.frontiers.values()]
        if len(began) < partitions or not all(began):
            return None
        joiner = self.heartbeats.get(JOINER)
        return max(*began, 0 if joiner is None else joiner.lost)

    def unheard(self, shard: str, now: int) -> int:
        """The time for which the shard has been silent while the registry listened."""
        return now - max(self.floor, self.heard.get(shard, self.floor))

    def last_heard(self, shard: str) -> int:
        """The time of the shard's last report, by its edge's clock if no registry was running then."""
        if shard in self.heard or shard not in self.acks:
            return self.heard.get(shard, self.floor)
        return min(self.floor, self.acks[shard].time)

    def silence(self, shard: str, now: int) -> int:
        """The time for which nothing new can have come from the shard, because its edge or its source is
        silent.
        """
        ack = self.acks.get(shard)
        return self.unheard(shard, now) + (ack.quiet if ack else 0)

    def away(self, shard: str, now: int) -> bool:
        """True if the shard is silent for longer than its heartbeat explains."""
        return self.unheard(shard, now) > AWAY_AFTER

    def present(self, shard: str, now: int) -> bool:
        """True if the shard was heard since the registry started, and recently."""
        return shard in self.heard and now - self.heard[shard] <= AWAY_AFTER

    def taken(self, topic: str, shard: str, gone: int, partitions: int) -> bool:
        """True if the joiner has taken the final record of a shard that version `gone` delists.

        This must be true in every partition. A topic that the joiner no longer reads has no tuples of the
        shard either.
        """
        found = [self.frontiers.get(partition) for partition in range(partitions)]
        return all(
            frontier is not None
            and frontier.plan >= gone
            and (topic not in frontier.topics or shard not in frontier.topics[topic].shards)
            for frontier in found
        )

    def follow(self, frontier: Frontier, now: int | None) -> None:
        """Take the joiner's frontiers of one output partition, which are a sign of life, too."""
        self.frontiers[frontier.partition] = frontier
        if now is not None:
            self.services_heard[JOINER] = now

    def take_heartbeat(self, key: str, heartbeat: Heartbeat, now: int | None) -> None:
        """Take the heartbeat of a service."""
        self.heartbeats[key] = heartbeat
        if now is not None:
            self.services_heard[key] = now

    def hear(self, ack: Ack) -> None:
        """Take a shard's acknowledgement. Raises ValueError for one that claims a shard of another stream,
        and for a new shard of an edge or of a stream that has too many.
        """
        known = self.acks.get(ack.shard)
        if known is not None and known.stream != ack.stream:
            raise ValueError(f"the shard is one of stream {known.stream!r:.100}, not of {ack.stream!r:.100}")
        if known is None or known.edge != ack.edge:  # shards of Kafka sources move between edges
            self._count(ack, known)
        self.acks[ack.shard] = ack
        self.rates.hear(ack)
        self.recent.hear(ack)
        if ack.state != "waiting":
            found = self.activations.setdefault(ack.shard, {})
            found.setdefault(ack.plan, ack.activation)
            if len(found) > MOST_ACTIVATIONS:
                del found[min(found)]

    def hear_edge(self, ack: Ack) -> None:
        """Take the sign of life of an edge that has no shards. Raises ValueError if there are too many."""
        if ack.edge not in self.edges and len(self.edges) >= MOST_SHARDS:
            raise ValueError(f"{MOST_SHARDS:,} edges have reported already")
        self.edges[ack.edge] = ack

    def _count(self, ack: Ack, before: Ack | None) -> None:
        """Count a new shard, or one that has moved to another edge."""
        if self._of_edge[ack.edge] >= MOST_SHARDS_OF_EDGE:
            raise ValueError(f"edge {ack.edge!r:.100} has {MOST_SHARDS_OF_EDGE:,} shards; no more are taken")
        if before is None:
            if self._of_stream[ack.stream] >= MOST_SHARDS_OF_STREAM:
                most = f"{MOST_SHARDS_OF_STREAM:,}"
                raise ValueError(f"stream {ack.stream!r:.100} has {most} shards; no more are taken")
            if len(self.acks) >= MOST_SHARDS:
                raise ValueError(f"there are {MOST_SHARDS:,} shards; no more are taken")
            self._of_stream[ack.stream] += 1
        else:
            self._of_edge[before.edge] -= 1
        self._of_edge[ack.edge] += 1

    def observe(self, told: Observation) -> None:
        """Take the sample of a shard's readings. Raises ValueError if there are too many."""
        known = self.sketches.get(told.stream, {})
        if told.shard not in known and sum(map(len, self.sketches.values())) >= MOST_SAMPLES:
            raise ValueError(f"there are samples of {MOST_SAMPLES:,} shards already; a new one isn't taken")
        self.sketches.setdefault(told.stream, {})[told.shard] = told.sketch
        self._statistics.pop(told.stream, None)

    def statistics(self, stream: str) -> StreamStatistics | None:
        """The statistics of a stream's readings on all shards; None if no shard has sent any."""
        if stream not in self._statistics and stream in self.sketches:
            whole = Sketch.from_bytes(merge(self.sketches[stream].values()))
            self._statistics[stream] = StreamStatistics(whole.count, whole.distributions())
        return self._statistics.get(stream)

    def activation(self, shard: str, version: int) -> tuple[int, int] | None:
        """The plan with which the shard began to use `version`, and the event time from which it uses it.

        Returns a later plan if the first one was forgotten; None if the shard doesn't use the version yet.
        """
        if self.obeys(shard, version) is None:
            return None
        return min(
            (found for found in self.activations.get(shard, {}).items() if found[0] >= version), default=None
        )

    def used(self, shard: str) -> int:
        """The plan version that the shard uses; 0 if it uses none."""
        ack = self.acks.get(shard)
        return ack.plan if ack and ack.state != "waiting" else 0

    def obeys(self, shard: str, version: int) -> Ack | None:
        """The shard's acknowledgement, if the shard uses that plan version or a later one."""
        ack = self.acks.get(shard)
        return ack if ack and ack.state != "waiting" and ack.plan >= version else None
