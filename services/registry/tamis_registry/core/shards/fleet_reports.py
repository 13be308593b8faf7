"""Reports from the fleet. They are kept only in memory, because they are durable in topics of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Ack, Frontier, Observation
from tamis.predicates.selectivity import Sketch, merge
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.shards.rates import RECENT_SPAN, Rates

# Some heartbeats of an edge (one every 2 s): what restarts within it is no news.
AWAY_AFTER = 15_000_000
# Of a shard that are remembered: of what an older plan made a later activation is told, which is safe.
MOST_ACTIVATIONS = 1_000
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
        """Take a shard's acknowledgement."""
        self.acks[ack.shard] = ack
        self.rates.hear(ack)
        self.recent.hear(ack)
        if ack.state != "waiting":
            found = self.activations.setdefault(ack.shard, {})
            found.setdefault(ack.plan, ack.activation)
            if len(found) > MOST_ACTIVATIONS:
                del found[min(found)]

    def observe(self, told: Observation) -> None:
        """Take the sample of a shard's readings."""
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
