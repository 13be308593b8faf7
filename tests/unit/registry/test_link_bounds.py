"""Bounds on the link of the topics of partial aggregates, as metrics."""

from __future__ import annotations

import math

import pytest
from tests.fixtures.in_process_fleet import InProcessRegistry

from tamis.messaging.records import Ack
from tamis.planning.explanations.transfer import transfer
from tamis.telemetry import Metrics
from tamis_registry.core.link_bounds import TopicBound, topic_bounds
from tamis_registry.gauges import show

NOW = 1_700_000_000_000_000
STREAM = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ({});
"""
DECLARED = "keys = 100, rate = '10/s'"
ROWS = (
    "SELECT window_end, k, avg(x) AS mean FROM TUMBLE(air, ts, INTERVAL '{}' SECOND) GROUP BY window_end, k"
)
TEN = f"CREATE ALERT ten AS {ROWS.format(10)};"


def served(sql: str, options: str = DECLARED) -> InProcessRegistry:
    """A registry with a shard."""
    registry = InProcessRegistry(STREAM.format(options) + sql, NOW)
    registry.list_shards(["air"], NOW)
    return registry


def bounds(registry: InProcessRegistry) -> list[TopicBound]:
    return list(topic_bounds(registry.registry.view(NOW)))


def test_the_bound_of_an_alert_alone_is_that_of_explain() -> None:
    registry = served(TEN)
    (bound,) = bounds(registry)
    catalog = registry.registry.state.catalog
    sent = transfer(catalog.alerts["ten"], catalog, "s")
    assert sent is not None and sent.bound is not None
    assert (bound.stream, bound.rows) == ("air", sent.bound.most.rows)
    # 7 boundaries in 60 + 5 + 2 s, and 1 + 1 panes that may be open, each with 100 groups.
    assert bound.rows == (7 + 2) * 100
    # 2 + 7 cuts, since there is one partition.
    assert bound.records == 9


@pytest.mark.parametrize(
    "value", ["median(x)", "count(DISTINCT x)", "percentile_cont(0.9) WITHIN GROUP (ORDER BY x)", "max(x)"]
)
@pytest.mark.parametrize("options", [DECLARED, "keys = 10000, rate = '1/s'"])
def test_metrics_and_explain_have_one_bound(value: str, options: str) -> None:
    registry = served(TEN.replace("avg(x)", value), options)
    (bound,) = bounds(registry)
    (query,) = registry.registry.explain("EXPLAIN ten")
    (source,) = query["streams"]
    most = source["sent"]["most_a_minute"]
    assert (bound.records, bound.rows) == (math.ceil(most["records"]), most["rows"])
    # A cut has no more rows than groups in open panes.
    assert bound.rows <= source["sent"]["cuts_a_minute"] * source["sent"]["open_rows"]


def test_each_listed_shard_adds_its_own() -> None:
    registry = served(TEN)
    (one,) = bounds(registry)
    registry.registry.hear(Ack("air:other/http", "air", "other", 0, 0, "waiting", NOW), NOW)
    assert registry.tick(NOW) is not None
    (two,) = bounds(registry)
    assert (two.records, two.rows) == (2 * one.records, 2 * one.rows)


def test_alerts_that_share_a_topic_have_one_bound() -> None:
    registry = served(f"{TEN} CREATE ALERT fifteen AS {ROWS.format(15)};")
    (bound,) = bounds(registry)
    assert bound.rows == (7 + 5 + 1 + 2) * 100  # the boundaries of both


@pytest.mark.parametrize("options", ["rate = '1/60s'", "keys = 100000"])
def test_without_keys_nothing_is_proven(options: str) -> None:
    assert bool(bounds(served(TEN, options))) is ("keys" in options)


def test_readings_have_no_bound_on_the_link() -> None:
    assert bounds(served(TEN.replace("AS SELECT", "WITH (edge = 'raw') AS SELECT"))) == []


def test_metrics_have_the_bound() -> None:
    registry, metrics = served(TEN), Metrics("registry")
    (bound,) = bounds(registry)
    show(registry.registry.view(NOW), metrics)
    labels = {"stream": "air", "topic": bound.topic}
    assert metrics.registry.get_sample_value("tamis_registry_partial_bound_rows", labels) == bound.rows
    assert metrics.registry.get_sample_value("tamis_registry_partial_bound_records", labels) == bound.records
    registry.apply("DROP ALERT ten", NOW)
    show(registry.registry.view(NOW), metrics)
    assert metrics.registry.get_sample_value("tamis_registry_partial_bound_rows", labels) is None
