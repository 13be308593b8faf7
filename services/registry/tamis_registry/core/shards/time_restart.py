"""Restart of the time of a stream whose event time has run ahead of the clock.

An edge may have accepted a reading from the future: an older release without a default of `max_ahead`, or an
edge whose clock was wrong. The reading moves its shard's watermark and commit, and the joiner's frontiers.
These never fall, so all later readings are late. The registry then gives the stream new topics, which the
joiner doesn't know yet. The stream's shards forget their watermarks when they use that plan
(`StreamPlan.anew`). All queries that read the stream begin as new definitions, as after PAUSE and RESUME.

From then on, readings are joined as usual. Alarms of a reading before and a reading after the restart are
lost, as were all alarms of the stream before.
"""

from __future__ import annotations

from dataclasses import replace

from tamis.declarations.definitions import MAX_AHEAD
from tamis.declarations.streams import StreamDef
from tamis.errors import TamisError
from tamis.messaging.records import END_OF_TIME, Ack
from tamis.query.model import AlertDef, DerivedDef
from tamis.sharing.topic_choice import TopicId
from tamis_registry.core.leases import understood
from tamis_registry.core.plan.shared_topics import all_topics, derived_topic, forget_numbers
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import State, StreamTopics


def restart_times(draft: State, seen: FleetReports, now: int, n: int) -> tuple[str, ...]:
    """Restart the time of the streams that have run ahead, in version `n`; returns their names."""
    streams = [one.definition for one in draft.of_kind("stream") if isinstance(one.definition, StreamDef)]
    found = tuple(stream.name for stream in streams if _ahead(stream, draft, seen, now))
    for name in found:
        _begin(name, draft, n)
    return found


def _ahead(stream: StreamDef, draft: State, seen: FleetReports, now: int) -> bool:
    """True if the stream's time is further ahead of the clock than any declaration allows.

    There are two cases: a shard that follows the clock is ahead; or all shards follow it and a frontier is
    ahead, left by a shard that is gone or by a partner stream.
    """
    if stream.time is None or stream.max_ahead is None:
        return False
    begun = draft.topics.get(stream.name, StreamTopics()).anew
    listed = draft.listed([stream.name])
    acks = [seen.obeys(shard.name, max(begun, shard.since or 0)) for shard in listed]
    # Two clocks have to agree: neither a registry nor an edge whose clock is behind may begin streams anew.
    allowed = max(stream.max_ahead, MAX_AHEAD)
    if any(ack and _reached(ack) > max(now, ack.time) + allowed for ack in acks):
        return True
    told = [ack for ack in acks if ack is not None and ack.reached is not None]
    if not told or len(told) < len(acks):
        return False
    latest = max(now, *(ack.time for ack in told)) + allowed
    derived = [
        one
        for one in draft.of_kind("derived")
        if isinstance(one.definition, DerivedDef) and one.definition.query.sources[0].stream == stream.name
    ]
    names = [*all_topics(draft, stream.name), *(derived_topic(draft, one.name) for one in derived)]
    for frontier in seen.frontiers.values():
        for topic in [frontier.topics[name] for name in names if name in frontier.topics]:
            passed = topic.frontier is not None and latest < topic.frontier < END_OF_TIME
            if frontier.plan >= begun and (passed or topic.left > latest):
                return True
    return False


def _reached(ack: Ack) -> int:
    return ack.time if ack.reached is None else ack.reached


def _begin(name: str, draft: State, n: int) -> None:
    forget_numbers(draft, name)
    streams = {name, *draft.watched(name)}
    for one in streams:
        if one == name or one in draft.topics:
            draft.topics[one] = replace(draft.topics.get(one, StreamTopics()), anew=n)
    for key, stored in list(draft.statements.items()):
        # What is refused reads nothing, and comes back as it was. Backfill streams have a time of their own.
        alert = stored.alert
        if alert is not None and alert.options.from_ is None and streams & _read(alert):
            topics = _elsewhere(stored.topics, alert, streams)
            draft.statements[key] = replace(stored, version=n, topics=topics)
    for old, retiring in list(draft.retiring.items()):
        if retiring.definition is None or streams & _read(retiring.definition):
            del draft.retiring[old]
    for lease in list(draft.leases.values()):
        if lease.subscription is not None and lease.subscription.stream == name:
            try:
                draft.leases[lease.id] = understood(replace(lease, version=n, topics={}), draft.catalog)
            except TamisError:
                del draft.leases[lease.id]


def _read(alert: AlertDef) -> set[str]:
    return {source.stream for source in alert.query.sources}


def _elsewhere(topics: dict[str, TopicId], alert: AlertDef, names: set[str]) -> dict[str, TopicId]:
    """The places of an alert's other sources; those of a standing query are known by their streams."""
    of = {source.alias: source.stream for source in alert.query.sources}
    return {alias: topic for alias, topic in topics.items() if of.get(alias, alias) not in names}
