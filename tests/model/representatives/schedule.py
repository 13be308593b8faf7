"""The steps of sources, edges, registry and joiner, each atomic, and a random schedule of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable

from tests.model.kafka import cut_once
from tests.model.representatives.joiner import Partition
from tests.model.representatives.judge import Judge, Violation
from tests.model.representatives.office import Office
from tests.model.representatives.queries import Asked, pool, streams_of, with_more_keys
from tests.model.representatives.shard import EdgeRun, Log, Logs, Shard

from tamis.messaging.records import Frontier

_ALERTS = ("q0", "q1", "q2")


class Fleet:
    """All that a schedule is played with. `now` is wall clock, microseconds."""

    def __init__(self, seed: int, *, asked: tuple[Asked, ...] = (), trace: bool = False) -> None:
        r = self.r = random.Random(seed)
        self.trace: list[str] | None = [] if trace else None
        self.now, self.calm = 1_700_000_000_000_000, False
        self.asked = asked or pool(seed % 41 + 41 * (seed // 2000))
        query = with_more_keys(self.asked[0].query, r)
        partitions = r.choice((1, 1, 2))
        self.office = Office(query.declarations(), partitions, self.now)
        self.shards: list[Shard] = []
        for stream in streams_of(query):
            types = {one.name: one.type for one in query.streams[stream]}
            self.shards += [
                Shard(f"{stream}:readings/{i}", stream, types) for i in range(r.choice((1, 1, 1, 2)))
            ]
        for stream, reading in query.events(r, r.choice((12, 24, 40))):
            mine = [shard for shard in self.shards if shard.stream == stream]
            r.choice(mine).readings.append(reading)
        self.logs: Logs = defaultdict(Log)
        self.joiner = [Partition(r, number, partitions) for number in range(partitions)]
        self.frontiers: list[Frontier] = []
        self.judge = Judge(self.office, self.shards)
        self.violations: list[Violation] = []
        self.seen: Counter[str] = Counter()
        self.losses = 0
        # A stream whose readings come last: its partners must still be there.
        self.waiting = r.choice([None, *streams_of(query)]) if len(set(streams_of(query))) > 1 else None

    def say(self, *words: object) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace.append(" ".join(map(str, words)))

    def note(self, what: str, *words: object) -> None:
        """Count an event, and trace it."""
        self.seen[what] += 1
        self.say(what, *words)

    def any_run(self) -> tuple[Shard, EdgeRun] | None:
        """A run that works."""
        some = [(shard, run) for shard in self.shards for run in shard.runs()]
        return self.r.choice(some) if some else None


# ---- edges


def emit(fleet: Fleet) -> None:
    """Readings come."""
    shard = fleet.r.choice([shard for shard in fleet.shards if shard.stream != fleet.waiting])
    shard.available = min(len(shard.readings), shard.available + fleet.r.randint(1, 3))


def obey(fleet: Fleet, shard: Shard | None = None) -> None:
    """An edge takes up the newest plan, or begins to serve a shard."""
    shard = shard or fleet.r.choice(fleet.shards)
    plan = cut_once(fleet.office.plans[-1], shard.stream)
    run = fleet.r.choice(shard.runs()) if shard.runs() and not fleet.calm else shard.run
    before = run.core.version if run else None
    shard.obey(plan, run, fleet.now)
    run = run or shard.run
    if run and run.core.version != before:
        stream = plan.stream(shard.stream)
        since = None if stream is None else stream.representatives
        fleet.say(
            shard.name, "obeys", plan.version, "since", since, "at", run.core.next_offset, shard.durable
        )


def read(fleet: Fleet) -> None:
    """A run takes readings."""
    if found := fleet.any_run():
        shard, run = found
        before = run.core.next_offset
        shard.read(run, fleet.r.choice((1, 1, 3)), fleet.now)
        if run.core.next_offset > before:
            new = shard.readings[before : run.core.next_offset]
            fleet.say(shard.name, "zombie" * (run is not shard.run), "reads from", before, new)


def send(fleet: Fleet) -> None:
    """A run sends its records."""
    if found := fleet.any_run():
        found[1].send()


def deliver(fleet: Fleet) -> None:
    """Records arrive."""
    if found := fleet.any_run():
        for _ in range(fleet.r.randint(1, 4)):
            found[1].deliver(fleet.r, fleet.logs)


def deliver_ghost(fleet: Fleet) -> None:
    """A record of a run that has ended arrives."""
    ghosts = [ghost for shard in fleet.shards for ghost in shard.ghosts if ghost.queue]
    if ghosts:
        fleet.r.choice(ghosts).deliver(fleet.r, fleet.logs, report=False)
        fleet.note("records of ended runs")


def report(fleet: Fleet) -> None:
    """A run learns what has arrived."""
    if found := fleet.any_run():
        found[1].report(fleet.r.randint(1, 6))


def begin_commit(fleet: Fleet) -> None:
    """A run makes a commit."""
    if found := fleet.any_run():
        found[0].begin_commit(found[1])


def land(fleet: Fleet) -> None:
    """A commit becomes durable, or fails."""
    if found := fleet.any_run():
        shard, run = found
        if run.landing and fleet.r.random() < 0.15:
            run.landing = None
            run.core.commit_failed()
        elif run.landing:
            shard.land(run, fleet.now)
            fleet.say(shard.name, "commits", shard.durable)


def crash(fleet: Fleet) -> None:
    """An edge ends; its commit may have become durable, and its records may still arrive."""
    if found := fleet.any_run():
        shard, run = found
        if fleet.r.random() < 0.3:
            shard.land(run, fleet.now, known=False)
        shard.lose(run, ghost=fleet.r.random() < 0.3)
        fleet.note("crashes", shard.name, shard.durable)


def move(fleet: Fleet) -> None:
    """A shard moves to another edge, and its former one doesn't know it yet."""
    shard = fleet.r.choice(fleet.shards)
    if shard.run is not None:
        shard.move()
        fleet.note("moves", shard.name, shard.durable)


