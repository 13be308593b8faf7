"""The joiner's group under random batches, crashes and stale state, against a group written tuple by tuple.

`Plain` follows the executable model of the protocol record by record, with lists and dicts only. The group
works on columns and keeps nothing between batches but opaque blobs.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pytest
from tests.oracle.random_cases import also_long
from tests.stream_records import final_record, progress_record

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.messaging import topics
from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.plan.json_form import encode_plan
from tamis.plan.model import (
    Definition,
    Input,
    Plan,
    StreamColumn,
    StreamPlan,
    TimeBound,
    TopicPlan,
)
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

SECOND = 1_000_000
Tuple = tuple[str, int, float | None]  # key, time, value


class DictState:
    """A state map in memory, which counts what is read."""

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        self.blobs = dict(blobs or {})
        self.reads: list[str] = []

    def get(self, name: str) -> bytes | None:
        self.reads.append(name)
        return self.blobs.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.blobs[name] = value

    def remove(self, name: str) -> None:
        self.blobs.pop(name, None)


def topic_of(stream: str) -> str:
    return topics.stream_topic(stream, 1)


def stream_plan(name: str) -> StreamPlan:
    columns = (("k", Type.VARCHAR), ("ts", Type.TIMESTAMP), ("v", Type.DOUBLE))
    return StreamPlan(
        name=name,
        columns=tuple(StreamColumn(column, type_, False, None) for column, type_ in columns),
        time="ts",
        delay=0,
        idle_timeout=None,
        max_ahead=None,
        max_stall=3600 * SECOND,
        topics=(TopicPlan(topic_of(name), ("k",), ("v",), ()),),
    )


def sum_above(aliases: list[str], least: float) -> Expr:
    total: Expr = Column(aliases[0], "v", Type.DOUBLE)
    for alias in aliases[1:]:
        total = Call("+", (total, Column(alias, "v", Type.DOUBLE)), Type.DOUBLE)
    return Call(">", (total, Literal(least, Type.DOUBLE)), Type.BOOLEAN)


def definition(
    alert: str, version: int, streams: list[str], bounds: list[tuple[int, int, int, int]], least: float
) -> Definition:
    """bounds: (left input, right input, lo, hi)."""
    aliases = [f"{stream}{i}" for i, stream in enumerate(streams)]
    return Definition(
        alert=alert,
        version=version,
        inputs=tuple(
            Input(alias, stream, topic_of(stream), "ts", ("k",), None, 0)
            for alias, stream in zip(aliases, streams, strict=True)
        ),
        equalities=(),
        bounds=tuple(TimeBound(aliases[i], aliases[j], lo, hi) for i, j, lo, hi in bounds),
        condition=sum_above(aliases, least),
        select=(("total", sum_above(aliases, least)),),
    )


def tuple_record(stream: str, tuple_: Tuple, version: int, late: bool = False) -> bytes:
    key, time, value = tuple_
    envelope = {"shard": f"e/{stream}", "plan": version, "activation": 0, **({"late": True} if late else {})}
    return orjson.dumps({"k": key, "ts": time, "v": value, "_": envelope})


@dataclass
class Plain:
    """`fleet_sim.Joiner`, tuple by tuple, for n inputs and with frontiers by topic."""

    plan: Plan | None = None
    parked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    frontier: dict[str, int | None] = field(default_factory=dict)
    listed: dict[tuple[str, str], int] = field(default_factory=dict)
    since: dict[tuple[str, str], int] = field(default_factory=dict)
    progress: dict[tuple[str, str], int] = field(default_factory=dict)
    store: dict[str, dict[Tuple, int]] = field(default_factory=dict)
    alarms: set[tuple[str, tuple[Tuple, ...]]] = field(default_factory=set)

    def obey(self, plan: Plan) -> None:
        if self.plan and plan.version <= self.plan.version:
            return
        self.plan = plan
        for stream in plan.streams:
            topic = stream.topics[0].name
            self.frontier.setdefault(topic, None)
            self.store.setdefault(topic, {})
            for shard, version in plan.since.items():
                if plan.shard_streams[shard] == stream.name and version > self.listed.get((topic, shard), 0):
                    self.listed[topic, shard] = self.since[topic, shard] = version
                    self.progress.pop((topic, shard), None)
        waiting, self.parked = self.parked, []
        for topic, record in waiting:
            self.take(topic, record)
        self.advance()

    def take(self, topic: str, record: dict[str, Any]) -> None:
        envelope = record["_"]
        shard = (topic, envelope["shard"])
        if envelope["plan"] > (self.plan.version if self.plan else 0):
            self.parked.append((topic, record))
        elif "kind" not in envelope:
            self.join(topic, (record["k"], record["ts"], record["v"]), envelope["plan"])
        elif shard in self.since and envelope["plan"] >= self.since[shard]:
            if envelope["kind"] == "progress":
                self.progress[shard] = max(self.progress.get(shard, -1), envelope["event_time"])
            else:
                self.advance()
                del self.since[shard]
            self.advance()

    def join(self, topic: str, tuple_: Tuple, version: int) -> None:
        assert self.plan is not None
        if topic not in self.store or tuple_[0] is None:
            return
        self.store[topic][tuple_] = max(self.store[topic].get(tuple_, 0), version)
        for d in self.plan.definitions:
            for i, source in enumerate(d.inputs):
                if source.topic != topic:
                    continue
                others = [[tuple_] if j == i else self.store[s.topic] for j, s in enumerate(d.inputs)]
                for combination in itertools.product(*others):
                    if raises(d, combination) and all(
                        self.store[s.topic][t] >= d.version
                        for s, t in zip(d.inputs, combination, strict=True)
                    ):
                        self.alarms.add((d.alert, combination))

    def advance(self) -> None:
        assert self.plan is not None
        partners: dict[str, set[str]] = {}
        for d in self.plan.definitions:
            for a, b in itertools.permutations({s.topic for s in d.inputs}, 2):
                partners.setdefault(a, set()).add(b)
        for _ in self.frontier:
            for topic, old in self.frontier.items():
                shards = [s for s in self.since if s[0] == topic]
                if shards:
                    values = [self.progress.get(s) for s in shards]
                    new = None if None in values else min(v for v in values if v is not None)
                else:
                    reached = [
                        f for f in (self.frontier.get(p) for p in partners.get(topic, ())) if f is not None
                    ]
                    new = max([f for f in reached if f < END_OF_TIME] or reached, default=None)
                if new is not None and (old is None or new > old):
                    self.frontier[topic] = new


def raises(d: Definition, combination: tuple[Tuple, ...]) -> bool:
    number = {s.alias: i for i, s in enumerate(d.inputs)}
    if len({key for key, _, _ in combination}) > 1 or any(value is None for _, _, value in combination):
        return False
    for b in d.bounds:
        gap = combination[number[b.left]][1] - combination[number[b.right]][1]
        if (b.lo is not None and gap < b.lo) or (b.hi is not None and gap > b.hi):
            return False
    assert isinstance(d.condition, Call) and isinstance(d.condition.args[1], Literal)
    least = d.condition.args[1].value
    assert isinstance(least, float)
    return sum(value or 0.0 for _, _, value in combination) > least


class Schedule:
    """Random logs of one output partition: plans, and for each topic tuples with progress behind them."""

    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.streams = ["a", "b", "c"][: r.choice((1, 2, 2, 3))]
        self.plans: list[Plan] = []
        definitions: list[Definition] = []
        since = {f"e/{s}": 1 for s in self.streams if r.random() < 0.9}
        relisted = dict(since)
        for version in range(1, r.randint(2, 5)):
            if definitions and r.random() < 0.3:
                definitions.pop(r.randrange(len(definitions)))
            definitions.append(self._definition(f"q{version}", version))
            if version > 1:
                missing = [f"e/{s}" for s in self.streams if f"e/{s}" not in relisted]
                for shard in missing:
                    relisted[shard] = version
            self.plans.append(
                Plan(
                    version=version,
                    partitions=1,
                    streams=tuple(stream_plan(s) for s in self.streams),
                    definitions=tuple(definitions),
                    since=dict(relisted),
                    shard_streams={f"e/{s}": s for s in self.streams},
                )
            )
        self.logs: dict[str, list[bytes]] = {topics.PLANS: [encode_plan(p) for p in self.plans]}
        for stream in self.streams:
            self.logs[topic_of(stream)] = self._log(stream)

    def _definition(self, name: str, version: int) -> Definition:
        r = self.random
        size = r.choice((1, 2, 2, 3))
        streams = [r.choice(self.streams) for _ in range(size)]
        bounds = []
        for i in range(1, size):
            lo = r.randint(-4, 1) * SECOND
            bounds.append((i, r.randrange(i), lo, lo + r.randint(0, 4) * SECOND))
        return definition(name, version, streams, bounds, least=r.choice((1.0, 2.0)) * size)

    def _log(self, stream: str) -> list[bytes]:
        r, out, base, version = self.random, [], 0, 1
        sent: list[Tuple] = []
        for _ in range(r.randint(10, 50)):
            base += r.choice((0, 0, 0, 1, 1, 2)) * SECOND
            if r.random() < 0.1:
                version = min(version + 1, len(self.plans))
            if sent and r.random() < 0.06:
                out.append(tuple_record(stream, r.choice(sent), version))  # sent again
                continue
            value = None if r.random() < 0.05 else float(r.randint(0, 5))
            tuple_ = (r.choice("xy"), base + r.randint(0, 2) * SECOND, value)
            sent.append(tuple_)
            out.append(tuple_record(stream, tuple_, version))
            if r.random() < 0.4:
                out.append(progress_record(f"e/{stream}", version, 0, base))
        out.append(progress_record(f"e/{stream}", version, 0, base + 3 * SECOND))
        if r.random() < 0.3:
            out.append(final_record(f"e/{stream}", version))
        return out


def batches(schedule: Schedule, r: random.Random) -> list[dict[str, tuple[int, int]]]:
    """The logs cut into batches at random: from and to offsets by topic."""
    at = dict.fromkeys(schedule.logs, 0)
    found = []
    while any(at[t] < len(log) for t, log in schedule.logs.items()):
        step = {}
        for topic, log in schedule.logs.items():
            to = min(len(log), at[topic] + r.choice((0, 0, 1, 2, 8)))
            if to > at[topic]:
                step[topic] = (at[topic], to)
                at[topic] = to
        if step:
            found.append(step)
    return found


def records_of(schedule: Schedule, step: dict[str, tuple[int, int]]) -> list[Records]:
    return [
        Records(topic, 0, schedule.logs[topic][a:b], np.arange(a, b), np.arange(a, b) * 1000)
        for topic, (a, b) in step.items()
    ]


def run_group(
    schedule: Schedule, steps: list[dict[str, tuple[int, int]]], r: random.Random, *, faults: bool
) -> tuple[dict[str, dict[str, Any]], list[Frontier], DictState]:
    """Alarms by id, frontiers and the last state. With `faults`, attempts fail after their alarms are out,
    and what the process remembers is of any earlier time or attempt.
    """
    state = DictState()
    alarms: dict[str, dict[str, Any]] = {}
    frontiers: list[Frontier] = []
    memories: list[Group | None] = [None]
    token = itertools.count()
    for step in steps:
        for attempt in itertools.count():
            memory = (
                r.choice([None, memories[-1], memories.pop(r.randrange(len(memories)))])
                if faults
                else memories[-1]
            )
            memories = [m for m in memories if m is not memory]
            copy = DictState(state.blobs)
            group = Group.load(0, 1, copy, memory)
            plans, records = split_plans(records_of(schedule, step))
            output = group.process(plans, records, copy, now=1, token=f"{next(token):x}")
            assert not output.dead_letters
            alarms.update((a["id"], a) for a in (orjson.loads(value) for _, value in output.alarms))
            memories = [*memories[-2:], group]
            if faults and attempt < 3 and r.random() < 0.25:
                continue
            state = copy
            if output.frontier:
                frontiers.append(Frontier.from_bytes(output.frontier))
            break
    return alarms, frontiers, state


def combination_of(d: Definition, alarm: dict[str, Any]) -> tuple[str, tuple[Tuple, ...]]:
    tuples = [alarm["tuples"][s.alias] for s in d.inputs]
    return alarm["alert"], tuple((t["k"], t["ts"], t["v"]) for t in tuples)


def plain_alarms(schedule: Schedule, steps: list[dict[str, tuple[int, int]]]) -> Plain:
    """The model over the same batches, in the order of the group: plans, tuples, then the rest."""
    plain = Plain()
    for step in steps:
        for plan in schedule.plans[slice(*step.get(topics.PLANS, (0, 0)))]:
            plain.obey(plan)
        taken = [
            (topic, orjson.loads(value))
            for topic, (a, b) in step.items()
            if topic != topics.PLANS
            for value in schedule.logs[topic][a:b]
        ]
        for topic, record in sorted(taken, key=lambda pair: "kind" in pair[1]["_"]):
            plain.take(topic, record)
    return plain


@pytest.mark.parametrize("times", also_long(80))
@pytest.mark.parametrize("chunk", range(4))
def test_group_raises_what_the_model_raises_whatever_fails(chunk: int, times: int) -> None:
    """The model here never trims, so that a tuple that the group lets go too early is a missing alarm.

    Only duplicates and tuples behind a frontier may meet what has been trimmed by then: those are in the
    model's alarms and may be missing from the group's.
    """
    raised = 0
    for seed in range(1_000 * chunk, 1_000 * chunk + 10 * times):
        schedule = Schedule(seed)
        r = random.Random(seed + 7)
        steps = batches(schedule, r)
        plain = plain_alarms(schedule, steps)
        by_name = {d.alert: d for plan in schedule.plans for d in plan.definitions}
        calm, _, _ = run_group(schedule, steps, r, faults=False)
        faulty, _, _ = run_group(schedule, steps, r, faults=True)
        assert set(calm) == set(faulty), f"seed {seed}"
        found = {combination_of(by_name[a["alert"]], a) for a in calm.values()}
        assert len(found) == len(calm), f"seed {seed}: an id for each combination"
        assert found <= plain.alarms, f"seed {seed}: extra"
        behind = may_be_missing(schedule, steps)
        missing = {(alert, combo) for alert, combo in plain.alarms - found if not behind & set(combo)}
        assert not missing, f"seed {seed}: missed {missing}"
        raised += len(found)
    assert raised > 75 * times


def may_be_missing(schedule: Schedule, steps: list[dict[str, tuple[int, int]]]) -> set[Tuple]:
    """Tuples that came again, or after their topic's frontier had passed them."""
    plain, again, seen = Plain(), set(), set()
    for step in steps:
        for plan in schedule.plans[slice(*step.get(topics.PLANS, (0, 0)))]:
            plain.obey(plan)
        for parked_or_new in ("tuples", "rest"):
            for topic, (a, b) in step.items():
                for value in schedule.logs[topic][a:b] if topic != topics.PLANS else ():
                    record = orjson.loads(value)
                    is_tuple = "kind" not in record["_"]
                    if is_tuple != (parked_or_new == "tuples"):
                        continue
                    if is_tuple:
                        tuple_ = (record["k"], record["ts"], record["v"])
                        frontier = plain.frontier.get(topic)
                        if (topic, tuple_) in seen or (frontier is not None and record["ts"] < frontier):
                            again.add(tuple_)
                        seen.add((topic, tuple_))
                    plain.take(topic, record)
    return again


