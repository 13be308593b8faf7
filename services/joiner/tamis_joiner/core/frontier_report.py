"""Frontier record of one output partition: its frontiers, live state and counters (`tamis.frontiers`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tamis.messaging.records import Frontier, StreamState
from tamis.plan.model import Plan
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.output import Counters
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME
from tamis_joiner.core.standing.standing_queries import StandingQueries
from tamis_joiner.core.tuples.tuple_store import TupleStore


def frontier_report(
    *,
    partition: int,
    plan: Plan | None,
    topics: Iterable[str],
    frontiers: Frontiers,
    store: TupleStore,
    needed: Mapping[str, Counter[str]],
    standing: StandingQueries,
    counters: Counters,
    pending: int,
    errors: Mapping[str, str],
    now: int,
) -> bytes:
    """The record's value. `needed`: by topic, the number of tuples that each definition needs. `now`: the
    wall clock in microseconds.
    """
    # Definitions that need nothing are in the record, too.
    definitions: Counter[str] = Counter(
        {f"{d.alert}@{d.version}": 0 for d in (plan.definitions if plan else ())}
    )
    sizes = Counter(definitions)
    definitions.update(standing.entries())
    sizes.update(standing.sizes())
    states = {}
    for name in topics:
        counts, tuples, size = needed.get(name, Counter()), store.count(name), store.bytes(name)
        definitions.update(counts)
        # A tuple that several definitions need counts for each of them, and so do its bytes.
        sizes.update({definition: size * count // tuples for definition, count in counts.items() if count})
        reached = frontiers.of(name)
        states[name] = StreamState(
            frontier=None if reached == BEGINNING_OF_TIME else reached,
            tuples=tuples,
            bytes=size,
            void=frontiers.void(name),
            shards=frontiers.listed(name),
            left=frontiers.left(name),
            obeyed=frontiers.obeyed(name),
            keys=store.keys(name),
        )
    return Frontier(
        partition=partition,
        plan=plan.version if plan else 0,
        topics=states,
        definitions=dict(definitions),
        alarms=dict(counters.alarms),
        late=counters.late,
        parked=pending,
        time=now,
        dead=dict(counters.dead),
        unable={**errors, **standing.errors},
        bounds=standing.bounds(),
        missed=dict(counters.missed),
        sizes=dict(sizes),
        waiting=store.waiting,
        times=standing.times(),
    ).to_bytes()


def with_next(report: bytes) -> bytes:
    """A record that was written already, or is due now, and says that the next one waits."""
    return replace(Frontier.from_bytes(report), next_waits=True).to_bytes()