def overload(fleet: Fleet) -> None:
    """Edges begin or cease to shed all that may be shed."""
    share = fleet.r.choice((0.0, 1.0))
    for shard in fleet.shards:
        shard.shedder.share = share


# ---- registry


def registry(fleet: Fleet) -> None:
    """The registry hears the fleet and does what is due."""
    fleet.office.hear(fleet.shards, fleet.frontiers, fleet.now)
    while fleet.office.tick(fleet.now):
        plan = fleet.office.plan
        fleet.say("plan", plan.version, [(one.name, one.representatives) for one in plan.streams])


def change(fleet: Fleet) -> None:
    """Somebody makes, changes or ends an alert."""
    office, r = fleet.office, fleet.r
    alert = r.choice(_ALERTS)
    before = len(office.plans)
    if alert in office.paused and r.random() < 0.7:
        office.resume(alert, fleet.now)
        fleet.seen["resumed"] += 1
    elif alert in office.current and r.random() < 0.4:
        office.end(alert, fleet.now, pause=r.random() < 0.6)
    else:
        fleet.seen["replaced"] += alert in office.current
        office.define(alert, r.choice(fleet.asked), fleet.now)
    if len(office.plans) > before:
        known = [(one.alert, one.version, one.until) for one in office.every]
        fleet.note("changes", alert, "plan", office.plan.version, known)


# ---- joiner


def batch(fleet: Fleet, number: int | None = None) -> None:
    """An output partition of the joiner takes a batch; the rows are judged if it has taken everything."""
    number = fleet.r.randrange(len(fleet.joiner)) if number is None else number
    plans = fleet.office.plans
    rows, frontier = fleet.joiner[number].batch(plans, fleet.logs, fleet.now, calm=fleet.calm)
    for definition, row in rows:
        fleet.judge.given[definition].add(row)
    if frontier is not None:
        fleet.frontiers.append(frontier)
    fleet.say("joiner", number, dict(fleet.joiner[number].offsets), rows)
    if all(partition.caught_up(plans, fleet.logs) for partition in fleet.joiner):
        arrived = {shard.name: shard.run.arrived for shard in fleet.shards if shard.run}
        fleet.violations += fleet.judge.in_time(arrived)


def retain(fleet: Fleet) -> None:
    """A topic loses its oldest records, which the joiner has taken."""
    if fleet.logs:
        (topic, number), log = fleet.r.choice(list(fleet.logs.items()))
        end = fleet.joiner[number].offsets[topic]
        if end > log.first:
            log.first = fleet.r.choice((end, fleet.r.randint(log.first, end)))
            fleet.note("deleted", topic, number, "up to", log.first)


def lose_state(fleet: Fleet) -> None:
    """An output partition loses its state."""
    if fleet.losses < 2:
        fleet.losses += 1
        number = fleet.r.randrange(len(fleet.joiner))
        if fleet.r.random() < 0.7:  # the topics have less than the state had
            for (topic, partition), log in fleet.logs.items():
                if partition == number:
                    log.first = max(log.first, fleet.joiner[number].offsets[topic])
        last = len(fleet.office.plans) - 1
        fleet.joiner[number].lose(fleet.r.choice((0, last, fleet.r.randint(0, last))))
        fleet.judge.lost = fleet.now
        fleet.note("states lost", number)


