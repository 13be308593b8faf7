"""What the fleet has told the registry: not durable here, since it is durable in topics of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.messaging.records import Ack, Frontier, Observation
from tamis.planning.traffic import Estimate
from tamis.predicates.selectivity import Sketch, merge

# Some heartbeats of an edge (one every 2 s): what restarts within it is no news.
AWAY_AFTER = 15_000_000
# Of a shard that are remembered: of what an older plan made a later activation is told, which is safe.
MOST_ACTIVATIONS = 1_000


@dataclass
class Seen:
    """Newest acknowledgement of each shard and newest frontier of each output partition. Times are
    microseconds.

    `floor` is when the registry last began to listen: silence from before it proves nothing about a
    shard, since nobody could have been heard. `heard`, `asked` and, but for the newest of a
    shard, `activations` have only what came since the process started.
    """

    floor: int = 0
    acks: dict[str, Ack] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)  # lease -> when somebody last asked for it
    activations: dict[str, dict[int, int]] = field(default_factory=dict)  # shard -> plan -> activation
    frontiers: dict[int, Frontier] = field(default_factory=dict)
    sketches: dict[str, dict[str, bytes]] = field(default_factory=dict)  # stream -> shard -> sketch
    _estimates: dict[str, Estimate] = field(default_factory=dict)

    def unheard(self, shard: str, now: int) -> int:
        """For how long the shard has said nothing while it could have been heard."""
        return now - max(self.floor, self.heard.get(shard, self.floor))

    def silence(self, shard: str, now: int) -> int:
        """For how long nothing new can have come of the shard: its edge says nothing, or says that its source
        doesn't.
        """
        ack = self.acks.get(shard)
        return self.unheard(shard, now) + (ack.quiet if ack else 0)

    def away(self, shard: str, now: int) -> bool:
        """Unheard for longer than its heartbeat explains."""
        return self.unheard(shard, now) > AWAY_AFTER

    def present(self, shard: str, now: int) -> bool:
        """Heard in this life of the registry, and lately."""
        return shard in self.heard and now - self.heard[shard] <= AWAY_AFTER

    def taken(self, topic: str, shard: str, gone: int, partitions: int) -> bool:
        """Whether the joiner has taken the final record of a shard that version `gone` delists, in every
        partition; a topic that it has let go holds nothing of the shard either.
        """
        found = [self.frontiers.get(partition) for partition in range(partitions)]
        return all(
            frontier is not None
            and frontier.plan >= gone
            and (topic not in frontier.topics or shard not in frontier.topics[topic].shards)
            for frontier in found
        )

    def hear(self, ack: Ack) -> None:
        """A shard's acknowledgement."""
        self.acks[ack.shard] = ack
        if ack.state != "waiting":
            found = self.activations.setdefault(ack.shard, {})
            found.setdefault(ack.plan, ack.activation)
            if len(found) > MOST_ACTIVATIONS:
                del found[min(found)]

    def observe(self, told: Observation) -> None:
        """What a shard's readings are like."""
        self.sketches.setdefault(told.stream, {})[told.shard] = told.sketch
        self._estimates.pop(told.stream, None)

    def estimate(self, stream: str) -> Estimate | None:
        """What a stream's readings are like, of all shards; None where none has told of its own."""
        if stream not in self._estimates and stream in self.sketches:
            whole = Sketch.from_bytes(merge(self.sketches[stream].values()))
            self._estimates[stream] = Estimate(whole.count, whole.distributions())
        return self._estimates.get(stream)

    def activation(self, shard: str, version: int) -> tuple[int, int] | None:
        """The plan by which the shard came to obey `version`, and from which event time; a later one where
        the first was forgotten.
        """
        if self.obeys(shard, version) is None:
            return None
        return min(
            (found for found in self.activations.get(shard, {}).items() if found[0] >= version), default=None
        )

    def obeys(self, shard: str, version: int) -> Ack | None:
        """The shard's acknowledgement, if it obeys that plan version or a later one."""
        ack = self.acks.get(shard)
        return ack if ack and ack.state != "waiting" and ack.plan >= version else None
