"""Shards and frontiers of one output partition: `protocol.md`, rules 9 and 12.

In the design's model a stream has one topic; here each topic of a stream has its own records of progress, and
so its own frontier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.messaging.records import END_OF_TIME, NOTHING_LEFT
from tamis.planning.plan import Plan
from tamis_joiner.core.decode import NOTHING_YET, Mark


@dataclass
class Listing:
    """One shard on one topic. `version` is the plan version that lists it, `listed` false once it has left;
    `progress` is the least event time that it can still publish, `obeyed` the plan version under which it
    said so.
    """

    version: int
    listed: bool = True
    progress: int = NOTHING_YET
    obeyed: int = 0


class Frontiers:
    """The frontier of each topic: the minimum over its listed shards, which never falls."""

    def __init__(self) -> None:
        self._shards: dict[str, dict[str, Listing]] = {}
        self._reached: dict[str, int] = {}
        self._greatest: dict[str, int] = {}
        self._left: dict[str, int] = {}

    def of(self, topic: str) -> int:
        """The least event time that can still come on `topic`."""
        return self._reached.get(topic, NOTHING_YET)

    def listed(self, topic: str) -> tuple[str, ...]:
        """The shards of `topic` that have not left."""
        return tuple(name for name, shard in self._shards.get(topic, {}).items() if shard.listed)

    def void(self, topic: str) -> bool:
        """Whether no shard is listed for the stream of `topic`."""
        return not self.listed(topic)

    def obeyed(self, topic: str) -> int | None:
        """The least plan version under which a shard of `topic` has last told its progress: all of its tuples
        of older plans are there. None without shards.
        """
        return min(
            (shard.obeyed for shard in self._shards.get(topic, {}).values() if shard.listed), default=None
        )

    def left(self, topic: str) -> int:
        """No tuple of a shard that has left `topic` is later than this event time."""
        return self._left.get(topic, NOTHING_LEFT)

    def saw(self, topic: str, event_time: int) -> None:
        """Note the greatest event time of tuples that are taken."""
        self._greatest[topic] = max(self._greatest.get(topic, NOTHING_YET), event_time)

    def obey(self, plan: Plan) -> None:
        """List what the plan lists anew; a shard leaves by a final record, never by a plan.

        What is forgotten can't be asked for again: topics that the plan doesn't have, and shards that have
        left and that the plan doesn't list, since a later one lists them under a greater version.
        """
        named = {topic.name for stream in plan.streams for topic in stream.topics}
        for table in (self._shards, self._reached, self._greatest, self._left):
            for name in table.keys() - named:
                del table[name]
        for shards in self._shards.values():
            for shard in [name for name, s in shards.items() if not s.listed and name not in plan.since]:
                del shards[shard]
        for stream in plan.streams:
            for topic in stream.topics:
                shards = self._shards.setdefault(topic.name, {})
                for shard, version in plan.since.items():
                    if plan.shard_streams.get(shard) != stream.name:
                        continue
                    if shard not in shards or version > shards[shard].version:
                        shards[shard] = Listing(version)

    def take(self, topic: str, mark: Mark, partners: Mapping[str, frozenset[str]]) -> None:
        """Take a progress or a final record that is not above the plan's version."""
        shard = self._shards.get(topic, {}).get(mark.shard)
        if shard is None or not shard.listed or mark.version < shard.version:
            return
        if mark.kind == "progress":
            shard.progress = max(shard.progress, mark.event_time)
            shard.obeyed = max(shard.obeyed, mark.version)
        else:
            # What the shard reported until now must count before it leaves.
            self.advance(partners)
            shard.listed = False
            self._left[topic] = self._greatest.get(topic, NOTHING_LEFT)

    def advance(self, partners: Mapping[str, frozenset[str]]) -> None:
        """Raise the frontiers to what the shards have reported. `partners` are the topics that each topic is
        joined with.

        A topic without shards follows its partners: the furthest of those that go on, since the end of a
        partner that has ended for good would shut the topic to all others too.
        """
        for topic, shards in self._shards.items():
            progress = [shard.progress for shard in shards.values() if shard.listed]
            if progress:
                self._raise(topic, min(progress))
        moved = True
        while moved:
            moved = False
            for topic in self._shards:
                if self.void(topic):
                    others = [self.of(partner) for partner in partners.get(topic, ()) if partner != topic]
                    going = [frontier for frontier in others if frontier < END_OF_TIME] or others
                    moved |= self._raise(topic, max(going, default=NOTHING_YET))

    def _raise(self, topic: str, frontier: int) -> bool:
        if frontier <= self.of(topic):
            return False
        self._reached[topic] = frontier
        return True

    def to_json(self) -> dict[str, Any]:
        """Everything, for `from_json`."""
        return {
            "reached": self._reached,
            "greatest": self._greatest,
            "left": self._left,
            "shards": {
                topic: {name: [s.version, s.listed, s.progress, s.obeyed] for name, s in shards.items()}
                for topic, shards in self._shards.items()
            },
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Frontiers:
        """The frontiers that `to_json` wrote down."""
        self = Frontiers()
        self._reached = dict(document["reached"])
        self._greatest = dict(document["greatest"])
        self._left = dict(document["left"])
        self._shards = {
            topic: {name: Listing(*values) for name, values in shards.items()}
            for topic, shards in document["shards"].items()
        }
        return self


def partners(plan: Plan | None) -> dict[str, frozenset[str]]:
    """The topics that each topic is joined with by some query of the plan, those with time."""
    found: dict[str, set[str]] = {}
    for definition in plan.queries if plan else ():
        topics = {source.topic for source in definition.inputs if source.time}
        for topic in topics:
            found.setdefault(topic, set()).update(topics)
    return {topic: frozenset(others - {topic}) for topic, others in found.items()}
