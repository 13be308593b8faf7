"""All that a schedule is played with: processes, topics, what was asked for, and what was seen."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
from tests.model import counts, windows
from tests.model.counts import Count
from tests.model.edge import Edge
from tests.model.joiner import Partition
from tests.model.kafka import Durable, Heard, Log, Place
from tests.model.readings import WIDEST, Alert, Inputs, Reading, Shard
from tests.model.registry import Office
from tests.model.windows import WindowSum
from tests.stream_records import final_record

from tamis.messaging.records import Ack, Frontier
from tamis.plan.model import Plan

Key = tuple[str, int]  # a definition: alert and version

NEVER = -(2**62)  # below every event time


class Low:
    """What a partition held of a shard as the registry wrote its final record: all else is lost."""

    def __init__(self, shard: str, place: Place, version: int, log: Log) -> None:
        mine = [heard for heard in log.heard if heard.shard == shard]
        self.shard, self.place, self.version = shard, place, version
        self.progress = max((heard.time for heard in mine if heard.kind == "progress"), default=NEVER)
        self.had: dict[int, int] = {}  # reading -> greatest version
        for heard in mine:
            if heard.kind == "tuple":
                self.had[heard.number] = max(heard.version, self.had.get(heard.number, 0))


class World:
    """The state of a schedule. `now` is wall clock in microseconds, a step takes `tick`."""

    def __init__(self, seed: int, trace: bool = False) -> None:
        r = self.r = random.Random(seed)
        # In some schedules new queries are sent to topics at random: `tests.model.registry`.
        self.places = random.Random(f"{seed} places") if seed % 7 < 2 else None
        # In some schedules streams are altered; not where a tuple from the future waits for ever for partners
        # of an old definition.
        self.alters = seed % 13 in (0, 2, 4) and seed % 12 != 7
        # In some schedules a fetch from a topic of readings takes longer than a source looks for its end.
        links = random.Random(f"{seed} links")
        self.fetch_seconds = links.choice((0.5, 3.0, 8.0)) if seed % 11 == 7 else None
        # In some others the disks of edges are full for a while.
        self.disks = random.Random(f"{seed} disks") if seed % 11 == 4 else None
        self.trace: list[str] | None = [] if trace else None
        self.inputs = inputs = Inputs.draw(r)
        self.now, self.tick = 1_700_000_000_000_000, r.choice((100_000, 500_000, 1_000_000))
        self.stall = 60 * self.tick
        if inputs.max_delay is not None:
            inputs.max_delay *= self.tick
        self.seen: Counter[str] = Counter()
        self.broken: list[tuple[str, str]] = []
        # Topics
        self.plans: list[list[bytes]] = [[] for _ in range(inputs.partitions)]
        self.topics: dict[Place, Log] = {}
        self.acks: list[Ack] = []
        self.frontiers: list[Frontier] = []
        self.alarms: set[tuple[Key, int, int]] = set()
        # What was asked for
        self.every: dict[Key, Alert] = {}
        self.current: dict[str, Alert] = {}
        self.paused: dict[str, Alert] = {}
        self.replaced: dict[Alert, int] = {}
        self.ended: set[Alert] = set()
        # By stream, the greatest `v` that its CHECK accepts from each plan version on.
        self.limits: defaultdict[str, dict[int, int]] = defaultdict(dict)
        if self.alters:
            # Not from the schedule's own choices, which would all be others.
            first = random.Random(f"{seed} limits")
            for stream in inputs.streams:
                self.limits[stream][0] = first.choice((inputs.top - 2, inputs.top - 1, WIDEST))
        self.begun: dict[Key, int] = {}  # shard and plan -> from which offset on its stream began anew
        # In some schedules a stream without time is counted, too.
        self.counts: dict[Key, Count] = {}
        self.counting: dict[str, Count] = {}
        self.uncounted: set[Key] = set()
        self.recounted: dict[Key, Key] = {}  # old -> new
        # In some others there are aggregates over windows of a stream with time.
        self.window_sums: dict[Key, WindowSum] = {}
        self.summing: dict[str, WindowSum] = {}
        self.resummed: dict[Key, Key] = {}  # old -> new
        self.unsummed: set[Key] = set()
        self.rows: defaultdict[Key, dict[str, dict[str, Any]]] = defaultdict(dict)  # by id
        # What was seen
        self.history: dict[int, set[Key]] = {}
        self.topics_of: dict[tuple[str, int, str], set[str]] = {}  # definition and stream
        self.documents: dict[int, bytes] = {}
        self.published: dict[Place, int] = {}
        self.lows: list[Low] = []
        # Shards that were declared gone, with the offset up to which they were decided then.
        self.silent: dict[str, int] = {}
        # Processes
        self.edges = [Edge(self, f"e{i}") for i in range(r.choice((2, 2, 3)))]
        self.owner: dict[str, Edge] = {}
        self.shards: dict[str, Shard] = {}
        for stream in inputs.streams:
            kind = r.choice(("kafka", "kafka", "journal", "file"))
            for i in range(r.choice((1, 1, 2))):
                edge = r.choice(self.edges) if kind == "kafka" else self.edges[i]
                name = f"{stream}:{f'readings/{i}' if kind == 'kafka' else f'{edge.name}/{kind}'}"
                self.shards[name] = Shard(name, stream, kind, inputs.log(name))
                self.owner[name] = edge
        self.swallowed = seed % 12 == 7
        if seed % 6 == 1:
            # In half of these edges of an older release take it, and are upgraded in the middle.
            self._add_future(random.Random(f"{seed} future"))
        if seed % 4 == 1:
            self._count()
        if seed % 9 == 4:
            self._sum_windows(random.Random(f"{seed} windows"))
        self.durable = {name: Durable() for name in self.shards}
        self.joiners = [Partition(self, p) for p in range(inputs.partitions)]
        self.office = Office(self)

    def _add_future(self, r: random.Random) -> None:
        """Some shards have a reading from the future; not files, whose times are their own."""
        for shard in self.shards.values():
            if shard.kind != "file" and r.random() < 0.6:
                shard.swallows = self.swallowed
                self.inputs.add_future(r, shard)
                self.seen["future readings"] += 1

    def _count(self) -> None:
        """Add a stream without time: two shards at most, since a shard is some digits of a number."""
        r = random.Random(f"{self.r.random()} counts")
        kind = r.choice(("kafka", "kafka", "journal", "file"))
        names: list[str] = []
        for i in range(r.choice((1, 2))):
            edge = r.choice(self.edges) if kind == "kafka" else self.edges[i]
            name = f"{counts.STREAM}:{f'counted/{i}' if kind == 'kafka' else f'{edge.name}/{kind}'}"
            names.append(name)
            log = []
            for offset in range(r.randint(3, counts.MOST)):
                reading = self.inputs.reading(name, offset, offset, r.choice(self.inputs.keys))
                reading.w = counts.digit(name, offset, names)
                log.append(reading)
            self.shards[name] = Shard(name, counts.STREAM, kind, log)
            self.owner[name] = edge

    def _sum_windows(self, r: random.Random) -> None:
        """Add a stream with time whose windows are summed: two shards at most."""
        kind = r.choice(("kafka", "kafka", "journal", "file"))
        shards = []
        for i in range(r.choice((1, 2))):
            edge = r.choice(self.edges) if kind == "kafka" else self.edges[i]
            name = f"{windows.STREAM}:{f'windows/{i}' if kind == 'kafka' else f'{edge.name}/{kind}'}"
            shards.append(Shard(name, windows.STREAM, kind, self.inputs.log(name)))
            self.shards[name] = shards[-1]
            self.owner[name] = edge
        windows.add_digits(shards)

    @property
    def windowed(self) -> bool:
        """True if there is a stream whose windows are summed."""
        return any(shard.stream == windows.STREAM for shard in self.shards.values())

    @property
    def counted(self) -> bool:
        """True if there is a stream without time."""
        return any(shard.stream == counts.STREAM for shard in self.shards.values())

    def say(self, *what: Any) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace.append(" ".join(map(str, what)))

    # ---- topics

    def create(self, topics: tuple[str, ...]) -> None:
        """Create topics."""
        for topic in topics:
            for p in range(self.inputs.partitions):
                self.topics.setdefault((topic, p), Log())

    def append(self, topic: str, partition: int, value: bytes) -> Heard:
        """A record arrives in a stream topic."""
        return self.topics[topic, partition].append(value)

    def write_plan(self, partition: int, plan: Plan, document: bytes) -> None:
        """A plan arrives in a partition of the plan topic."""
        if self.documents.setdefault(plan.version, document) != document:
            self.broken.append(("PLAN", f"two plans of version {plan.version}"))
        last = self.plans[partition][-1:]
        if last and orjson.loads(last[0])["version"] > plan.version:
            self.broken.append(("PLAN", f"version {plan.version} behind a later one"))
        self.plans[partition].append(document)
        self.history[plan.version] = {(d.alert, d.version) for d in plan.queries}
        for definition in plan.queries:
            for source in definition.inputs:
                of = self.topics_of.setdefault((definition.alert, definition.version, source.stream), set())
                of.add(source.topic)
        self.say("plan", plan.version, "in", partition, sorted(self.history[plan.version]), plan.since)

    def write_final(self, topic: str, partition: int, shard: str, version: int) -> None:
        """The registry's final record of a shard arrives."""
        place = topic, partition
        self.lows.append(Low(shard, place, version, self.topics[place]))
        self.append(topic, partition, final_record(shard, version))
        self.say("final of", shard, version, "in", topic, partition)

    def take_ack(self, value: bytes) -> None:
        """An acknowledgement arrives."""
        self.acks.append(Ack.from_bytes(value))
        ack = self.acks[-1]
        self.say("ack", ack.shard, ack.state, ack.plan, "from", ack.activation)

    def take_frontier(self, frontier: Frontier) -> None:
        """The joiner's record of one output partition arrives."""
        self.frontiers.append(frontier)
        for topic, state in frontier.topics.items():
            if state.frontier is not None:
                place = topic, frontier.partition
                self.published[place] = max(state.frontier, self.published.get(place, NEVER))

    def take_alarms(self, alarms: list[dict[str, Any]]) -> None:
        """Alarms arrive: they say what they were raised by, and as it was."""
        for alarm in alarms:
            key = alarm["alert"], alarm["definition"]
            if key in self.counts or key in self.window_sums:
                before = self.rows[key].setdefault(alarm["id"], alarm)
                if before["row"] != alarm["row"]:
                    self.broken.append(("TWO ROWS", f"{before} and {alarm} have one identity"))
                continue
            numbers = [alarm["tuples"][alias]["n"] for alias in "ab"]
            for alias, number in zip("ab", numbers, strict=True):
                reading = self.inputs.by_number[number]
                for column, value in alarm["tuples"][alias].items():
                    if value != getattr(reading, {"ts": "t", "n": "number"}.get(column, column)):
                        self.broken.append(("VALUE", f"{alarm} of {reading}"))
            self.alarms.add((key, numbers[0], numbers[1]))
            self.say("alarm", key, *(self.inputs.by_number[number] for number in numbers))

    # ---- what was asked for

    def define(self, made: Alert, old: Alert | None, version: int) -> None:
        """A definition is in force."""
        if made.version != version:
            self.broken.append(("PLAN", f"{made} came in plan {version}"))
        made = self.made(made, version)
        self.every[made.name, made.version] = made
        self.current[made.name] = made
        self.paused.pop(made.name, None)
        if old is not None:
            self.replaced[old] = version

    def alter(self, stream: str, limit: int, version: int) -> None:
        """A stream has another CHECK: the alerts that read it have new definitions."""
        self.limits[stream][version] = limit
        for alert in list(self.current.values()):
            if stream in alert.streams:
                self.define(self.made(alert, version), alert, version)
        self.seen["altered"] += 1

    def made(self, alert: Alert, version: int) -> Alert:
        """A definition that a version makes of an alert."""
        limits = tuple((stream, self.limit(stream, version)) for stream in dict.fromkeys(alert.streams))
        return replace(alert, version=version, limits=limits)

    def limit(self, stream: str, version: int) -> int:
        """The greatest `v` that a stream accepts under a plan version."""
        known = [(n, limit) for n, limit in self.limits[stream].items() if n <= version]
        return max(known)[1] if known else WIDEST

    def accepts(self, reading: Reading) -> bool:
        """True if the CHECK accepts a reading under the plan under which its shard has read it."""
        begun = self.durable[reading.shard].begun
        version = max((n for n, offset in begun.items() if offset <= reading.offset), default=0)
        return reading.v <= self.limit(self.shards[reading.shard].stream, version)

    def end(self, name: str, paused: bool) -> None:
        """DROP and PAUSE end what was promised, of replaced definitions too."""
        if paused:
            self.paused[name] = self.current[name]
        else:
            self.paused.pop(name, None)
        self.current.pop(name, None)
        self.ended |= {alert for alert in self.every.values() if alert.name == name}

    def begin_anew(self, streams: Iterable[str], version: int) -> None:
        """Streams begin anew: what reads them is a new definition, and promises nothing of before."""
        for name, alert in list(self.current.items()):
            if set(alert.streams) & set(streams):
                self.end(name, paused=True)
                self.define(replace(alert, version=version), None, version)
        self.seen["begun anew"] += 1
        if not self.swallowed:
            self.broken.append(("ANEW", f"{streams} begin anew without a reading from the future"))

    def forget(self, shard: str, version: int, offset: int) -> None:
        """A shard takes up a plan in which its stream begins anew: readings before `offset` don't count."""
        self.begun[shard, version] = max(offset, self.begun.get((shard, version), 0))

    def count(self, made: Count, old: Count | None, version: int) -> None:
        """A standing query is in force."""
        key = made.name, made.version
        if made.version != version:
            self.broken.append(("PLAN", f"{made} came in plan {version}"))
        self.counts[key] = self.counting[made.name] = made
        if old is not None:
            self.recounted[old.name, old.version] = key

    def sum_windows(self, made: WindowSum, old: WindowSum | None, version: int) -> None:
        """An aggregate over windows is in force."""
        key = made.name, made.version
        if made.version != version:
            self.broken.append(("PLAN", f"{made} came in plan {version}"))
        self.window_sums[key] = self.summing[made.name] = made
        if old is not None:
            self.resummed[old.name, old.version] = key

    def unsum(self, name: str) -> None:
        """DROP ends what was promised."""
        del self.summing[name]
        self.unsummed |= {key for key in self.window_sums if key[0] == name}

    def taken_up(self, shard: str, key: Key) -> float:
        """From which offset on a shard of a stream with time serves a definition."""
        begun = self.durable[shard].begun
        plans = [plan for plan in begun if plan >= key[1] and key in self.history[plan]]
        return begun[min(plans)] if plans else math.inf

    def uncount(self, name: str) -> None:
        """DROP ends what was promised."""
        del self.counting[name]
        self.uncounted |= {key for key in self.counts if key[0] == name}

    def begins(self, shard: str, alert: str, version: int) -> float:
        """From which offset on a shard obeys a standing query."""
        born = self.durable[shard].commit.born
        return min(
            (
                max(0, ack.activation - born)
                for ack in self.acks
                if ack.shard == shard
                and ack.state != "waiting"
                and ack.plan >= version
                and (alert, version) in self.history[ack.plan]
            ),
            default=math.inf,
        )
