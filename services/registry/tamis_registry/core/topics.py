"""Which shared topics there are, and which final records they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tamis.messaging.topics import stream_topic
from tamis.planning.build import TopicKey
from tamis.planning.plan import Plan
from tamis_registry.core.change import Final
from tamis_registry.core.seen import Seen
from tamis_registry.core.state import State, StreamTopics

# The topics of a dropped stream of the same name: a partition key that no stream can have.
_SPENT = ("", "")


def numbers(state: State) -> dict[TopicKey, int]:
    """Every topic that there is, and of each stream the greatest number that was ever used."""
    known = {(s, key): number for s, topics in state.topics.items() for key, number in topics.numbers}
    return known | {(s, _SPENT): topics.next - 1 for s, topics in state.topics.items() if topics.next > 1}


def remember(draft: State, built: Mapping[TopicKey, int]) -> None:
    """Take up the numbers of a plan; a new partition key has a number never used before."""
    for (stream, key), number in built.items():
        topics = draft.topics.get(stream, StreamTopics())
        if key != _SPENT and (key, number) not in topics.numbers:
            draft.topics[stream] = StreamTopics(
                max(topics.next, number + 1), (*topics.numbers, (key, number))
            )


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
