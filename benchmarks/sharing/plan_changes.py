"""Plans of thousands of alerts on one topic: time of the change at edge and joiner, and of batches."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from tests.fixtures.dict_state import DictState

from benchmarks.harness import Cell, Result, Say
from benchmarks.sharing.filters import FIRST, LAST, names
from benchmarks.sharing.growth import DIMENSIONS, SHARE, grown, resident
from tamis.compile_kernels import warm
from tamis.expressions.vectors import Vector
from tamis.heap import collect_seldom
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit
from tamis_edge.core.missing_functions import able
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

NAME = "sharing.plan_changes"
STEPS = (10, 100, 1_000, 2_000)
TUPLES, KEYS, SECOND = 1_000, 50, 1_000_000  # a batch: a second of a stream
WARM, BATCHES = 3, 8
COLUMNS = (
    "alerts",
    "plan, KB",
    "decoding, ms",
    "decoding the next, ms",
    "edge: taking up the next, ms",
    "edge: batch, ms",
    "joiner: taking up the next, ms",
    "joiner: batch, ms",
    "memory, MB",
)

T = TypeVar("T")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    rows: list[dict[str, Cell]] = []
    for count in STEPS[:1] if quick else STEPS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            rows.append(pool.submit(_taken, count).result())
        say(f"{count:,} alerts")
    return Result(
        NAME,
        "Plans of many alerts on one topic, taken up",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "share": SHARE, "tuples": TUPLES, "keys": KEYS, "quick": quick},
        (
            "the alerts are the joins of the section before; *the next* is the next plan, which has one alert"
            " more",
            f"batch of the edge: {TUPLES:,} tuples of one stream with {KEYS} keys",
            "batch of the joiner: the retained tuples of both streams in one of four partitions",
            "times are CPU time, of batches the median",
            "memory: growth of the process by both plans, the shards of both streams and one partition of"
            " the joiner",
        ),
    )


def _taken(count: int) -> dict[str, Cell]:
    collect_seldom()
    warm()
    documents = [
        change.written.json
        for _, change, _ in grown("joins", (count, count + 1))
        if change.written is not None
    ]
    before = resident()
    first, reading = _timed(lambda: able(_listed(decode_plan(documents[0]))))
    second, reading_next = _timed(lambda: able(_listed(decode_plan(documents[1]))))
    random, state = np.random.default_rng(2), DictState()
    edges = {name: ShardRun(f"{name}:e/x", name, Commit(), first) for name in "ab"}
    group = Group(0, first.partitions)
    group.process([_plan(first)], [], state, now=0, token="first")
    take = partial(group.process, state=state, now=0)
    by_edge, by_joiner = [], []
    for number in range(WARM + BATCHES):
        if number == WARM:
            taking = _timed(partial(edges["a"].obey, second))[1]
            edges["b"].obey(second)
            joining = _timed(partial(take, [_plan(second)], [], token=uuid.uuid4().hex))[1]
        sent: list[Record] = []
        for edge in edges.values():
            by_edge.append(_timed(partial(_step, edge, _batch(random, number), number))[1])
            sent += edge.out
            for record in edge.out:
                edge.safe(record.token)
            edge.out.clear()
        records = _records([record for record in sent if record.partition == 0])
        by_joiner.append(_timed(partial(take, [], records, token=uuid.uuid4().hex))[1])
    return {
        "alerts": count,
        "plan, KB": len(documents[0]) / 1024,
        "decoding, ms": 1000 * reading,
        "decoding the next, ms": 1000 * reading_next,
        "edge: taking up the next, ms": 1000 * taking,
        "edge: batch, ms": 1000 * float(np.median(by_edge[2 * WARM :])),
        "joiner: taking up the next, ms": 1000 * joining,
        "joiner: batch, ms": 1000 * float(np.median(by_joiner[WARM:])),
        "memory, MB": (resident() - before) / 1e6,
    }


def _listed(plan: Plan) -> Plan:
    """The plan with a shard of each stream."""
    shards = {f"{name}:e/x": name for name in "ab"}
    return replace(plan, since=dict.fromkeys(shards, 1), shard_streams=shards)


def _plan(plan: Plan) -> Records:
    zero = np.zeros(1, np.int64)
    return Records(PLANS, 0, [encode_plan(plan)], zero, zero)


def _batch(random: np.random.Generator, number: int) -> Batch:
    times = np.sort(random.integers(0, SECOND, TUPLES)) + number * SECOND
    keys = np.array([f"k{key}" for key in random.integers(0, KEYS, TUPLES)], np.object_)
    values = {name: Vector(random.uniform(FIRST, LAST, TUPLES), None) for name in names(DIMENSIONS)}
    columns = {"k": Vector(keys, None), "ts": Vector(times, None), **values}
    offsets = np.arange(number * TUPLES, (number + 1) * TUPLES)
    return Batch(columns, times, offsets, np.zeros(TUPLES, np.int64))


def _step(edge: ShardRun, batch: Batch, number: int) -> None:
    edge.take(batch, number * SECOND)
    edge.commit()
    edge.committed(number * SECOND)


def _records(sent: list[Record]) -> list[Records]:
    """The records that were sent, by topic."""
    topics = dict.fromkeys(record.topic for record in sent)
    found = []
    for topic in topics:
        values = [record.value for record in sent if record.topic == topic and record.value is not None]
        offsets = np.arange(len(values))
        found.append(Records(topic, 0, values, offsets, np.zeros(len(values), np.int64)))
    return found


def _timed(what: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    found = what()
    return found, time.process_time() - began
