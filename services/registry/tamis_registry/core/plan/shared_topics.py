"""Shared topics in the state of the registry: their numbers, and the records that end a shard in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tamis.messaging.topics import number_of, outside_topic, stream_topic
from tamis.plan.model import Plan
from tamis.planning.derived_topics import DerivedNumber, may_serve_alerts
from tamis.planning.incremental import Built
from tamis.query.model import DerivedDef
from tamis.sharing.topic_choice import TopicId, TopicKey
from tamis_registry.core.plan.change import Final
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import LEASE, State, Stored, StreamTopics

# The topics of a dropped stream of the same name: a partition key that no stream can have.
_SPENT = ("", "")
_NONE = StreamTopics()


def numbers(state: State) -> dict[TopicKey, tuple[int, ...]]:
    """All topics by stream and key, and for each stream the greatest topic number that was ever used."""
    known: dict[TopicKey, list[int]] = {}
    for stream, topics in state.topics.items():
        for key, number in topics.numbers:
            known.setdefault((stream, key), []).append(number)
        if topics.next > 1:
            known[stream, _SPENT] = [topics.next - 1]
    return {key: tuple(found) for key, found in known.items()}


def remember(draft: State, built: Built) -> None:
    """Store the numbers of a plan's new topics, and the topics of each reader."""
    fresh = [
        (number, stream, key)
        for (stream, key), used in built.topic_numbers.items()
        if key != _SPENT
        for number in used
        if number >= draft.topics.get(stream, _NONE).next
    ]
    for number, stream, key in sorted(fresh):
        known = draft.topics.get(stream, _NONE)
        hidden = known.outside | built.outside.get(stream, frozenset()) & {number}
        used = *known.numbers, (key, number)
        base = draft.base(stream)
        draft.topics[stream] = replace(
            known, next=number + 1, numbers=used, outside=hidden, base=base if base != stream else None
        )
    for planned in built.plan.streams:
        known = draft.topics.get(planned.name, _NONE)
        with_partials = {number_of(topic.name) for topic in planned.topics if topic.partials is not None}
        if not with_partials <= known.aggregated:
            draft.topics[planned.name] = replace(known, aggregated=known.aggregated | with_partials)
        elif known.aggregated and not with_partials:
            # None of them is used again, so nothing has to be known about them.
            used = tuple(one for one in known.numbers if one[1] not in known.aggregated)
            draft.topics[planned.name] = replace(known, numbers=used, aggregated=frozenset())
    for reader, found in built.assigned.items():
        _place(draft, reader, dict(found))


def aggregated(state: State) -> frozenset[str]:
    """The names of all topics that have or had partial aggregates."""
    return frozenset(
        topics.name(stream, number) for stream, topics in state.topics.items() for number in topics.aggregated
    )


def _place(draft: State, reader: str, found: dict[str, TopicId]) -> None:
    if reader.startswith(LEASE):
        lease = draft.leases[reader.removeprefix(LEASE)]
        numbers = {alias: topic for alias, topic in found.items() if isinstance(topic, int)}
        if numbers != lease.topics:
            draft.leases[lease.id] = replace(lease, topics=numbers)
    elif (old := draft.retiring.get(reader)) is not None:
        if found != old.topics:
            draft.retiring[reader] = replace(old, topics=found)
    else:
        key = f"alert/{reader.rpartition('@')[0]}"
        if found != draft.statements[key].topics:
            draft.statements[key] = replace(draft.statements[key], topics=found)


def forget_numbers(draft: State, stream: str) -> None:
    """Retire the topics of a dropped stream, and of its watched streams: a new stream of the same name may
    have other columns.
    """
    for name in (stream, *draft.watched(stream)):
        topics = draft.topics.get(name)
        if topics:
            draft.topics[name] = replace(topics, numbers=(), aggregated=frozenset())


def all_topics(state: State, stream: str) -> list[str]:
    """The names of all topics that the raw stream and its watched streams ever had."""
    known = [(name, state.topics.get(name, _NONE)) for name in (stream, *state.watched(stream))]
    return [topics.name(name, number) for name, topics in known for number in range(1, topics.next)]


def new_derived(draft: State, made: DerivedDef, order: int, version: int) -> Stored:
    """The statement of a new derived stream, with a number for its topic if the joiner reads it."""
    topics: dict[str, TopicId] = {}
    if may_serve_alerts(made, draft.catalog):
        known = draft.topics.get(made.name, _NONE)
        draft.topics[made.name] = replace(known, next=known.next + 1)
        topics = {"": known.next}
    return Stored("derived", made.name, made.sql, order, version, topics=topics, definition=made)


def derived_numbers(state: State) -> dict[str, DerivedNumber]:
    """The numbers of the topics of derived streams that the joiner reads, by stream.

    A topic from before the restart of its base stream's time serves no alert: the joiner knows a frontier of
    it that is ahead of the tuples.
    """
    found = {}
    for name in state.catalog.derived:
        one = state.statements[f"derived/{name}"]
        number = one.topics.get("")
        if isinstance(number, int) and isinstance(one.definition, DerivedDef):
            base = state.topics.get(one.definition.query.sources[0].stream, _NONE)
            found[one.name] = DerivedNumber(number, serves=one.version > base.anew)
    return found


def derived_topic(state: State, name: str) -> str:
    """The name of the topic of a derived stream."""
    stored = state.statements.get(f"derived/{name}")
    number = None if stored is None else stored.topics.get("")
    return stream_topic(name, number) if isinstance(number, int) else outside_topic(name, 1)


def derived_readers(state: State, name: str) -> tuple[list[str], list[str]]:
    """The alerts that read the topic of a derived stream, and the replaced ones that still do."""
    running = [one.name for one in state.of_kind("alert") if name in one.topics.values() and not one.paused]
    return running, [old.alert for old in state.retiring.values() if name in old.topics.values()]


def finals(state: State, plan: Plan, written: Iterable[Final], seen: FleetReports) -> tuple[Final, ...]:
    """The final records of delisted shards that are still to be written: neither written before nor taken by
    the joiner.
    """
    done = set(written)
    schemas = {name: one.schema for name, one in state.schemas.items()}
    planned: dict[str, list[str]] = {}
    for stream in plan.streams:
        planned.setdefault(stream.shards_of, []).extend(topic.name for topic in stream.topics)
    wanted = (
        Final(topic, shard.name, shard.gone, schemas.get(topic))
        for shard in state.shards.values()
        if shard.gone is not None
        # Topics of derived streams are only in the plan; those of queries that have gone only in the state.
        for topic in sorted({*all_topics(state, shard.stream), *planned.get(shard.stream, ())})
    )
    return tuple(
        final
        for final in wanted
        if final not in done and not seen.taken(final.topic, final.shard, final.version, state.partitions)
    )
