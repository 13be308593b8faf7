"""Bytes of state by query: its share of the bytes of its topics, or its synopses."""

from __future__ import annotations

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState
from tests.stream_records import progress_record

from tamis.messaging.records import Frontier
from tamis.messaging.topic_reader import Record
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.telemetry import Metrics
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans
from tamis_joiner.monitoring.kafka_monitor import StateMetrics

SECOND = 1_000_000
SQL = """
CREATE STREAM a (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM b (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM c (k INT) WITH (keys = 9);
CREATE ALERT near AS SELECT a.k FROM a, b WHERE a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND;
CREATE ALERT far AS SELECT a.k FROM a, b WHERE a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '90' SECOND;
CREATE ALERT seen AS SELECT DISTINCT k FROM c WHERE k BETWEEN 0 AND 999;
"""
PLAN = first_plan(catalog_of(SQL), shards={f"e/{name}": name for name in "abc"})
TOPICS = {stream.name: stream.topics[0].name for stream in PLAN.streams}


class Joiner:
    """Its only partition, begun anew for each batch, and what it shows."""

    def __init__(self) -> None:
        self.state, self.batches = DictState(), 0
        self.metrics = Metrics("joiner")
        self.observer = StateMetrics(self.metrics)

    def take(self, values: dict[str, list[bytes]]) -> Frontier:
        """What it says of itself behind a batch."""
        for taken in (values, {}):  # what it says is written behind its alarms
            self.batches += 1
            records = [Records(t, 0, v, np.arange(len(v)), np.arange(len(v))) for t, v in taken.items()]
            group = Group.load(0, 1, self.state)
            out = group.process(*split_plans(records), self.state, now=self.batches, token=f"{self.batches}")
            assert not out.dead_letters
            if out.frontier is not None:
                self.observer.take_frontier(Record("tamis.frontiers", 0, 0, b"0", out.frontier))
                self.observer.update(0.0)
                found = Frontier.from_bytes(out.frontier)
        return found

    def shown(self, query: str) -> float | None:
        return self.metrics.registry.get_sample_value("tamis_query_state_bytes", {"query": query})


def tuples(stream: str, *seconds: int) -> list[bytes]:
    envelope = {"shard": f"e/{stream}", "plan": 1, "activation": 0}
    return [orjson.dumps({"k": 1, "ts": second * SECOND, "_": envelope}) for second in seconds]


def test_state_is_shared_out_by_tuples_and_store_have_their_own() -> None:
    joiner = Joiner()
    joiner.take({PLANS: [encode_plan(PLAN)]})
    assert [joiner.shown(query) for query in ("near", "far")] == [0, 0]
    empty = joiner.shown("seen")
    joiner.take({TOPICS["a"]: tuples("a", *range(20))})
    found = joiner.take({TOPICS["b"]: [progress_record("e/b", 1, 0, 20 * SECOND)]})
    state = found.topics[TOPICS["a"]]
    # Those of the last five seconds can still meet one of b that is near, all of them one that is far.
    assert (found.definitions["near@1"], found.definitions["far@1"], state.tuples) == (5, 20, 20)
    assert state.bytes == sum(map(len, (v for n, v in joiner.state.blobs.items() if n.startswith("slice/"))))
    assert (joiner.shown("near"), joiner.shown("far")) == (state.bytes // 4, state.bytes) != (0, 0)
    envelope = {"shard": "e/c", "plan": 1, "activation": 0}
    many = [orjson.dumps({"k": k, "_": envelope | {"place": k}}) for k in range(500)]
    joiner.take({TOPICS["c"]: many})
    (blob,) = (value for name, value in joiner.state.blobs.items() if name.startswith("standing/seen"))
    assert joiner.shown("seen") == len(blob) > (empty or 0) + 500
    joiner.take({TOPICS["b"]: [progress_record("e/b", 1, 0, 500 * SECOND)]})
    assert [joiner.shown(query) for query in ("near", "far", "seen")] == [0, 0, len(blob)]
