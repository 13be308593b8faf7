"""One edge: the real workers, runs and publisher, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch
from zlib import crc32

from tests.model.kafka import Landing, Producer, Source, Spool, Waiting, cut_once, decode_once
from tests.model.link import FarSource
from tests.model.readings import Shard

from tamis.messaging.topics import ACKS, DEAD_LETTERS
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.publishing import publisher
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.shards.worker import Worker

if TYPE_CHECKING:
    from tests.model.world import World

_METRICS = Metrics("edge")
_SETTINGS = KafkaSettings()


class Edge:
    """A machine with a disk (the last plan, the spool), and while it is up a process."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.up, self.dead, self.connected, self.muted = False, False, True, False
        self.disk_full = False
        self.disk: bytes | None = None
        self.spooled: dict[int, Waiting] = {}
        self.landings: list[Landing] = []
        self.workers: dict[str, Worker] = {}
        self.zombies: list[Worker] = []

    # ---- life

    def start(self) -> None:
        """A new process: the plan of its disk, and the shards that are its own."""
        self.up, self.document = True, self.disk
        self._read = [0] * self.world.inputs.partitions
        self.producer, spool = Producer(), Spool(self.spooled, lambda: self.disk_full)
        for shard in self.world.shards.values():
            if self.world.owner[shard.name] is self and shard.kind != "kafka":
                commit = self.world.durable[shard.name].commit
                number = None if commit.watched is None else commit.watched.number
                spool.delete_from(shard.name, commit.born + commit.decided, number)
        with patch.object(publisher, "Producer", lambda config: self.producer):
            self.publisher = publisher.Publisher(
                _SETTINGS,
                self.name,
                cast(Any, spool),
                DeadLetterFiles(Path("never written"), 0),
                _METRICS,
                clock=lambda: self.world.now / 1e6,
            )
        for shard in self.world.shards.values():
            if self.world.owner[shard.name] is self:
                self.adopt(shard)

    def crash(self) -> None:
        """The process ends: what is on its way may arrive, and a commit may be made, unknown to it."""
        r = self.world.r
        while self.connected and self.producer.queue and r.random() < 0.5:
            self._arrive(first=True)
        for landing in self.landings:
            if r.random() < 0.5 and (self.connected or not landing.source.movable):
                landing.land(fails=False)
        self.up, self.workers, self.zombies, self.landings = False, {}, [], []

    def adopt(self, shard: Shard) -> None:
        """A shard is assigned to it."""
        durable = self.world.durable[shard.name]
        slow = self.world.fetch_seconds
        if shard.kind == "kafka" and slow is not None:
            source: Source = FarSource(shard, durable, self.landings, self, slow)
        else:
            source = Source(shard, durable, self.landings)
        durable.source = source
        self.workers[shard.name] = Worker(source, self.name, self.publisher, _METRICS)

    def release(self, shard: Shard, told: bool) -> None:
        """A shard moves elsewhere: it commits and lets go, or doesn't know yet."""
        worker = self.workers.pop(shard.name, None)
        if worker is None:
            return
        if told:
            last = worker.last_commit()
            if last is not None and self.connected:
                self.world.durable[shard.name].keep(last, cast(Any, worker.source))
        else:
            self.zombies.append(worker)

    def all_workers(self) -> list[Worker]:
        """Those whose shard is elsewhere by now, too."""
        return [*self.workers.values(), *self.zombies]

    # ---- steps

    @property
    def plan(self) -> Plan | None:
        """The whole plan, of which each shard gets its part."""
        return None if self.document is None else decode_once(self.document)

    def read_plans(self, most: int | None) -> None:
        """Read on in one partition of the plan topic: in any, without a limit in the edge's own."""
        world = self.world
        if not self.connected:
            return
        count = world.inputs.partitions
        p = world.r.randrange(count) if most else crc32(self.name.encode()) % count
        found = world.plans[p][self._read[p] :][:most]
        self._read[p] += len(found)
        for value in found:
            if self.plan is None or decode_once(value).version > self.plan.version:
                self.document = self.disk = value
                world.say(self.name, "has plan", self.plan and self.plan.version)

    def listen(self) -> None:
        """One turn of the sources whose readings come over a link."""
        for worker in self.all_workers():
            if isinstance(worker.source, FarSource):
                worker.source.turn()

    def obey(self, worker: Worker) -> None:
        """Take up the plan."""
        before = worker.run.version if worker.run else None
        plan = None if self.document is None else cut_once(self.document, worker.source.stream)
        worker.obey(plan, False, self.world.now)
        run = worker.run
        if run and run.version != before and run.version > run.durable.version:
            cast(Any, worker.source).taken_up[run.version] = run.next_offset
        if (run and run.version) != before:
            self._note_anew(worker, before)
            what = f"obeys {run.version} from {run.activation} at {run.durable}" if run else "stops"
            self.world.say(self.name, worker.source.name, what)

    def _note_anew(self, worker: Worker, before: int | None) -> None:
        """Note from where on a shard counts whose stream begins anew in the plan that it has taken up."""
        run = worker.run
        stream = None if self.plan is None else self.plan.stream(worker.source.stream)
        if run is not None and stream is not None:
            since = run.durable.version if before is None else before
            if since < stream.anew:
                self.world.forget(worker.source.name, stream.anew, run.next_offset)

    def read(self, worker: Worker, limit: int) -> int:
        """Take a micro-batch."""
        count = worker.read(limit, self.world.now)
        if count:
            assert worker.run is not None
            self.world.say(self.name, worker.source.name, "reads", count, "to", worker.run.next_offset)
        return count

    def settle(self, worker: Worker) -> None:
        """Decide, and hand to the publisher."""
        worker.settle(self.world.now)

    def deliver(self, count: int) -> None:
        """The broker takes records."""
        while self.connected and self.producer.queue and count:
            self._arrive(first=False)
            count -= 1

    def land(self, all_of_them: bool = False) -> None:
        """A commit becomes durable."""
        r = self.world.r
        while self.landings:
            at = r.randrange(len(self.landings))
            landing = self.landings[at]
            if landing.source.movable and not self.connected:
                return
            no_room = self.disk_full and not landing.source.movable
            self.landings.pop(at).land(fails=no_room or (not all_of_them and r.random() < 0.05))
            self.world.say(self.name, "commit lands", landing.source.name, landing.source.durable.commit)
            if not all_of_them:
                return

    def commit(self, worker: Worker) -> None:
        """Finish a commit, and begin another."""
        worker.commit(self.world.now, at_once=True)

    def speak(self, worker: Worker) -> None:
        """Acknowledge, or give a sign of life."""
        if not self.muted:
            worker.report(self.world.now)

    def turn(self, steps: int) -> None:
        """The first so many steps of what brings readings on their way."""
        r, mine = self.world.r, self.all_workers()
        every: list[Callable[[], object]] = [lambda: self.read_plans(3)] if r.random() < 0.5 else []
        for worker in mine:
            every += [partial(self.obey, worker), partial(self.read, worker, r.choice((1, 3, 10)))]
            every += [partial(self.settle, worker)]
        every += [self.publisher.poll, partial(self.deliver, 20), self.publisher.poll]
        every += [partial(self.commit, worker) for worker in mine]
        every += [partial(self.land, True), *(partial(self.commit, worker) for worker in mine)]
        every += [partial(self.settle, worker) for worker in mine]
        every += [partial(self.speak, worker) for worker in mine]
        every += [partial(self.deliver, 20), self.publisher.poll]
        for step in every[:steps]:
            step()

    def _arrive(self, first: bool) -> None:
        record = self.producer.deliver_first() if first else self.producer.deliver(self.world.r)
        if record.topic == ACKS:
            self.world.take_ack(record.value)
        elif record.topic == DEAD_LETTERS:
            self.world.seen["dead letters"] += 1
        else:
            heard = self.world.append(record.topic, record.partition, record.value)
            self.world.say(self.name, "sends", record.topic, record.partition, heard)
