"""Shards and frontiers of the topics in one output partition: `protocol.md`, rules 9 and 12.

The protocol's model has one topic for each stream. In the fleet, each topic of a stream has its own progress
records, and therefore its own frontier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.messaging.records import END_OF_TIME, NOTHING_LEFT
from tamis.plan.model import Plan
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME, ProgressRecord

# By definition ("alert@version") and topic, the activation of each shard.
Known = dict[str, dict[str, dict[str, int]]]


@dataclass
class Listing:
    """A shard that a plan lists for a topic. `version` is the version of that plan; `listed` is false once
    the shard has left. `progress` is the least event time that it can still publish, `obeyed` the plan
    version under which it reported that.
    """

    version: int
    listed: bool = True
    progress: int = BEGINNING_OF_TIME
    obeyed: int = 0


class Frontiers:
    """The frontier of each topic: the minimum over its listed shards, which never falls."""

    def __init__(self) -> None:
        self._shards: dict[str, dict[str, Listing]] = {}
        self._reached: dict[str, int] = {}
        self._greatest: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._stalls: dict[str, int] = {}  # by topic, its stream's `max_stall`
        self._counted: set[str] = set()  # topics that standing queries read

    def of(self, topic: str) -> int:
        """The frontier of `topic`: the least event time of tuples that can still arrive."""
        return self._reached.get(topic, BEGINNING_OF_TIME)

    def reached(self) -> dict[str, int]:
        """The frontier of each topic that has one."""
        return dict(self._reached)

    def listed(self, topic: str) -> tuple[str, ...]:
        """The shards of `topic` that have not left."""
        return tuple(name for name, shard in self._shards.get(topic, {}).items() if shard.listed)

    def void(self, topic: str) -> bool:
        """True if no shard is listed for the stream of `topic`."""
        return not self.listed(topic)

    def unbegun(self, topic: str) -> bool:
        """True if no shard has ever been listed for `topic`. A shard only leaves by a final record, which
        `left` knows.
        """
        return self.void(topic) and topic not in self._left

    def obeyed(self, topic: str) -> int | None:
        """The least plan version under which the shards of `topic` have last reported progress. All of their
        tuples of older plans have arrived. None if no shard is listed.
        """
        return min(
            (shard.obeyed for shard in self._shards.get(topic, {}).values() if shard.listed), default=None
        )

    def left(self, topic: str) -> int:
        """The greatest event time that tuples of shards that have left `topic` may have."""
        return self._left.get(topic, NOTHING_LEFT)

    def greatest(self, topic: str, shard: str) -> int:
        """The greatest event time that a shard is known to have reached, or that a tuple of its topic has."""
        listing = self._shards.get(topic, {}).get(shard)
        progress = BEGINNING_OF_TIME if listing is None else listing.progress
        return max(progress, self._greatest.get(topic, NOTHING_LEFT))

    def note_tuples(self, topic: str, event_time: int) -> None:
        """Note the greatest event time of tuples that have arrived."""
        self._greatest[topic] = max(self._greatest.get(topic, BEGINNING_OF_TIME), event_time)

    def obey(self, plan: Plan) -> None:
        """List the shards that are new in the plan. A shard leaves by a final record, never by a plan.

        Topics that the plan doesn't have are removed. Shards that have left and that the plan doesn't list
        are removed, too: a later plan lists them under a greater version.
        """
        self._read_stalls(plan)
        named = self._stalls.keys()
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
                    if plan.shard_streams.get(shard) != stream.shards_of:
                        continue
                    if shard not in shards or version > shards[shard].version:
                        shards[shard] = Listing(version)

    def _read_stalls(self, plan: Plan) -> None:
        self._stalls = {topic.name: stream.max_stall for stream in plan.streams for topic in stream.topics}
        self._counted = {source.topic for query in plan.standing for source in query.inputs}

    def take(self, topic: str, record: ProgressRecord, partners: Mapping[str, frozenset[str]]) -> None:
        """Take a progress or a final record whose version is not above the plan's. `partners` as in
        `advance`.
        """
        shard = self._shards.get(topic, {}).get(record.shard)
        if shard is None or not shard.listed or record.version < shard.version:
            return
        if record.kind == "progress":
            shard.progress = max(shard.progress, record.event_time)
            shard.obeyed = max(shard.obeyed, record.version)
        else:
            # The frontier must include what the shard has reported before it leaves.
            self.advance(partners)
            shard.listed = False
            self._left[topic] = self._greatest.get(topic, NOTHING_LEFT)

    def advance(self, partners: Mapping[str, frozenset[str]]) -> None:
        """Raise the frontiers to what the shards have reported. `partners` has, by topic, the topics that
        it is joined with.

        A topic whose shards have all left follows the furthest of its partners that still continue. It
        doesn't follow a partner to the end of time, because it would then be closed for its other partners,
        too. A topic that has never had a shard follows at a distance, because its first shard may come later
        and with older tuples than its partners' shards.
        """
        for topic, shards in self._shards.items():
            progress = [shard.progress for shard in shards.values() if shard.listed]
            if progress:
                self._raise(topic, min(progress))
        moved = True
        while moved:
            moved = False
            for topic in self._shards:
                others = [partner for partner in partners.get(topic, ()) if partner != topic]
                # The last rows of a standing query come when all of its streams have ended.
                ended = topic in self._counted and all(self.of(partner) == END_OF_TIME for partner in others)
                if self.unbegun(topic) and not ended:
                    found = [self._at_distance(partner, self._stalls[topic]) for partner in others]
                    moved |= self._raise(topic, max(found, default=BEGINNING_OF_TIME))
                elif self.void(topic):
                    reached = [self.of(partner) for partner in others]
                    going = [frontier for frontier in reached if frontier < END_OF_TIME] or reached
                    moved |= self._raise(topic, max(going, default=BEGINNING_OF_TIME))

    def _at_distance(self, partner: str, max_stall: int) -> int:
        """The frontier of `partner`, but at most `max_stall` behind the newest of its times.

        The newest tuple counts besides the frontier: the tuples that a partner keeps then lie in a span that
        doesn't grow with the partner's own delay. The end of time is no time from which to measure.
        """
        reached = self.of(partner)
        newest = self._greatest.get(partner, BEGINNING_OF_TIME)
        if reached < END_OF_TIME:
            newest = max(newest, reached)
        return min(reached, newest - max_stall)

    def _raise(self, topic: str, frontier: int) -> bool:
        if frontier <= self.of(topic):
            return False
        self._reached[topic] = frontier
        return True

    def to_json(self) -> dict[str, Any]:
        """All of the state, for `from_json`."""
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
    def from_json(document: Mapping[str, Any], plan: Plan | None) -> Frontiers:
        """The frontiers that `to_json` described, under the plan that they obeyed."""
        self = Frontiers()
        if plan is not None:
            self._read_stalls(plan)
        self._reached = dict(document["reached"])
        self._greatest = dict(document["greatest"])
        self._left = dict(document["left"])
        self._shards = {
            topic: {name: Listing(*values) for name, values in shards.items()}
            for topic, shards in document["shards"].items()
        }
        return self


class Completeness:
    """The activations of shards for each definition with NOT EXISTS. `known`: the result of `to_json`.

    A topic is complete for a definition from the event time on from which it has all tuples of the
    definition. A shard publishes these from its own activation on, which is an event time. A row whose bound
    begins earlier can't be decided: the tuple that would exclude it may never have been published. So such
    rows are not given. A shard names its activation in progress records. The first one under the definition's
    version, or a later version, counts.
    """

    def __init__(self, known: Known | None = None) -> None:
        self._known: Known = known or {}
        self._versions: dict[str, int] = {}

    def obey(self, plan: Plan) -> None:
        """Use the definitions of a plan."""
        self._versions = {}
        before, self._known = self._known, {}
        for definition in plan.definitions:
            if definition.absences:
                name = f"{definition.alert}@{definition.version}"
                absent = {alias for absence in definition.absences for alias in absence.aliases}
                topics = {source.topic for source in definition.inputs if source.alias in absent}
                self._versions[name] = definition.version
                self._known[name] = {topic: before.get(name, {}).get(topic, {}) for topic in topics}

    def take(self, topic: str, record: ProgressRecord, frontiers: Frontiers) -> None:
        """Take a progress or final record, before `frontiers` take it.

        A shard that leaves without having begun to serve a definition never said what it had read by then.
        The greatest event time that it is known to have reached takes the place of its activation.
        """
        for name, version in self._versions.items():
            shards = self._known[name].get(topic)
            if shards is None or record.shard in shards or record.shard not in frontiers.listed(topic):
                continue
            if record.kind == "final":
                shards[record.shard] = frontiers.greatest(topic, record.shard) + 1
            elif record.version >= version:
                shards[record.shard] = record.activation

    def of(self, name: str, topic: str, frontiers: Frontiers) -> int:
        """The event time from which on a topic is complete for a definition; the end of time as long as a
        listed shard has not begun to serve it.
        """
        shards: Mapping[str, int] = self._known.get(name, {}).get(topic, {})
        if any(shard not in shards for shard in frontiers.listed(topic)):
            return END_OF_TIME
        return max(shards.values(), default=BEGINNING_OF_TIME)

    def to_json(self) -> Known:
        """The activations, for the constructor."""
        return self._known
