"""Number of keys that streams have, beside the number that they declare: bounds on memory rest on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tamis_registry.core.status import View


@dataclass(frozen=True)
class KeyCount:
    """Of a topic: the keys that its stream declares, and those whose tuples the joiner holds now."""

    stream: str
    topic: str
    declared: int
    held: int

    def excess(self) -> str | None:
        """The reason to look at the declaration; None if it holds."""
        if self.held <= self.declared:
            return None
        return (
            f"it has {self.held} keys at the same time and declares keys = {self.declared}, on which bounds "
            f"on memory rest: find the sender, or ALTER STREAM {self.stream} SET (keys = …)"
        )


def key_counts(view: View) -> Iterator[KeyCount]:
    """The topics whose partition key has KEY columns only. Different partition keys are different keys then,
    and each is in one partition of the joiner, whatever edge it comes from.
    """
    for planned in view.plan.streams:
        name = planned.origin or planned.shards_of
        stream = view.state.catalog.streams.get(name)
        if stream is None or stream.keys is None:
            continue
        for topic in planned.topics:
            if topic.partition_key and set(topic.partition_key) <= set(stream.key):
                states = [frontier.topics.get(topic.name) for frontier in view.seen.frontiers.values()]
                held = sum(state.keys for state in states if state is not None)
                yield KeyCount(name, topic.name, stream.keys, held)


def excesses(view: View) -> dict[str, str]:
    """By stream that has more keys than it declares: the reason to look at it."""
    counts = sorted(key_counts(view), key=lambda count: count.held)
    found = {count.stream: reason for count in counts if (reason := count.excess()) is not None}
    return dict(_passed_bounds(view)) | found


def _passed_bounds(view: View) -> Iterator[tuple[str, str]]:
    """The streams that declare keys and that a query reads which keeps more entries than was proven. Queries
    that keep synopses don't count keys.
    """
    frontiers = view.seen.frontiers.values()
    for query in view.plan.standing:
        kept = sum(one.definitions.get(f"{query.alert}@{query.version}", 0) for one in frontiers)
        if not query.proven or query.bound is None or kept <= query.bound:
            continue
        for source in query.inputs:
            stream = view.state.catalog.streams.get(source.stream)
            if stream is not None and stream.keys is not None:
                yield (
                    source.stream,
                    f"alert {query.alert} keeps {kept} entries, more than its bound of {query.bound}: a"
                    f" stream that it reads has more keys than it declares. {source.stream} declares keys ="
                    f" {stream.keys}: find the sender, or ALTER STREAM {source.stream} SET (keys = …)",
                )
