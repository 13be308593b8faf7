"""Completeness of topics for NOT EXISTS: the event time from which on a topic has all tuples of a definition.

A shard publishes the tuples that a definition needs from its own activation on, which is an event time. A row
whose bound begins earlier can't be decided: the tuple that would exclude it may never have been published. So
such rows are not given. A shard names its activation in progress records. The first one under the
definition's version, or a later version, counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from tamis.messaging.records import END_OF_TIME
from tamis.plan.model import Plan
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME, ProgressRecord

# By definition ("alert@version") and topic, the activation of each shard.
Known = dict[str, dict[str, dict[str, int]]]


class Completeness:
    """The activations of shards for each definition with NOT EXISTS. `known`: the result of `to_json`."""

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
