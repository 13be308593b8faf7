"""Steps of sources, edges and their machines. Each is atomic; a crash may fall between any two."""

from __future__ import annotations

from tests.model.cuts.fleet import Edge, Fleet
from tests.model.cuts.run import Run
from tests.model.cuts.terms import FAR


def _any_run(fleet: Fleet) -> Run | None:
    runs = fleet.runs()
    return fleet.r.choice(runs) if runs else None


# ---- sources


def emit(fleet: Fleet) -> None:
    """A source has a new reading."""
    source = fleet.sources[fleet.r.choice(fleet.shards)]
    if len(source):
        time = source.emit().time
        fleet.clock = max(fleet.clock, time if time < FAR else 0)


def delete(fleet: Fleet) -> None:
    """A source deletes its oldest readings, whether they were read or not."""
    source = fleet.sources[fleet.r.choice(fleet.shards)]
    deleted = source.delete(fleet.r.choice((1, 2, 3, 5)))
    fleet.seen["deleted readings"] += len(deleted)
    fleet.note_deleted(deleted)
    fleet.say(source.shard.name, "deletes up to", source.first)


def make_anew(fleet: Fleet) -> None:
    """A source is deleted and made anew."""
    source = fleet.sources[fleet.r.choice(fleet.shards)]
    if source.end:
        fleet.note_deleted(source.make_anew())
        fleet.seen["sources made anew"] += 1
        fleet.say(source.shard.name, "made anew")


# ---- runs


def start_runs(fleet: Fleet) -> None:
    """Edges take up the shards that they own."""
    for shard, edge in fleet.owner.items():
        ready = edge.up and edge.plan and shard not in edge.runs and shard in edge.plan.listed
        if not ready or edge.plan is None or not fleet.reaches(edge, shard):
            continue
        if edge.plan.version >= fleet.commits[shard].form or not fleet.on("takeover_plan"):
            fleet.say(edge.name, "starts", shard.name, fleet.commits[shard])
            edge.runs[shard] = Run(fleet, edge, shard, fleet.generations[shard])


def _step(fleet: Fleet, name: str, run: Run | None) -> bool:
    if run is None:
        return False
    done = bool(getattr(run, name)())
    if done:
        fleet.say(run, name)
    return done


def read(fleet: Fleet, run: Run | None = None) -> bool:
    """A run takes a reading."""
    run = run or _any_run(fleet)
    return run is not None and fleet.reaches(run.edge, run.shard) and _step(fleet, "read", run)


def propose(fleet: Fleet, run: Run | None = None) -> bool:
    """A run makes a commit."""
    return _step(fleet, "propose", run or _any_run(fleet))


def durable(fleet: Fleet, run: Run | None = None) -> bool:
    """A commit has an outcome. The one of a zombie may take long."""
    run = run or _any_run(fleet)
    if run is not None and run.zombie and fleet.raw_first and fleet.r.random() < 0.8:
        return False
    return _step(fleet, "durable", run)


def switch(fleet: Fleet, run: Run | None = None) -> bool:
    """A run takes up its edge's plan."""
    return _step(fleet, "switch", run or _any_run(fleet))


def send(fleet: Fleet, run: Run | None = None) -> bool:
    """A record of a run comes to Kafka, or to the spool if Kafka is away."""
    run = run or _any_run(fleet)
    if run is None:
        return False
    edge, spool = run.edge, run.edge.spool[run.shard]
    if not edge.connected:
        if run.out and (not run.shard.movable or not fleet.on("spool_uncommitted")):
            spool.append(run.out.pop(0))
        return False
    queue = (spool or run.out) if fleet.on("spool_first") else (run.out or spool)
    if not queue:
        return False
    place = fleet.r.choice([(record.topic, partition) for partition, record in queue])
    at = next(i for i, (partition, record) in enumerate(queue) if (record.topic, partition) == place)
    fleet.append(*queue[at])
    fleet.say(run, "sends", queue[at][1])
    if fleet.calm or fleet.r.random() < 0.85:  # otherwise there is no answer yet, and it is sent again
        del queue[at]
    return True


