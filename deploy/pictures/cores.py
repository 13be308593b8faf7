"""Edges and a joiner in this process: their cores without Kafka and Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState

from tamis.expressions.nodes import Type
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
from tamis_joiner.core.records.envelopes import Records, split_plans

SECOND = 1_000_000
Columns = Mapping[str, Sequence[Any]]  # `ts` in microseconds
_TYPES = {"station": Type.VARCHAR, "ts": Type.TIMESTAMP}


def plan_of(sql: str, streams: Sequence[str]) -> Plan:
    """The plan of these statements, with one shard for each stream."""
    return first_plan(catalog_of(sql), shards={_shard(name): name for name in streams})


def _shard(stream: str) -> str:
    return f"{stream}:edge/http"


class Edge:
    """The edge's part for one stream. It begins at a commit, as after a restart."""

    def __init__(self, plan: Plan, stream: str, commit: Commit | None = None) -> None:
        self.committed = commit or Commit()
        self._run = ShardRun(_shard(stream), stream, self.committed, plan)
        self.published = 0

    def take(self, columns: Columns, now: int, *, commits: bool = True) -> list[bytes]:
        """Decide readings, commit unless the edge is killed before (`commits`), and return the records for
        Kafka. `now` is the clock, in microseconds.
        """
        vectors = {
            name: Vector.from_list(list(column), _TYPES.get(name, Type.DOUBLE))
            for name, column in columns.items()
        }
        times = vectors["ts"].data
        run = self._run
        first = run.next_offset
        run.take(Batch(vectors, times, np.arange(first, first + len(times)), times), now)
        self._confirm()
        if commits and (commit := run.commit()) is not None:
            self.committed = commit
            run.committed(0)
        values = [record.value for record in run.out]
        self._confirm()
        run.out.clear()
        self.published += run.take_counts().published
        return values

    def _confirm(self) -> None:
        for record in self._run.out:
            self._run.safe(record.token)


@dataclass
class Joiner:
    """One partition of the joiner. `plan` goes to it with the first records."""

    plan: Plan

    def __post_init__(self) -> None:
        self._state = DictState()
        self._group = Group.load(0, 1, self._state)
        self._first = [_records(PLANS, [encode_plan(self.plan)], 0)]
        self.alarms: list[Any] = []  # the documents of all alarms so far

    def take(self, sent: Mapping[str, list[bytes]], now: int, number: int) -> int:
        """Join the records of one batch, by stream; the number of tuples that are then in memory.

        `now` is the clock in microseconds, `number` the batch's, which grows.
        """
        self._group = Group.load(0, 1, self._state, self._group)
        topics = {name: self._topic(name) for name in sent}
        records = [_records(topics[name], values, number) for name, values in sent.items()]
        out = self._group.process(
            *split_plans(self._first + records), self._state, now=now, token=str(number)
        )
        self._first = []
        assert not out.dead_letters
        self.alarms += [orjson.loads(value) for _, value in out.alarms]
        assert out.frontier is not None
        frontier = Frontier.from_bytes(out.frontier)
        return sum(frontier.topics[topic].tuples for topic in topics.values() if topic in frontier.topics)

    def _topic(self, stream: str) -> str:
        found = self.plan.stream(stream)
        assert found is not None
        return found.topics[0].name


def _records(topic: str, values: list[bytes], number: int) -> Records:
    rows = np.arange(len(values))
    return Records(topic, 0, values, rows, np.full(len(values), number))
