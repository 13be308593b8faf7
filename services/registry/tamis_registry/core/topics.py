"""Which shared topics there are, and which final records they need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tamis.planning.build import Built, TopicKey
from tamis.planning.plan import Plan
from tamis_registry.core.change import Final
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import LEASE, State, StreamTopics

# The topics of a dropped stream of the same name: a partition key that no stream can have.
_SPENT = ("", "")
_NONE = StreamTopics()


def numbers(state: State) -> dict[TopicKey, tuple[int, ...]]:
    """Every topic that there is, and of each stream the greatest number that was ever used."""
    known: dict[TopicKey, list[int]] = {}
    for stream, topics in state.topics.items():
        for key, number in topics.numbers:
            known.setdefault((stream, key), []).append(number)
        if topics.next > 1:
            known[stream, _SPENT] = [topics.next - 1]
    return {key: tuple(found) for key, found in known.items()}


def remember(draft: State, built: Built) -> None:
    """Take up the numbers of a plan, of which new ones were never used before, and who is served by which."""
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
        draft.topics[stream] = StreamTopics(number + 1, (*known.numbers, (key, number)), hidden)
    for reader, found in built.placed.items():
        _place(draft, reader, dict(found))


def _place(draft: State, reader: str, found: dict[str, int]) -> None:
    if reader.startswith(LEASE):
        lease = draft.leases[reader.removeprefix(LEASE)]
        if found != lease.topics:
            draft.leases[lease.id] = replace(lease, topics=found)
    elif (old := draft.retiring.get(reader)) is not None:
        if found != old.topics:
            draft.retiring[reader] = replace(old, topics=found)
    else:
        key = f"alert/{reader.rpartition('@')[0]}"
        if found != draft.statements[key].topics:
            draft.statements[key] = replace(draft.statements[key], topics=found)


def forget_numbers(draft: State, stream: str) -> None:
    """A dropped stream's topics are never used again: a stream of that name to come may have other
    columns.
    """
    topics = draft.topics.get(stream)
    if topics:
        draft.topics[stream] = StreamTopics(topics.next, outside=topics.outside)


def all_topics(state: State, stream: str) -> list[str]:
    """Every topic that the stream ever had."""
    topics = state.topics.get(stream, _NONE)
    return [topics.name(stream, number) for number in range(1, topics.next)]


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
