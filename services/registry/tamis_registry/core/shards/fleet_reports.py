"""Reports from the fleet. They are kept only in memory, because they are durable in topics of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation
from tamis.predicates.sketch import Sketch, merge
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.shards.rates import RECENT_SPAN, Rates

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
