"""Watched streams of a shard under random schedules, compared with a direct computation over all readings.

The shard crashes between any two steps and continues from its last commit. Readings come out of order, and
some are late. The oracle reads the whole log once, without batches, commits and crashes.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import pytest
from tests.unit.edge.plans import TEMP, TOPIC, air, entry, plan, topic

from tamis.declarations.watches import NamedPattern, Watch, watched_name
from tamis.expressions.nodes import Call, Expr, Type
from tamis.expressions.vectors import Vector
from tamis.operators.time_join import key_table
from tamis.plan.model import Plan, StreamColumn, StreamPlan
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

SHARD = "air:source/0"
SEED = 20_261_123
MAX_GAP = 20
RISE = NamedPattern("rise", (0.0, 1.0, 3.0), MAX_GAP)
PEAK = NamedPattern("peak", (0.0, 2.0, 2.0, 0.0), MAX_GAP)
FALL = NamedPattern("fall", (2.0, 1.0, 0.0), 9)


def watch(*patterns: NamedPattern, epsilon: float = 0.35) -> Watch:
    return Watch(TEMP, "ANY", patterns, epsilon)


def similar(one: Watch) -> Expr:
    return Call("not", (Call("is_null", (one.distance,), Type.BOOLEAN),), Type.BOOLEAN)


def dissimilar(one: Watch) -> Expr:
    return Call("is_null", (one.distance,), Type.BOOLEAN)


def watched(
    one: Watch, filter_: Expr, number: int, delay: int, *, interval: int = 0, counted: bool = False
) -> StreamPlan:
    base = air([], delay)
    name = watched_name("air", (one,))
    columns = tuple(StreamColumn(column.name, column.type, False, None) for column in one.columns)
    made = topic(
        [entry(interval, filter=filter_, sides="above")],
        f"tamis.stream.{name}.{number}",
        columns=("temp", one.pattern_column.name),
        counted=counted,
    )
    return replace(
        base,
        name=name,
        columns=(*base.columns, *columns),
        topics=(made,),
        base="air",
        series_key=("station",),
        watches=(one,),
    )


@dataclass(frozen=True)
class Reading:
    offset: int
    station: str
    time: int
    temp: float | None


# ---- the oracle


def on_time(log: Sequence[Reading], delay: int) -> list[Reading]:
    found, greatest = [], -math.inf
    for reading in log:
        if reading.time >= greatest - delay:
            found.append(reading)
        greatest = max(greatest, reading.time)
    return found


def distance(pattern: NamedPattern, window: Sequence[Reading]) -> float | None:
    """The least distance over all scales above 0 and all shifts; None if there is none."""
    values = [one.temp for one in window]
    if any(b.time - a.time > pattern.max_gap for a, b in itertools.pairwise(window)):
        return None
    known = [value for value in values if value is not None]
    n = len(pattern.values)
    if len(known) < n or len(set(known)) == 1:
        return None
    q, s = sum(pattern.values) / n, sum(known) / n
    covariance = sum((x - q) * (y - s) for x, y in zip(pattern.values, known, strict=True))
    if covariance <= 0:
        return None
    of_pattern = sum((x - q) ** 2 for x in pattern.values)
    of_window = sum((y - s) ** 2 for y in known)
    return math.sqrt(max(of_pattern - covariance**2 / of_window, 0) / n)


def nearest(one: Watch, log: Sequence[Reading], delay: int) -> dict[int, str]:
    """The nearest pattern at each reading that is on time, by offset; "" if none matches."""
    found = {}
    series: dict[str, list[Reading]] = {}
    for reading in sorted(on_time(log, delay), key=lambda r: (r.time, r.offset)):
        mine = series.setdefault(reading.station, [])
        mine.append(reading)
        near = []
        for place, pattern in enumerate(one.patterns):
            window = mine[-len(pattern.values) :]
            least = distance(pattern, window) if len(window) == len(pattern.values) else None
            if least is not None and least <= one.epsilon:
                near.append((least, place, pattern.name))
        found[reading.offset] = min(near)[2] if near else ""
    return found


# ---- the shard


@dataclass
class World:
    """A shard with its log, commit and spool, and the records that have arrived by topic and partition."""

    random: random.Random
    log: list[Reading]
    movable: bool
    plan: Plan
    commit: Commit = field(default_factory=Commit)
    run: ShardRun | None = None
    now: int = 0
    queue: list[Record] = field(default_factory=list)
    spool: list[tuple[int, Record]] = field(default_factory=list)
    sent: dict[int, tuple[int, Record]] = field(default_factory=dict)  # from the spool, in the queue
    arrived: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    cut_off: bool = False
    most_reread: int = 0
    widened: bool = False  # plans after the first have another column

    def start(self) -> None:
        if self.run is not None:
            return
        number = None if self.commit.watched is None else self.commit.watched.number
        decided = self.commit.born + self.commit.decided
        if not self.movable:
            self.spool = [
                (place, record)
                for place, record in self.spool
                if (place < decided if place >= 0 else number is None or place > ~number)
            ]
        self.run = ShardRun(SHARD, "air", self.commit, self.plan, now=self.now)
        self.most_reread = max(self.most_reread, self.commit.read - self.run.next_offset)

    def obey(self) -> None:
        if self.run is not None and self.plan.version > self.run.version and not self.run.rereading:
            self.run.obey(self.plan, self.now)

    def read(self) -> None:
        run = self.run
        if run is None or run.settling:
            return
        rows = self.log[run.next_offset : run.next_offset + self.random.choice([1, 1, 3, 10, 40])]
        if rows:
            run.take(batch(rows, self.now, wide=run.version > 1 and self.widened), self.now)
        run.settle(self.now)

    def send(self) -> None:
        for _ in range(self.random.choice([1, 3, 100])):
            if self.run is None or not self.run.out:
                return
            record = self.run.out.popleft()
            if not self.movable and (self.cut_off or self.spool):
                if self.run.carries_tuple(record.token):
                    self.spool.append((self.run.place(record.token), record))
                    self.run.safe(record.token)
                else:
                    self.run.retract(record.token)
            else:
                self.queue.append(record)

    def deliver(self) -> None:
        """Kafka takes records, in order within a partition."""
        if self.cut_off or self.run is None:
            return
        while self.spool and len(self.queue) < 5:
            place, record = self.spool.pop(0)
            self.sent[id(record)] = place, record
            self.queue.append(record)
        for _ in range(self.random.choice([1, 3, 100])):
            if not self.queue:
                return
            where = self.random.choice(self.queue)
            at = next(
                i
                for i, one in enumerate(self.queue)
                if (one.topic, one.partition) == (where.topic, where.partition)
            )
            record = self.queue.pop(at)
            self._arrive(record)
            if self.sent.pop(id(record), None) is None:
                self.run.safe(record.token)

    def make_commit(self) -> None:
        if self.run is None or (commit := self.run.commit()) is None:
            return
        if self.random.random() < 0.1:
            self.run.commit_failed()
            return
        assert commit.done >= self.commit.done
        assert commit.decided >= self.commit.decided
        self.commit = commit if self.movable else stored(commit)
        if self.random.random() < 0.1:
            self.crash()
        else:
            self.run.committed(self.now)

    def crash(self) -> None:
        self.run = None
        while self.queue and not self.cut_off and self.random.random() < 0.5:
            record = self.queue.pop(0)
            self.sent.pop(id(record), None)
            self._arrive(record)
        # What came from the spool and did not arrive is still in the spool.
        self.spool = [self.sent[id(one)] for one in self.queue if id(one) in self.sent] + self.spool
        self.queue, self.sent = [], {}

    def end(self) -> None:
        """Play on without crashes until everything is published and committed."""
        self.cut_off = False
        for _ in range(1000):
            self.now += 1
            self.start()
            self.obey()
            self.read()
            assert self.run is not None
            if self.run.next_offset == len(self.log) and self.run.version == self.plan.version:
                self.run.finish()
                self.run.settle(self.now)
            self.send()
            self.deliver()
            self.make_commit()
            if self.ended():
                return
        raise AssertionError("the shard does not come to its end")

    def ended(self) -> bool:
        return self.run is not None and self.run.final_version == self.plan.version

    def _arrive(self, record: Record) -> None:
        self.arrived.setdefault((record.topic, record.partition), []).append(orjson.loads(record.value))

    def published(self, name: str) -> list[dict[str, Any]]:
        """The tuples of a topic, partition after partition."""
        return [
            one
            for (of, _), values in sorted(self.arrived.items())
            if of == name
            for one in values
            if "kind" not in one["_"]
        ]


def stored(commit: Commit) -> Commit:
    """A commit as it comes back from Kafka."""
    return Commit.from_metadata(commit.done, commit.to_metadata())


def batch(rows: Sequence[Reading], now: int, *, wide: bool = False) -> Batch:
    columns = {
        "station": Vector.from_list([row.station for row in rows], Type.VARCHAR),
        "ts": Vector(np.array([row.time for row in rows], np.int64)),
        "temp": Vector.from_list([row.temp for row in rows], Type.DOUBLE),
    }
    if wide:
        columns["n"] = Vector.from_list([row.offset for row in rows], Type.BIGINT)
    return Batch(columns, columns["ts"].data, np.array([row.offset for row in rows]), np.full(len(rows), now))


def make_log(r: random.Random, delay: int, count: int) -> list[Reading]:
    """Values are different for each reading, so that a published tuple tells which reading it is."""
    out: list[Reading] = []
    base = 1000
    for offset in range(count):
        base += r.choice([0, 1, 1, 2]) + (r.random() < 0.02) * 2 * MAX_GAP
        late = r.random() < 0.05
        time = base - r.randint(0, delay) - (delay + r.randint(1, 9) if late else 0)
        temp = None if r.random() < 0.03 else r.randint(0, 4) + offset / 2**20
        # One of the stations is seldom heard of, so that its series holds back the commit.
        out.append(Reading(offset, r.choices("abc", (8, 8, 1))[0], time, temp))
    return out


def offsets(found: Sequence[dict[str, Any]], log: Sequence[Reading]) -> Iterator[int]:
    """The offsets of published tuples."""
    known = {reading.temp: reading.offset for reading in log if reading.temp is not None}
    for one in found:
        assert "late" not in one["_"]
        yield known[one["temp"]]


def play(world: World, steps: int, plans: Sequence[Plan] = ()) -> None:
    r = world.random
    weights = {world.start: 4, world.obey: 1, world.read: 8, world.send: 8, world.deliver: 8}
    weights |= {world.make_commit: 5, world.crash: 1}
    changes = sorted(r.sample(range(steps), len(plans)))
    for number, step in enumerate(r.choices(list(weights), list(weights.values()), k=steps)):
        world.now += 1
        world.cut_off ^= r.random() < 0.03
        if number in changes:
            world.plan = plans[changes.index(number)]
        step()
    if plans:
        world.plan = plans[-1]
    world.end()


@pytest.mark.parametrize("block", range(2))
@pytest.mark.parametrize("counted", [False, True])
def test_each_match_is_published_and_nothing_else(block: int, counted: bool) -> None:
    matches = reread = 0
    for i in range(30):
        seed = SEED + 1000 * block + i
        r = random.Random(seed)
        delay = r.choice([0, 3, 9])
        one, none = watch(RISE, PEAK), watch(FALL)
        log = make_log(r, delay, r.randint(20, 300))
        streams = [
            watched(one, similar(one), 1, delay, counted=counted),
            watched(none, dissimilar(none), 2, delay, counted=counted),
        ]
        found = plan(air([topic([entry(0)])], delay), [SHARD])
        found = replace(found, streams=(*found.streams, *streams))
        world = World(r, log, r.random() < 0.5, found)
        play(world, 150)
        reread += world.most_reread
        expected = nearest(one, log, delay)
        similar_ones = world.published(streams[0].topics[0].name)
        names = [one.pattern_column.name]
        if counted:
            similar_ones = counted_once(world, streams[0])
        got = list(offsets(similar_ones, log))
        # A tuple without a value has no number here; it matches nothing.
        assert set(got) == {offset for offset, name in expected.items() if name}, seed
        assert [value[names[0]] for value in similar_ones] == [expected[offset] for offset in got], seed
        matches += len(set(got))
        others = nearest(none, log, delay)
        if counted:
            assert len(got) == len(set(got)), seed
            dissimilar_ones = counted_once(world, streams[1])
        else:
            published = world.published(streams[1].topics[0].name)
            dissimilar_ones = [value for value in published if "late" not in value["_"]]
        missing = [value for value in dissimilar_ones if value["temp"] is not None]
        got = list(offsets(missing, log))
        wanted = {offset for offset, name in others.items() if not name and log[offset].temp is not None}
        assert set(got) == wanted, seed
        assert not counted or len(got) == len(wanted), seed
        # The stream itself is not touched by any of this.
        assert {value["temp"] for value in world.published(TOPIC)} == {reading.temp for reading in log}
    assert matches > 200
    assert reread > 500


def wide(found: Plan, version: int) -> Plan:
    """A plan in which the stream has another column."""
    added = StreamColumn("n", Type.BIGINT, False, None)
    streams = tuple(replace(s, columns=(*s.columns[:3], added, *s.columns[3:])) for s in found.streams)
    return replace(found, version=version, streams=streams)


def test_series_go_on_when_the_stream_gets_a_column() -> None:
    matches = 0
    for i in range(25):
        r = random.Random(SEED + i)
        delay = r.choice([0, 3, 9])
        one = watch(RISE, PEAK)
        log = make_log(r, delay, r.randint(60, 300))
        stream = watched(one, similar(one), 1, delay)
        found = plan(air([topic([entry(0)])], delay), [SHARD])
        found = replace(found, streams=(*found.streams, stream))
        world = World(r, log, r.random() < 0.5, found, widened=True)
        play(world, 120, [wide(found, 2)])
        expected = nearest(one, log, delay)
        got = set(offsets(world.published(stream.topics[0].name), log))
        assert got == {offset for offset, name in expected.items() if name}, i
        assert {value["temp"] for value in world.published(TOPIC)} == {reading.temp for reading in log}
        matches += len(got)
    assert matches > 100


def counted_once(world: World, stream: StreamPlan) -> list[dict[str, Any]]:
    """The tuples that a standing query takes: of a shard and partition those whose positions rise."""
    name, found = stream.topics[0].name, []
    for (of, _), values in sorted(world.arrived.items()):
        taken = -1
        for one in values:
            envelope: dict[str, Any] = one["_"]
            place = envelope.get("place")
            if of != name or not isinstance(place, int):
                continue
            if envelope.get("kind") == "progress":
                taken = max(taken, place - 1)
            elif place > taken:
                taken = place
                found.append(one)
    return found


def with_watched(streams: Sequence[StreamPlan], delay: int, version: int = 1) -> Plan:
    found = plan(air([topic([entry(0)])], delay), [SHARD], version)
    return replace(found, streams=(*found.streams, *streams))


def test_other_watched_streams_come_and_go_and_a_stream_loses_no_match() -> None:
    matches = 0
    for seed in range(SEED, SEED + 25):
        r = random.Random(seed)
        delay = r.choice([0, 5])
        stays, comes = watch(RISE, PEAK), watch(FALL, RISE, PEAK)
        log = make_log(r, delay, 200)
        first = watched(stays, similar(stays), 1, delay)
        second = watched(comes, similar(comes), 2, delay)
        sets = [[first], [first, second], [second, first], [first]]
        plans = [with_watched(one, delay, version) for version, one in enumerate(sets, 1)]
        world = World(r, log, r.random() < 0.5, plans[0])
        play(world, 150, plans[1:])
        expected = {offset for offset, name in nearest(stays, log, delay).items() if name}
        assert set(offsets(world.published(first.topics[0].name), log)) == expected, seed
        others = {offset for offset, name in nearest(comes, log, delay).items() if name}
        assert set(offsets(world.published(second.topics[0].name), log)) <= others, seed
        matches += len(expected)
    assert matches > 300


def test_a_new_watched_stream_begins_with_empty_series_at_its_activation() -> None:
    one = watch(RISE)
    log = [Reading(i, "a", 10 + i, float(value)) for i, value in enumerate([0, 1, 3, 0, 1, 3, 0, 1, 3])]
    world = World(random.Random(1), log, True, with_watched([], 0))
    world.start()
    assert world.run is not None
    world.run.take(batch(log[:4], 0), 0)
    world.plan = with_watched([watched(one, similar(one), 1, 0)], 0, 2)
    world.obey()
    world.run.take(batch(log[4:], 0), 0)
    assert world.run.activation == 14
    world.send()
    found = [
        orjson.loads(record.value) for record in (*world.queue, *world.run.out) if "similar" in record.topic
    ]
    assert [value["ts"] for value in found] == [18]


def test_late_readings_have_no_match_and_pass_only_filters_that_admit_that() -> None:
    one = watch(RISE)
    streams = [watched(one, similar(one), 1, 2), watched(one, dissimilar(one), 2, 2)]
    streams[1] = replace(streams[1], name="air_similar_b")
    rows = [
        Reading(i, "a", time, float(v))
        for i, (time, v) in enumerate([(10, 0), (11, 1), (20, 3), (12, 2), (30, 5)])
    ]
    run = ShardRun(SHARD, "air", Commit(), with_watched(streams, 2))
    run.take(batch(rows, 0), 0)
    run.finish()
    run.settle(0)
    sent = [(record.topic.rpartition(".")[2], orjson.loads(record.value)) for record in run.out]
    found = [
        (topic_, value["ts"], value["_"].get("late", False))
        for topic_, value in sent
        if topic_ != "1" or "pattern_ANY" in str(value)
    ]
    late = [one for one in found if one[2]]
    assert [(topic_, ts) for topic_, ts, _ in late if topic_ == "2"] == [("2", 12)]
    counts, matches = run.take_watched_counts(), run.watched.take_matches()
    # The windows that end at 20 and at 30 rise.
    assert (matches, counts.late, counts.published, counts.omitted) == ({"ANY": 2}, 1, 4, 0)
    raw = run.take_counts()
    assert (raw.published, raw.late, raw.filtered, raw.omitted) == (4, 1, 0, 0)


def test_what_an_earlier_release_committed_is_where_series_begin() -> None:
    one = watch(RISE)
    found = with_watched([watched(one, similar(one), 1, 0)], 0, 2)
    run = ShardRun(SHARD, "air", Commit(3, 50, 1, 7, 100, 5), found, now=1_000)
    rows = [
        Reading(i, "a", time, float(v)) for i, (time, v) in enumerate([(49, 0), (50, 0), (51, 1), (52, 3)], 3)
    ]
    run.take(batch(rows, 1_000), 1_000)
    values = [orjson.loads(record.value) for record in run.out if "similar" in record.topic]
    assert [value["ts"] for value in values] == [52]
    commit = run.commit()
    assert commit is not None
    assert commit.watched is not None
    # Numbers begin at the clock, so that positions rise whatever an earlier run has sent.
    assert commit.born + commit.watched.number >= 1_000
    assert stored(commit) == commit


def test_keys_without_live_series_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_table, "MANY", 8)
    one = watch(RISE)
    run = ShardRun(SHARD, "air", Commit(), with_watched([watched(one, similar(one), 1, 0)], 0))
    for start in range(0, 400, 2):
        rows = [Reading(start + i, f"k{start + i}", 100 + start, 1.0) for i in range(2)]
        run.take(batch(rows, 0), 0)
        while run.out:
            run.safe(run.out.popleft().token)
        assert run.commit() is not None
        run.committed(0)
    # MAX_GAP ticks have as many readings, each with a key of its own.
    assert run.watched.series <= 2 * MAX_GAP + 8
    assert 0 < run.watched.bytes < 100_000
    assert 0 < run.read_again <= MAX_GAP + 8


def test_a_watched_stream_that_comes_while_readings_come_has_only_true_matches() -> None:
    """A window of which a reading came before the stream did must not be taken for a shorter one."""
    matches = 0
    for seed in range(SEED, SEED + 40):
        r = random.Random(seed)
        delay = 9
        one = watch(RISE, PEAK)
        log = make_log(r, delay, 120)
        stream = watched(one, similar(one), 1, delay)
        world = World(r, log, r.random() < 0.5, with_watched([], delay))
        play(world, 100, [with_watched([stream], delay, 2)])
        expected = {offset for offset, name in nearest(one, log, delay).items() if name}
        got = set(offsets(world.published(stream.topics[0].name), log))
        assert got <= expected, seed
        matches += len(got)
    assert matches > 100


def published(run: ShardRun) -> list[int]:
    """The event times of the tuples of watched streams in the run's queue, which is emptied."""
    found = []
    while run.out:
        record = run.out.popleft()
        run.safe(record.token)
        value = orjson.loads(record.value)
        if "similar" in record.topic and "temp" in value:
            found.append(value["ts"])
    return found