def idle(fleet: Fleet) -> None:
    """The clock moves the watermark of a shard that has read everything."""
    run = _any_run(fleet)
    fleet.clock += fleet.r.choice((0, 1, 3))
    if run is None or fleet.idle_timeout is None:
        return
    source = fleet.sources[run.shard]
    if run.source == source.number and run.next == source.end and all(x.replayed() for x in run.chains):
        run.watermark = max(run.watermark, fleet.clock - fleet.idle_timeout - fleet.delay)


# ---- machines


def crash(fleet: Fleet) -> None:
    """An edge loses what isn't on its disk; it may be dead."""
    edge = fleet.r.choice(fleet.edges)
    if not edge.up:
        return
    for run in [*edge.runs.values(), *edge.zombies]:
        fleet.leave_in_flight(run)
    edge.up, edge.runs, edge.zombies = False, {}, []
    if fleet.r.random() < 0.3:  # its stored plan is an old one
        edge.plan = fleet.r.choice([None, *fleet.plans[: edge.plans_read]])
    owns = any(owner is edge and not shard.movable for shard, owner in fleet.owner.items())
    others = sum(not other.dead for other in fleet.edges) > 1
    edge.dead = not owns and fleet.r.random() < 0.2 and others
    fleet.seen["crashes"] += 1
    fleet.say(edge.name, "crashes")


def repair(fleet: Fleet) -> None:
    """An edge starts again, or reaches Kafka again."""
    edge = fleet.r.choice(fleet.edges)
    if not edge.up and not edge.dead:
        edge.up, edge.plans_read = True, 0
    elif not edge.connected:
        edge.connected = True


def disconnect(fleet: Fleet) -> None:
    """An edge loses Kafka."""
    fleet.r.choice(fleet.edges).connected = False


def move(fleet: Fleet) -> None:
    """A shard gets another owner. The old one may work on for a while, unaware."""
    movable = [shard for shard in fleet.shards if shard.movable]
    edge: Edge = fleet.r.choice(fleet.edges)
    if not movable:
        return
    shard = fleet.r.choice(movable)
    former = fleet.owner[shard]
    if edge.dead or edge is former:
        return
    run = former.runs.get(shard)
    fleet.owner[shard] = edge
    fleet.generations[shard] += 1
    if run:
        fleet.stop(run)
        if fleet.r.random() < 0.6:
            run.zombie = True
            former.zombies.append(run)
    fleet.seen["moves"] += 1
    fleet.say(shard.name, "moves to", edge.name)


def wake(fleet: Fleet) -> None:
    """Zombies learn that their shard has moved."""
    for run in [run for edge in fleet.edges for run in edge.zombies]:
        fleet.stop(run)


def arrive_late(fleet: Fleet) -> None:
    """A record of a run that has died arrives, and a commit that got no answer."""
    r = fleet.r
    if fleet.in_flight:
        sent = r.choice(fleet.in_flight)
        partition, record = sent.pop(0)
        fleet.append(partition, record)
        fleet.in_flight = [sent for sent in fleet.in_flight if sent]
        fleet.say("late record", record)
    if fleet.late:
        late = fleet.late.pop(r.randrange(len(fleet.late)))
        in_time = late.generation == fleet.generations[late.shard] or not fleet.on("fenced")
        if r.random() < 0.7 and in_time:
            fleet.store(late)


def read_plan(fleet: Fleet, edge: Edge | None = None) -> None:
    """An edge reads one plan or all."""
    edge = edge or fleet.r.choice(fleet.edges)
    if edge.up and edge.connected and edge.plans_read < len(fleet.plans):
        every = fleet.calm or fleet.r.random() < 0.3
        edge.plans_read = len(fleet.plans) if every else edge.plans_read + 1
        newest = fleet.plans[edge.plans_read - 1]
        if edge.plan is None or newest.version > edge.plan.version:
            edge.plan = newest