def lose_records(fleet: Fleet) -> None:
    """A topic loses records that the joiner has not taken, which it finds out."""
    taken = {place: fleet.joiner[place[1]].offsets[place[0]] for place in fleet.logs}
    places = [place for place, log in fleet.logs.items() if taken[place] < len(log.values)]
    if places and fleet.losses < 2 and all(partition.may_lose for partition in fleet.joiner):
        fleet.losses += 1
        place = fleet.r.choice(places)
        log = fleet.logs[place]
        log.first = max(log.first, fleet.r.randint(taken[place] + 1, len(log.values)))
        fleet.judge.lost = fleet.now
        fleet.office.hear_of_loss(fleet.now)
        fleet.note("records lost", place, "up to", log.first)


STEPS: dict[Callable[[Fleet], None], float] = {
    emit: 8,
    obey: 8,
    read: 12,
    send: 12,
    deliver: 14,
    deliver_ghost: 0.5,
    report: 8,
    begin_commit: 8,
    land: 8,
    crash: 1.2,
    move: 0.5,
    overload: 0.5,
    registry: 5,
    change: 1.5,
    batch: 10,
    retain: 1,
    lose_state: 0.3,
    lose_records: 0.15,
}


def play(seed: int, *, trace: bool = False) -> tuple[list[Violation], Fleet]:
    """Play a schedule to its end; returns the violations."""
    fleet = Fleet(seed, trace=trace)
    r = fleet.r
    weights = {step: weight * r.choice((0.2, 1, 1, 3)) for step, weight in STEPS.items()}
    if r.random() < 0.3:  # restarts read much again, and the joiner loses its state
        weights |= {report: 1, crash: 3, lose_state: 1}
    for alert in _ALERTS[: r.choice((1, 1, 2))]:
        fleet.office.define(alert, fleet.asked[0], fleet.now)
    if r.random() < 0.8:
        begin(fleet)
    length = 12 * sum(len(shard.readings) for shard in fleet.shards) + 60
    for place, step in enumerate(r.choices(list(weights), list(weights.values()), k=length)):
        fleet.now += 1_000
        fleet.waiting = fleet.waiting if place < 2 * length // 3 else None
        step(fleet)
        if fleet.violations:
            return fleet.violations, fleet
    drain(fleet)
    fleet.violations += fleet.judge.at_the_end()
    for shard in fleet.shards:
        omitted = shard.run.core.totals["omitted"] if shard.run else 0
        fleet.seen["omitted"] += shard.omitted + omitted
    fleet.seen += fleet.judge.seen
    return fleet.violations, fleet


def begin(fleet: Fleet) -> None:
    """Edges and joiner have the plan and each other's word before the first reading."""
    for _ in range(4):
        work(fleet)


def drain(fleet: Fleet) -> None:
    """Repair everything, and work until the joiner has everything."""
    fleet.calm = True
    fleet.say("drain")
    for shard in fleet.shards:
        for run in list(shard.zombies):
            shard.lose(run, ghost=False)
        shard.available = len(shard.readings)
        shard.shedder.share = 0.0
    for _ in range(12):
        before = len(fleet.office.plans), sum(len(log.values) for log in fleet.logs.values())
        work(fleet)
        if before == (len(fleet.office.plans), sum(len(log.values) for log in fleet.logs.values())):
            break
    done = all(s.run and s.run.core.next_offset == len(s.readings) == s.run.arrived for s in fleet.shards)
    if not done:
        fleet.violations.append(Violation("STUCK", str([(s.name, s.durable) for s in fleet.shards])))


def work(fleet: Fleet) -> None:
    """One turn of everything."""
    calm, fleet.calm = fleet.calm, True
    fleet.now += 11_000_000
    registry(fleet)
    for shard in fleet.shards:
        for _ in range(3):
            obey(fleet, shard)
            run = shard.run
            if run is None:
                continue
            shard.read(run, 1000, fleet.now)
            run.send()
            while run.queue:
                run.deliver(fleet.r, fleet.logs)
            run.report(len(run.unreported))
            shard.begin_commit(run)
            shard.land(run, fleet.now)
    for number in range(len(fleet.joiner)):
        batch(fleet, number)
    registry(fleet)
    fleet.calm = calm
