"""Every metric of the fleet, typed, in one list: services take metrics from here, docs/metrics.md is
checked against it.

Prefix `tamis_`, base units, counters end in `_total`. Labels are stream, query, edge, shard, source,
decision, reason: never a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric family. `service` is where it is exported."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    service: Literal["edge", "registry", "joiner", "alerts", "all"]
    buckets: tuple[float, ...] = ()


# Alarm latency must resolve the target of under a second and still show a minute of trouble.
LATENCY_BUCKETS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

CATALOGUE: tuple[Metric, ...] = (
    # every service
    Metric(
        "tamis_build_info", "gauge", "Always 1; the version is in the label", ("service", "version"), "all"
    ),
    Metric(
        "tamis_plan_version",
        "gauge",
        "Newest plan version that this service has taken up",
        ("service",),
        "all",
    ),
    Metric(
        "tamis_dead_letters_total",
        "counter",
        "Readings set aside whole, by reason",
        ("service", "reason"),
        "all",
    ),
    # edge
    Metric(
        "tamis_edge_tuples_total",
        "counter",
        "Tuples by what became of them: published, omitted, filtered, late, dead",
        ("edge", "stream", "decision"),
        "edge",
    ),
    Metric(
        "tamis_edge_received_bytes_total",
        "counter",
        "Bytes of readings that sources handed over",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_published_bytes_total",
        "counter",
        "Bytes of tuples published to Kafka, keys included",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_held_tuples", "gauge", "Tuples whose omission is undecided", ("edge", "stream"), "edge"
    ),
    Metric(
        "tamis_edge_state_tuples",
        "gauge",
        "Tuples that omission remembers, held ones included",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_hold_seconds",
        "histogram",
        "Wall time from arrival to publication",
        ("edge", "stream"),
        "edge",
        LATENCY_BUCKETS,
    ),
    Metric(
        "tamis_edge_watermark_seconds",
        "gauge",
        "Watermark of a shard as event time",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_watermark_lag_seconds",
        "gauge",
        "Wall clock less watermark",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_shard_plan_version",
        "gauge",
        "Plan version that a shard obeys",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_spool_bytes",
        "gauge",
        "Bytes of retained records that wait on disk for Kafka",
        ("edge",),
        "edge",
    ),
    Metric(
        "tamis_edge_spool_records", "gauge", "Retained records that wait on disk for Kafka", ("edge",), "edge"
    ),
    Metric(
        "tamis_edge_inbox_records",
        "gauge",
        "Readings safe on disk and not yet decided",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_paused", "gauge", "1 while sources are paused since the spool is full", ("edge",), "edge"
    ),
    Metric(
        "tamis_edge_source_up",
        "gauge",
        "1 while a source can be had, 0 while its file can't be read or its broker isn't reached",
        ("edge", "source"),
        "edge",
    ),
    Metric(
        "tamis_edge_shed_tuples_total",
        "counter",
        "Retained tuples dropped at random under overload, counted for each topic",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_refused_records_total",
        "counter",
        "Records of readings that Kafka refused for good, by where they were put: dead_letters, file",
        ("edge", "place"),
        "edge",
    ),
    Metric(
        "tamis_edge_lost_readings_total",
        "counter",
        "Readings that Kafka deleted before the edge had read them",
        ("edge", "stream"),
        "edge",
    ),
    # registry
    Metric(
        "tamis_registry_shards",
        "gauge",
        "Shards by state: waiting, active, behind (does not obey the newest plan), gone",
        ("stream", "state"),
        "registry",
    ),
    Metric("tamis_registry_queries", "gauge", "Queries by state", ("state",), "registry"),
    Metric(
        "tamis_registry_unproven_streams",
        "gauge",
        "Streams of a query whose omission rests on no proof, by what it rests on: heuristic, trusted",
        ("query", "certificate"),
        "registry",
    ),
    Metric(
        "tamis_registry_unproven_queries",
        "gauge",
        "1 for a query whose memory isn't proven to be bounded: it runs by allow_unbounded",
        ("query",),
        "registry",
    ),
    Metric(
        "tamis_registry_statements_total",
        "counter",
        "Statements by kind and outcome",
        ("kind", "outcome"),
        "registry",
    ),
    Metric(
        "tamis_registry_leases", "gauge", "Consumers outside the fleet with a lease", ("stream",), "registry"
    ),
    Metric("tamis_registry_topics", "gauge", "Shared topics in service", ("stream",), "registry"),
    # joiner
    Metric("tamis_joiner_rows_total", "counter", "Records read from Kafka", (), "joiner"),
    Metric(
        "tamis_joiner_batch_seconds", "histogram", "Duration of a Spark batch", (), "joiner", LATENCY_BUCKETS
    ),
    Metric(
        "tamis_joiner_state_tuples", "gauge", "Retained tuples in state now", ("stream", "topic"), "joiner"
    ),
    Metric(
        "tamis_joiner_state_bytes",
        "gauge",
        "Bytes of the retained tuples in state now",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_bound_tuples",
        "gauge",
        "Proven bound of the retained tuples that state can ever hold",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_query_state_tuples",
        "gauge",
        "Retained tuples that a query still needs now, or entries of its synopses",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_query_state_bytes",
        "gauge",
        "Bytes of those tuples in state, at their topics' mean size, or of the synopses",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_query_bound_tuples",
        "gauge",
        "Proven bound of the tuples or entries that a query can ever need",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_joiner_frontier_seconds",
        "gauge",
        "Event time below which nothing more can come",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_frontier_lag_seconds",
        "gauge",
        "Wall clock less frontier",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_late_total",
        "counter",
        "Late tuples that were joined with what state still held",
        (),
        "joiner",
    ),
    Metric(
        "tamis_query_late_total",
        "counter",
        "Tuples that came too late for a query in application time, or for a window that has ended",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_joiner_lost_records_total",
        "counter",
        "Records that Kafka deleted before the joiner had read them",
        (),
        "joiner",
    ),
    Metric("tamis_joiner_parked_records", "gauge", "Records that wait for their plan version", (), "joiner"),
    Metric("tamis_alarms_total", "counter", "Alarms raised", ("query",), "joiner"),
    # alerts
    Metric(
        "tamis_alarm_latency_seconds",
        "histogram",
        "Wall clock at the alerts service less the time at which the alarm's last tuple left its edge",
        ("query",),
        "alerts",
        LATENCY_BUCKETS,
    ),
    Metric(
        "tamis_alerts_alarms_total",
        "counter",
        "Alarms read, by outcome: new, duplicate",
        ("query", "outcome"),
        "alerts",
    ),
    Metric(
        "tamis_episodes_total",
        "counter",
        "Episodes by what happened: opened, closed",
        ("query", "event"),
        "alerts",
    ),
    Metric("tamis_episodes_open", "gauge", "Episodes open now", ("query",), "alerts"),
    Metric(
        "tamis_notifications_total",
        "counter",
        "Notifications by sink and outcome",
        ("sink", "outcome"),
        "alerts",
    ),
)

BY_NAME = {metric.name: metric for metric in CATALOGUE}
