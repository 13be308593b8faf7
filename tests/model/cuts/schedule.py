"""A whole schedule: random steps, then everything that isn't dead is repaired and drained, and judged."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tests.model.cuts import edge_actions, joiner_actions, registry_actions
from tests.model.cuts.fleet import Fleet
from tests.model.cuts.judge import Judge, Violation
from tests.model.cuts.terms import END

# How often each step is taken, relative to the others.
STEPS: dict[Callable[[Fleet], object], float] = {
    edge_actions.emit: 8,
    edge_actions.read: 14,
    edge_actions.propose: 7,
    edge_actions.durable: 8,
    edge_actions.send: 16,
    edge_actions.switch: 5,
    edge_actions.read_plan: 4,
    edge_actions.start_runs: 5,
    edge_actions.idle: 2,
    joiner_actions.batch: 8,
    registry_actions.change_plan: 1.5,
    edge_actions.crash: 0.5,
    edge_actions.repair: 2,
    edge_actions.disconnect: 0.8,
    edge_actions.move: 0.8,
    edge_actions.wake: 1,
    edge_actions.arrive_late: 1,
    edge_actions.delete: 0.1,
    edge_actions.make_anew: 0.1,
}


def play(seed: int, off: Collection[str] = (), *, trace: bool = False) -> tuple[list[Violation], Fleet]:
    """Play the schedule of a seed without some rules; returns its violations, and the fleet at the end."""
    fleet = Fleet(seed, off, trace=trace)
    r = fleet.r
    weights = {step: weight * r.choice((0.2, 1, 1, 3)) for step, weight in STEPS.items()}
    length = 14 * sum(map(len, fleet.sources.values())) + 60
    if fleet.raw_first:
        length *= 2
        weights[edge_actions.emit] /= 3
        weights[edge_actions.crash] /= 2
        weights[edge_actions.wake] /= 3
        weights[edge_actions.send] *= 2
        weights[edge_actions.move] *= 2
    for step in r.choices(list(weights), list(weights.values()), k=length):
        step(fleet)
    stuck = _drain(fleet)
    return [*Judge(fleet).violations(), *stuck], fleet


def _drain(fleet: Fleet) -> list[Violation]:
    """Repair what isn't dead, let the sources end, and work until the joiners have everything."""
    fleet.calm = True
    fleet.say("drain")
    edge_actions.wake(fleet)
    alive = [edge for edge in fleet.edges if not edge.dead]
    for edge in alive:
        edge.plans_read, edge.up, edge.connected = edge.plans_read if edge.up else 0, True, True
    last = fleet.plans[-1]
    new = last._replace(version=last.version + 1, listed=dict(last.listed))
    registry_actions.list_again(fleet, new)
    fleet.add_plan(new)
    for shard in fleet.shards:
        if fleet.owner[shard].dead:
            fleet.owner[shard] = fleet.r.choice(alive)
            fleet.generations[shard] += 1
        fleet.sources[shard].close()
    for _ in range(16):
        _work(fleet)
        if _drained(fleet):
            return []
    waiting = {place: (joiner.frontier, len(joiner.parked)) for place, joiner in fleet.joiners.items()}
    return [Violation("STUCK", note=str(waiting))]


def _work(fleet: Fleet) -> None:
    """One turn of everything."""
    for edge in fleet.edges:
        edge_actions.read_plan(fleet, edge)
    edge_actions.start_runs(fleet)
    for run in fleet.runs():
        for step in (edge_actions.switch, edge_actions.read, edge_actions.send):
            while step(fleet, run):
                pass
        edge_actions.propose(fleet, run)
        edge_actions.durable(fleet, run)
    for place in fleet.joiners:
        joiner_actions.batch(fleet, place)


def _drained(fleet: Fleet) -> bool:
    """Every joiner of a topic with queries has the last progress."""
    topics = {query.topic for query in fleet.plans[-1].queries}
    return not any(
        joiner.parked or (topic in topics and joiner.frontier < END)
        for (topic, _), joiner in fleet.joiners.items()
    )
