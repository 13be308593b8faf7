"""Frontier record of one output partition: its frontiers, live state and counters (`tamis.frontiers`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.records import Frontier, StreamState
from tamis.plan.model import Plan
from tamis_joiner.core.alarms import KeyValue
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME
from tamis_joiner.core.standing_queries import StandingQueries
from tamis_joiner.core.tuples.tuple_store import TupleStore


@dataclass
class Output:
    """Output of a batch: alarms as (key, value) of Kafka records, the value of a frontier record, and dead
    letters.
    """

    alarms: list[KeyValue] = field(default_factory=list)
    frontier: bytes | None = None
    dead_letters: list[DeadLetter] = field(default_factory=list)


@dataclass
class Counters:
    """Counters since the beginning of the state.

    `alarms` is by alert and `dead` by reason. `late` counts late tuples that were joined. `missed` counts, by
    alert, tuples that arrived too late for a standing query, and `disordered` its cuts that didn't follow the
    one before.
    """

    alarms: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    late: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    disordered: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """The counters, for `from_json`."""
        return {
            "alarms": dict(self.alarms),
            "dead": dict(self.dead),
            "late": self.late,
            "missed": dict(self.missed),
            "disordered": dict(self.disordered),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Counters:
        """The counters that `to_json` returned."""
        return Counters(
            Counter(document["alarms"]),
            Counter(document["dead"]),
            document["late"],
            # State of an older version has none of these.
            Counter(document.get("missed", {})),
            Counter(document.get("disordered", {})),
        )


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
    began: int,
    now: int,
) -> bytes:
    """The record's value. `needed`: by topic, the number of tuples that each definition needs. `began`: when
    the state began; `now`: the wall clock, both in microseconds.
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
        disordered=dict(counters.disordered),
        began=began,
    ).to_bytes()


def with_next(report: bytes) -> bytes:
    """A record that was written already, or is due now, and says that the next one waits."""
    return replace(Frontier.from_bytes(report), next_waits=True).to_bytes()