def test_memory_saves_reading_and_a_retry_reads_what_it_must() -> None:
    plan = Plan(
        1,
        1,
        (stream_plan("a"), stream_plan("b")),
        (definition("q", 1, ["a", "b"], [(0, 1, -40 * SECOND, 40 * SECOND)], 100.0),),
        {"e/a": 1, "e/b": 1},
        {"e/a": "a", "e/b": "b"},
    )
    state, memory, reads = DictState(), None, []
    for batch in range(40):
        state.reads.clear()
        group = Group.load(0, 1, state, memory)
        reads.append(len(state.reads))
        log = [tuple_record("a", ("x", batch * SECOND, 1.0), 1), progress_record("e/b", 1, 0, batch * SECOND)]
        records = [
            Records(topic_of("a"), 0, log[:1], np.array([batch]), np.array([0])),
            Records(topic_of("b"), 0, log[1:], np.array([batch]), np.array([0])),
        ]
        plans = (
            [Records(topics.PLANS, 0, [encode_plan(plan)], np.array([0]), np.array([0]))] if not batch else []
        )
        group.process(plans, records, state, now=0, token=f"t{batch}")
        memory = group
    assert max(reads) == 1, "with a memory of the last batch only `meta` is read"
    fresh = DictState(state.blobs)
    Group.load(0, 1, fresh, None)
    slices = [name for name in state.blobs if name.startswith("slice/")]
    assert len(slices) > 3 and set(slices) <= set(fresh.reads)
    # A memory from before: only what has changed since is read.
    older = Group.load(0, 1, DictState(state.blobs), None)
    after = DictState(state.blobs)
    again = Group.load(0, 1, after, memory)
    again.process(
        [],
        [
            Records(
                topic_of("a"),
                0,
                [tuple_record("a", ("x", 40 * SECOND, 1.0), 1)],
                np.array([40]),
                np.array([0]),
            )
        ],
        after,
        now=0,
        token="new",
    )
    after.reads.clear()
    Group.load(0, 1, after, older)
    assert 0 < len([name for name in after.reads if name.startswith("slice/")]) < len(slices)


