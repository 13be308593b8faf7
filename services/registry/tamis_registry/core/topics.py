"""Which shared topics there are, and which final records they need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tamis.messaging.topics import stream_topic
from tamis.planning.build import Built, TopicKey
from tamis.planning.plan import Plan
from tamis_registry.core.change import Final
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State, StreamTopics

# The topics of a dropped stream of the same name: a partition key that no stream can have.
_SPENT = ("", "")


def numbers(state: State) -> dict[TopicKey, tuple[int, ...]]:
    """Every topic that there is, and of each stream the greatest number that was ever used."""
    known: dict[TopicKey, tuple[int, ...]] = {}
    for stream, topics in state.topics.items():
        for key, number in topics.numbers:
            known[stream, key] = (*known.get((stream, key), ()), number)
        if topics.next > 1:
            known[stream, _SPENT] = (topics.next - 1,)
    return known


def remember(draft: State, built: Built) -> None:
    """Take up the numbers of a plan, of which new ones were never used before, and who is served by which."""
    for (stream, key), used in built.topic_numbers.items():
        for number in used if key != _SPENT else ():
            topics = draft.topics.get(stream, StreamTopics())
            if (key, number) not in topics.numbers:
                draft.topics[stream] = StreamTopics(
                    max(topics.next, number + 1), (*topics.numbers, (key, number))
                )
    for stored in draft.of_kind("alert"):
        found = built.placed.get(f"{stored.name}@{stored.version}")
        if found and found != stored.topics:
            draft.statements[f"alert/{stored.name}"] = replace(stored, topics=dict(found))
    for old in list(draft.retiring.values()):
        found = built.placed.get(old.id)
        if found and found != old.topics:
            draft.retiring[old.id] = replace(old, topics=dict(found))
    for lease in list(draft.leases.values()):
        found = built.placed.get(lease.reader)
        if found and found != lease.topics:
            draft.leases[lease.id] = replace(lease, topics=dict(found))


def places(state: State) -> dict[str, dict[str, int]]:
    """Who is served by which topics, as far as that was decided before."""
    known = {f"{alert.name}@{alert.version}": alert.topics for alert in state.of_kind("alert")}
    known |= {old.id: old.topics for old in state.retiring.values()}
    known |= {lease.reader: lease.topics for lease in state.leases.values()}
    return {reader: topics for reader, topics in known.items() if topics}


def forget_numbers(draft: State, stream: str) -> None:
    """A dropped stream's topics are never used again: a stream of that name to come may have other
    columns.
    """
    topics = draft.topics.get(stream)
    if topics:
        draft.topics[stream] = StreamTopics(topics.next)


def all_topics(state: State, stream: str) -> list[str]:
    """Every topic that the stream ever had."""
    return [stream_topic(stream, n) for n in range(1, state.topics.get(stream, StreamTopics()).next)]


def finals(state: State, plan: Plan, written: Iterable[Final], seen: Seen) -> tuple[Final, ...]:
    """The final records of all delisted shards, less those that are written or that the joiner has taken."""
    done = set(written)
    planned = {stream.name: [topic.name for topic in stream.topics] for stream in plan.streams}
    wanted = (
        Final(topic, shard.name, shard.gone)
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
