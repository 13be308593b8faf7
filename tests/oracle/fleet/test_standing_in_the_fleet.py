"""Standing queries of every kind through the real cores of edge and joiner, which fail and restart at random.

The rows, each identity once, are DuckDB's. tests/e2e/one_fleet/test_standing.py runs the processes.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from tests.e2e.one_fleet.test_standing import ALERTS, QUERIES, STREAMS, Readings, expected, rows_of
from tests.fixtures.dict_state import DictState
from tests.oracle.random_cases import SEED, cases

from tamis.declarations.file_access import UNRESTRICTED
from tamis.expressions.vectors import Vector
from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

RUNS = math.ceil(cases(1 / 12_000))  # 2 unless TAMIS_CASES says otherwise
PARTITIONS = 2
BORN = 1_700_000_000_000_000
Logs = dict[tuple[str, int], list[bytes]]


class Edge:
    """One shard from its first tuple to its last, by as many runs as it takes."""

    def __init__(self, shard: str, rows: list[tuple[Any, ...]], plan: Plan, r: random.Random) -> None:
        self.shard, self.rows, self.plan, self.r = shard, rows, plan, r
        self.stream = plan.shard_streams[shard]
        self.logs: Logs = defaultdict(list)

    def play(self) -> Logs:
        """What it publishes."""
        commit = Commit()
        while (found := self._run(commit)) is not None:
            commit = found
        return self.logs

    def _run(self, commit: Commit) -> Commit | None:
        """From a commit to the end, or to a crash; then its last commit."""
        r = self.r
        run = ShardRun(self.shard, self.stream, commit, self.plan, now=BORN)
        self._commit(run)
        while run.next_offset < len(self.rows):
            end = min(len(self.rows), run.next_offset + r.randint(1, 200))
            run.take(self._batch(run.next_offset, end), 0)
            if r.random() < 0.1:
                self._send(run, r.randint(0, len(run.out)))
                return run.durable
            self._send(run, len(run.out))
            if r.random() < 0.5:
                self._commit(run)
        run.finish()
        run.settle(0)
        for _ in range(2):
            self._commit(run)
        return None

    def _commit(self, run: ShardRun) -> None:
        assert run.commit() is not None
        run.committed(0)
        self._send(run, len(run.out))

    def _send(self, run: ShardRun, count: int) -> None:
        for _ in range(count):
            record = run.out.popleft()
            self.logs[record.topic, record.partition].append(record.value)
            run.safe(record.token)

    def _batch(self, start: int, end: int) -> Batch:
        stream = self.plan.stream(self.stream)
        assert stream is not None
        columns = {
            column.name: Vector.from_list([row[i] for row in self.rows[start:end]], column.type)
            for i, column in enumerate(stream.columns)
        }
        times = columns[stream.time].data if stream.time else np.zeros(end - start, np.int64)
        return Batch(columns, times, np.arange(start, end), np.full(end - start, 5_000))


def joined(partition: int, logs: Logs, document: bytes, r: random.Random) -> list[dict[str, Any]]:
    """All that the joiner writes; a batch that fails is repeated, and has written any part."""
    state, offsets = DictState(), Counter[str]()
    written: list[dict[str, Any]] = []
    mine = {topic: values for (topic, p), values in sorted(logs.items()) if p == partition}
    plans = [Records(PLANS, partition, [document], np.zeros(1, np.int64), np.zeros(1, np.int64))]
    memory: Group | None = None
    number = 0
    while plans or any(offsets[topic] < len(values) for topic, values in mine.items()):
        batch = []
        for topic, values in mine.items():
            first = offsets[topic]
            count = min(len(values) - first, r.choice((0, 100, 2_000)))
            if count:
                where = np.arange(first, first + count)
                batch.append(Records(topic, partition, values[first : first + count], where, where))
        while True:
            number += 1
            attempt = DictState(state.blobs)
            group = Group.load(
                partition, PARTITIONS, attempt, memory if r.random() < 0.5 else None, UNRESTRICTED
            )
            memory = None
            r.shuffle(batch)  # Spark hands them over in any order
            out = group.process(plans, batch, attempt, now=number, token=f"{number}")
            assert not out.dead_letters
            # The first rows come twice in any case, so that each run shows what becomes of them.
            first = bool(out.alarms) and not written
            failed = first or r.random() < 0.2
            told = 1.0 if first or not failed else 0.5
            written += [orjson.loads(value) for _, value in out.alarms if r.random() < told]
            if not failed:
                break
        state, memory, plans = attempt, group, []
        for some in batch:
            offsets[some.topic] += len(some.values)
    ended = Group.load(partition, PARTITIONS, state, file_access=UNRESTRICTED)
    last = ended.process([], [], state, now=0, token="end").frontier
    assert last is not None
    assert not Frontier.from_bytes(last).unable
    return written


@pytest.mark.parametrize(
    "number",
    [*range(RUNS), *(pytest.param(n, marks=pytest.mark.soundness) for n in range(RUNS, 20 * RUNS))],
)
def test_rows_are_neither_doubled_nor_lost(tmp_path: Path, number: int) -> None:
    r = random.Random(f"{SEED} {number}")
    readings = Readings(tmp_path, r.randrange(2**32), size=600)
    readings.bids = [(r.randint(0, 10), r.randint(0, 60), at) for at in range(600)]
    catalog = catalog_of(STREAMS.format(lots=tmp_path / "lots.csv") + ALERTS)
    shards = {f"{name}:e/{name}": name for name in ("bids", "asks", "quotes")}
    plan = first_plan(catalog, partitions=PARTITIONS, shards=shards)
    logs: Logs = {}
    for shard, stream in shards.items():
        logs |= Edge(shard, getattr(readings, stream), plan, r).play()
    document = encode_plan(plan)
    records = [record for p in range(PARTITIONS) for record in joined(p, logs, document, r)]
    rows: dict[str, Any] = {}
    for record in records:
        assert rows.setdefault(record["id"], record["row"]) == record["row"]
    tables = {name: getattr(readings, name) for name in ("bids", "asks", "quotes", "lots")}
    found, wanted = rows_of(records), expected(tables)
    for name in QUERIES:
        assert found[name] == wanted[name], (name, found[name] - wanted[name], wanted[name] - found[name])
    assert len(records) > len(rows)  # some came twice
