"""Metrics of partial aggregates: what was sent, and what is kept until it is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.telemetry import Metrics
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.telemetry import EdgeTelemetry

SECOND = 1_000_000
SHARD = "air:e/http"
PLAN = first_plan(
    catalog_of(
        """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE ALERT means AS SELECT window_end, k, avg(v) AS mean FROM TUMBLE(air, ts, INTERVAL '10' SECOND)
  WHERE v > 0 GROUP BY window_end, k;
"""
    ),
    shards={SHARD: "air"},
)
(TOPIC,) = [topic.name for stream in PLAN.streams for topic in stream.topics]


class Edge:
    """One shard, whose records are safe at once, and the metrics of its edge."""

    def __init__(self) -> None:
        self.run = ShardRun(SHARD, "air", Commit(), PLAN)
        self.values: list[bytes] = []  # of records with rows
        self.metrics = Metrics("edge")
        self._telemetry = EdgeTelemetry(self.metrics, "e")
        self.workers: list[Any] = [
            SimpleNamespace(label="air", source=SimpleNamespace(name=SHARD), run=self.run)
        ]

    def take(self, *readings: tuple[str, float, float]) -> None:
        """Readings of a key, seconds and value; then two commits, the first of which may draw a cut."""
        keys, seconds, values = zip(*readings, strict=True)
        times = (np.array(seconds) * SECOND).astype(np.int64)
        columns = {
            "k": Vector.from_list(list(keys), Type.VARCHAR),
            "ts": Vector.from_list(times.tolist(), Type.TIMESTAMP),
            "v": Vector.from_list(list(values), Type.DOUBLE),
        }
        first = self.run.next_offset
        offsets = np.arange(first, first + len(readings))
        self.run.take(Batch(columns, times, offsets, np.zeros(len(readings), np.int64)), 0)
        for now in (1, 2):
            assert self.run.commit() is not None
            self.run.committed(now)
            while self.run.out:
                record = self.run.out.popleft()
                self.run.safe(record.token)
                if b'"kind":"cut"' in record.value:
                    self.values.append(record.value)

    def show(self) -> None:
        some: Any = SimpleNamespace(bytes=0, limit=1, records=0, rows=lambda _: 0)
        self._telemetry.show(
            self.workers,
            troubles={},
            spool=some,
            journal=some,
            paused=False,
            disk_full=False,
            version=1,
            now=0,
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, {"edge": "e", "stream": "air", **labels})


@pytest.fixture
def edge() -> Edge:
    return Edge()


def test_what_is_sent_is_counted_by_topic(edge: Edge) -> None:
    edge.take(("a", 1, 5.0), ("b", 2, 6.0), ("a", 3, 7.0), ("a", 4, -1.0))
    edge.show()
    assert edge.value("tamis_edge_partial_records_total", topic=TOPIC) is None
    edge.take(("a", 13, 5.0))
    edge.show()
    size = sum(map(len, edge.values))
    assert edge.value("tamis_edge_partial_records_total", topic=TOPIC) == len(edge.values) > 0
    assert edge.value("tamis_edge_partial_rows_total", topic=TOPIC) == 2
    assert edge.value("tamis_edge_partial_bytes_total", topic=TOPIC) == size
    assert edge.value("tamis_edge_published_bytes_total") == size
    edge.take(("c", 23, 5.0))
    edge.show()
    assert edge.value("tamis_edge_partial_rows_total", topic=TOPIC) == 3
    assert edge.value("tamis_edge_partial_bytes_total", topic=TOPIC) == sum(map(len, edge.values)) > size


def test_readings_are_aggregated_unless_they_are_filtered_or_late(edge: Edge) -> None:
    edge.take(("a", 1, 5.0), ("a", 14, -1.0), ("b", 15, 6.0))
    edge.take(("a", 2, 7.0), ("a", 3, -1.0))
    edge.show()
    counts = {
        decision: edge.value("tamis_edge_tuples_total", decision=decision)
        for decision in ("aggregated", "filtered", "late", "published")
    }
    assert counts == {"aggregated": 2, "filtered": 2, "late": 1, "published": None}
    assert sum(edge.run.totals.values()) == 5


def test_open_panes_and_what_a_restart_reads_again_are_shown_while_there_is_a_shard(edge: Edge) -> None:
    edge.take(("a", 1, 5.0), ("b", 2, 6.0), ("a", 3, 7.0))
    edge.show()
    assert edge.value("tamis_edge_open_pane_rows") == 2
    assert (edge.value("tamis_edge_open_pane_bytes") or 0) > 0
    assert edge.value("tamis_edge_read_again") == 3
    assert edge.value("tamis_edge_series") is None
    edge.take(("a", 12, 5.0))
    edge.show()
    assert edge.value("tamis_edge_open_pane_rows") == 1
    assert edge.value("tamis_edge_read_again") == 1
    edge.workers.clear()
    edge.show()
    assert edge.value("tamis_edge_open_pane_rows") == edge.value("tamis_edge_read_again") == 0
