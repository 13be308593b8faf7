"""Cuts that don't follow the one before: a commit of an edge went back."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from tests.fixtures.dict_state import DictState

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

SECOND = 1_000_000
SQL = """
CREATE STREAM a (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (rate = '1/s');
CREATE ALERT {} AS SELECT window_end, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '10' SECOND)
  GROUP BY window_end;
"""
PLAN = first_plan(catalog_of(SQL.format("rows")), shards={"e/a": "a"}, partitions=1)
(TOPIC,) = [topic.name for stream in PLAN.streams for topic in stream.topics]


def cuts() -> list[dict[str, Any]]:
    """The records of the first two cuts of a shard."""
    run, found = ShardRun("e/a", "a", Commit(), PLAN), []
    for offset, second in enumerate((1, 11, 21)):
        columns = {
            "k": Vector.from_list([1], Type.BIGINT),
            "ts": Vector.from_list([second * SECOND], Type.TIMESTAMP),
        }
        times = np.array([second * SECOND])
        run.take(Batch(columns, times, np.array([offset]), np.zeros(1, np.int64)), 0)
        for now in (1, 2):
            assert run.commit() is not None
            run.committed(now)
            while run.out:
                record = run.out.popleft()
                run.safe(record.token)
                document = orjson.loads(record.value)
                found += [document] if document["_"]["kind"] == "cut" else []
    assert len(found) == 2
    return found


class Joiner:
    """Its only partition, begun anew for each batch."""

    def __init__(self) -> None:
        self.state, self.batches = DictState(), 0
        self.take(PLANS, encode_plan(PLAN))

    def take(self, topic: str, *values: bytes) -> dict[str, int]:
        """What it says of disordered cuts after a batch, and an empty one."""
        for taken in (list(values), []):
            self.batches += 1
            records = [Records(topic, 0, taken, np.arange(len(taken)), np.arange(len(taken)))]
            group = Group.load(0, 1, self.state)
            out = group.process(*split_plans(records), self.state, now=self.batches, token=f"{self.batches}")
            assert not out.dead_letters
            if out.frontier is not None:
                frontier = Frontier.from_bytes(out.frontier)
                assert not frontier.unable
        return frontier.disordered

    def take_cuts(self, *documents: dict[str, Any]) -> dict[str, int]:
        return self.take(TOPIC, *map(orjson.dumps, documents))


@pytest.fixture
def joiner() -> Joiner:
    return Joiner()


def test_cuts_in_order_are_in_order_also_when_they_come_again(joiner: Joiner) -> None:
    first, second = cuts()
    assert joiner.take_cuts(first) == {}
    assert joiner.take_cuts(first, second) == {}
    assert joiner.take_cuts(second) == {}


def test_a_cut_from_before_the_last_one_is_counted_once(joiner: Joiner) -> None:
    first, second = cuts()
    second["_"]["from"] = first["_"]["from"]  # the commit with the first cut was lost
    assert joiner.take_cuts(first, second) == {"rows": 1}
    assert joiner.take_cuts() == {"rows": 1}
    assert joiner.take_cuts(second) == {"rows": 1}


def test_the_same_number_with_another_end_is_counted(joiner: Joiner) -> None:
    first, _ = cuts()
    other = {**first, "_": {**first["_"], "to": [first["_"]["to"][0] + 1, first["_"]["to"][1]]}}
    assert joiner.take_cuts(first, other) == {"rows": 1}
