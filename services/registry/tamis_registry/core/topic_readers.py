"""Readers of shared topics, and the reasons why some of them need every tuple that passes their filter.

A topic has each tuple that one of its readers needs. A single reader without omission is therefore enough for
edges to publish every reading that passes its filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from tamis.expressions.nodes import Expr
from tamis.expressions.sql_text import to_sql
from tamis.plan.model import Definition, Plan, StandingQuery, partial_topics
from tamis.planning.queries.definitions import definition_id
from tamis_registry.core.plan.shared_topics import derived_topic
from tamis_registry.core.state.model import Lease, State

# In EXPLAIN's document of a query, of the other readers of a topic.
MOST_NAMED = 10
LONGEST_FILTER = 200  # characters


@dataclass(frozen=True)
class TopicReader:
    """One source of an alert that reads a topic, or a reader outside the fleet.

    `interval`: microseconds; 0 without omission. `max_delay`: of the alert, microseconds. `needs_all`: the
    reason why it needs every tuple that passes `filter`; None if some may be omitted, or if edges send
    partial aggregates or representatives.
    """

    kind: Literal["alert", "subscriber"]
    name: str
    plan: int
    retiring: bool
    source: str | None
    filter: str | None
    interval: int
    max_delay: int | None
    needs_all: str | None


def topic_readers(state: State, plan: Plan, topics: set[str]) -> dict[str, list[TopicReader]]:
    """The readers of each of these topics: the alerts in the order of the plan, and then the subscribers."""
    found: dict[str, list[TopicReader]] = {topic: [] for topic in topics}
    partial = partial_topics(plan)
    for query in plan.queries:
        for topic, reader in _sources(state, plan, query, topics, partial):
            found[topic].append(reader)
    for lease in state.leases.values():
        topic = lease_topic(state, lease)
        if topic in found:
            found[topic].append(
                TopicReader(
                    "subscriber",
                    lease.consumer,
                    lease.version,
                    retiring=False,
                    source=None,
                    filter=lease.predicate or None,
                    interval=0,
                    max_delay=None,
                    needs_all="subscribers get every tuple",
                )
            )
    return found


def tell_needs(queries: Sequence[dict[str, Any]], state: State, plan: Plan) -> None:
    """Add to EXPLAIN's documents of queries the other readers of their topics that need every tuple: their
    number, and the first ones, so that the documents grow with the number of queries and no faster.
    """
    shared = [
        (query["name"], source["sharing"])
        for query in queries
        for source in query.get("streams", ())
        if "sharing" in source
    ]
    readers = topic_readers(state, plan, {sharing["topic"] for _, sharing in shared})
    needy = {topic: [one for one in some if one.needs_all is not None] for topic, some in readers.items()}
    counts = {topic: Counter(map(_named, some)) for topic, some in needy.items()}
    for name, sharing in shared:
        some, own = needy[sharing["topic"]], ("alert", name)
        others = (one for one in some if _named(one) != own)
        sharing["needs_all"] = [
            {"kind": one.kind, "name": one.name, "filter": _shortened(one.filter), "why": one.needs_all}
            for one in islice(others, MOST_NAMED)
        ]
        sharing["needs_all_count"] = len(some) - counts[sharing["topic"]][own]


def _named(reader: TopicReader) -> tuple[str, str]:
    return reader.kind, reader.name


def _shortened(text: str | None) -> str | None:
    """A text without the end of a long one."""
    return text if text is None or len(text) <= LONGEST_FILTER else f"{text[:LONGEST_FILTER]}…"


def lease_topic(state: State, lease: Lease) -> str:
    """The topic that serves a lease. A derived stream has its own topic."""
    if lease.subscription is None:
        return derived_topic(state, lease.stream)
    return state.topics[lease.stream].name(lease.stream, lease.topics[""])


def _sources(
    state: State, plan: Plan, query: Definition | StandingQuery, topics: set[str], partial: frozenset[str]
) -> Iterator[tuple[str, TopicReader]]:
    read = [source for source in query.inputs if source.topic in topics]
    delay = _max_delay(state, query) if read else None
    for source in read:
        yield (
            source.topic,
            TopicReader(
                "alert",
                query.alert,
                query.version,
                retiring=definition_id(query.alert, query.version) in plan.retiring,
                source=source.alias or None,
                filter=filter_sql(source.filter),
                interval=source.interval,
                max_delay=delay,
                needs_all=None
                if source.topic in partial or source.representation is not None
                else _needs_all(source.interval, delay),
            ),
        )


def _max_delay(state: State, query: Definition | StandingQuery) -> int | None:
    """The option of the alert that made a definition."""
    old = state.retiring.get(definition_id(query.alert, query.version))
    stored = state.alert(query.alert)
    alert = old.definition if old is not None else stored.alert if stored is not None else None
    return None if alert is None else alert.options.max_delay


def _needs_all(interval: int, max_delay: int | None) -> str | None:
    if interval == 0:
        return "it has no omission"
    # Edges decide at once, before they have seen the readings between which a tuple may be omitted.
    return "max_delay = 0" if max_delay == 0 else None


def filter_sql(condition: Expr | None) -> str | None:
    """A filter as SQL, without the aliases of sources."""
    return None if condition is None else to_sql(condition, qualify=False)
