"""Fleet to be sized: its plan, the loads of its streams, its operation and the unit costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tamis.declarations.definitions import Rate
from tamis.plan.model import Definition, Plan, StandingQuery, StreamPlan, TopicPlan
from tamis.sizing.figures import Basis, Figure, Unit, UnitCosts, weakest
from tamis.sizing.load import SECOND, StreamLoad
from tamis.sizing.partial_aggregates import partial_rows
from tamis.sizing.records import tuple_bytes

# Half of each core is left for catching up: see docs/scale.md for the time that it takes.
BUSY = 0.5
MB = 1e6


@dataclass(frozen=True)
class Operation:
    """Operation of the fleet: the options of `tamis size` that aren't about one stream.

    `retention`, `outage`: microseconds; `retention` None: that of `tamis.messaging.topics`. `partitions`
    None: as many as are recommended. `given`: the names of the options that were given.
    """

    retention: int | None = None
    replication: int = 3
    outage: int = 1800 * SECOND
    edges: int = 1
    partitions: int | None = None
    alarms: Rate | None = None
    given: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plans:
    """The plan of the registry, and the plans that it would make if no reading were ahead of the clock
    (`stalled`) and if, in addition, no source were ever silent (`calm`).
    """

    registry: Plan
    stalled: Plan
    calm: Plan


@dataclass(frozen=True)
class Part:
    """The figures of one part of the fleet, by name."""

    title: str
    figures: Mapping[str, Figure]
    name: str | None = None  # of the stream, topic or query


class Fleet:
    """The inputs of the estimate, and the tuples, or rows of partial aggregates (`partials`), that edges
    publish to each topic in a second.
    """

    def __init__(
        self, loads: Mapping[str, StreamLoad], operation: Operation, costs: UnitCosts, plans: Plans
    ) -> None:
        self.loads, self.operation, self.costs = loads, operation, costs
        self.plans = plans
        self.plan = plan = plans.registry
        self.topics = [(stream, topic) for stream in plan.streams for topic in stream.topics]
        self.shares = {topic.name: loads[stream.name].share(topic) for stream, topic in self.topics}
        self.partials = {
            topic.name: partial_rows(
                plan, topic, loads[stream.name], self.shares[topic.name], operation.edges
            )
            for stream, topic in self.topics
            if topic.partials is not None
        }
        self.published = {
            topic.name: self.partials[topic.name].rows
            if topic.name in self.partials
            else product(
                "tuples/s", "rate x retained share", loads[stream.name].rate, self.shares[topic.name]
            )
            for stream, topic in self.topics
        }
        # By raw stream: several watched streams may have the readings of one.
        self.sources = {stream.shards_of: loads[stream.name] for stream, _ in self.topics}
        self.notes: list[str] = []

    @property
    def queries(self) -> list[Definition | StandingQuery]:
        """All queries that raise alarms."""
        return [*self.plan.definitions, *self.plan.standing]

    def record(self, stream: StreamPlan, topic: TopicPlan) -> Figure:
        """The bytes of a tuple in a topic, or of a row of partial aggregates."""
        if topic.name in self.partials:
            return self.partials[topic.name].row
        return tuple_bytes(self.loads[stream.name], stream, topic, 1)

    def memory(self, service: str) -> Figure:
        """The memory of a service that needs the same for any load."""
        return Figure(self.costs[f"{service}_memory_mb"] * MB, "B", "measured", "the service at rest")

    def basis_of(self, option: str) -> Basis:
        """The basis of an option: given, or assumed by its default."""
        return "given" if option in self.operation.given else "assumed"


def product(unit: Unit, source: str, *factors: Figure) -> Figure:
    """The product of figures."""
    return Figure(math.prod(one.value for one in factors), unit, weakest(*factors), source)