def test_state_falls_as_partners_go_on_and_is_empty_at_the_end() -> None:
    streams = ["a", "b", "c"]
    bounds = [(1, 0, 0, 5 * SECOND), (2, 1, 0, 5 * SECOND)]
    plan = Plan(
        1,
        1,
        tuple(stream_plan(s) for s in streams),
        (definition("q", 1, streams, bounds, 100.0),),
        {f"e/{s}": 1 for s in streams},
        {f"e/{s}": s for s in streams},
    )
    state = DictState()
    tuples = [tuple_record("a", ("x", second * SECOND, 1.0), 1) for second in range(100)]

    def batch(number: int, topic: str, values: list[bytes], plans: list[bytes]) -> Frontier:
        group = Group.load(0, 1, state)
        some = (
            [Records(topics.PLANS, 0, plans, np.arange(len(plans)), np.arange(len(plans)))] if plans else []
        )
        output = group.process(
            some,
            [Records(topic, 0, values, np.arange(len(values)), np.arange(len(values)))],
            state,
            now=0,
            token=f"{number}",
        )
        assert output.frontier is not None
        return Frontier.from_bytes(output.frontier)

    def held(record: Frontier) -> int:
        return record.topics[topic_of("a")].tuples

    assert held(batch(1, topic_of("a"), tuples, [encode_plan(plan)])) == 100
    # b can no longer come before 50, but one of c before 50 may still meet a stored b.
    assert held(batch(2, topic_of("b"), [progress_record("e/b", 1, 0, 50 * SECOND)], [])) == 100
    # c at 50 or later reaches a's from 40 on.
    record = batch(3, topic_of("c"), [progress_record("e/c", 1, 0, 50 * SECOND)], [])
    assert held(record) == 60
    assert record.definitions == {"q@1": 60}
    ends = [progress_record(f"e/{s}", 1, 0, END_OF_TIME) for s in streams]
    batch(4, topic_of("b"), ends[1:2], [])
    assert held(batch(5, topic_of("c"), ends[2:], [])) == 0
    assert not [name for name in state.blobs if name.startswith("slice/")]