def test_an_idle_source_releases_what_waits() -> None:
    one = watch(RISE)
    found = with_watched([replace(watched(one, similar(one), 1, 5), idle_timeout=10)], 5)
    base, stream = found.streams
    found = replace(found, streams=(replace(base, idle_timeout=10), stream))
    run = ShardRun(SHARD, "air", Commit(), found)
    run.take(batch([Reading(i, "a", 100 + i, float(v)) for i, v in enumerate((0, 1, 3))], 0), 0)
    assert published(run) == []
    assert run.watched.waiting == 3
    commit = run.commit()
    assert commit is not None
    run.committed(0)
    progress = [orjson.loads(record.value)["_"] for record in run.out if "similar" in record.topic]
    assert {one["event_time"] for one in progress} == {97}
    run.idle(102 + 15)
    run.settle(102 + 15)
    assert published(run) == [102]
    assert run.watched.waiting == 0


def test_series_begin_anew_with_the_time_of_their_stream() -> None:
    one = watch(RISE)
    found = with_watched([watched(one, similar(one), 1, 0)], 0)
    run = ShardRun(SHARD, "air", Commit(), found)
    rows = [
        Reading(0, "a", 10, 0.0),
        Reading(1, "a", 11, 1.0),
        Reading(2, "a", 10**6, 3.0),
        Reading(3, "a", 12, 3.0),
    ]
    run.take(batch(rows, 0), 0)
    assert published(run) == []  # the last one is late, and the window before it has too long a gap
    anew = with_watched([watched(one, similar(one), 2, 0)], 0, 2)
    run.obey(replace(anew, streams=tuple(replace(stream, anew=2) for stream in anew.streams)))
    run.take(batch([Reading(4 + i, "a", 20 + i, float(v)) for i, v in enumerate((3, 0, 1, 3))], 0), 0)
    assert published(run) == [23]
    commit = run.commit()
    assert commit is not None
    # Nothing from before the restart of the time is read again.
    assert commit.done >= 4
