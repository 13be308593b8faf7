"""Catalogue of all metrics of the fleet, with types, labels and help.

Services export only these metrics, and docs/metrics.md is checked against this list. Names have the prefix
`tamis_` and base units, and counters end in `_total`. Labels are bounded sets such as stream, query, edge,
shard and reason, never a key. The file is long, since it is one list of data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric family; `service` exports it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    service: Literal["edge", "registry", "joiner", "alerts", "all"]
    buckets: tuple[float, ...] = ()


# The target for alarm latency is below one second, so that most buckets are there; the last ones show delays
# of minutes.
LATENCY_BUCKETS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

CATALOGUE: tuple[Metric, ...] = (
    # all services
    Metric(
        "tamis_build_info", "gauge", "Always 1; the version is in the label", ("service", "version"), "all"
    ),
    Metric(
        "tamis_plan_version",
        "gauge",
        "Newest plan version that this service uses",
        ("service",),
        "all",
    ),
    Metric(
        "tamis_dead_letters_total",
        "counter",
        "Records that a service can't use, by reason: it copies readings whole to a dead-letter topic, and"
        " skips and logs others",
        ("service", "reason"),
        "all",
    ),
    Metric(
        "tamis_http_refused_requests_total",
        "counter",
        "HTTP requests without a valid token, or with a token that lacks the right, by reason",
        ("service", "reason"),
        "all",
    ),
    # edge
    Metric(
        "tamis_edge_tuples_total",
        "counter",
        "Tuples by the edge's decision: published, omitted, filtered, late, dead",
        ("edge", "stream", "decision"),
        "edge",
    ),
    Metric(
        "tamis_edge_saved_calls_total",
        "counter",
        "Omitted tuples for which the joiner would call a Python function of an alert over one stream "
        "(WITH (within = …), or windows)",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_received_bytes_total",
        "counter",
        "Bytes of the readings received from sources",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_published_bytes_total",
        "counter",
        "Bytes of the tuples published to Kafka, including keys",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_held_tuples",
        "gauge",
        "Tuples that wait for the decision whether they are omitted",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_state_tuples",
        "gauge",
        "Tuples kept in memory for omission, including those that wait for a decision",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_keys",
        "gauge",
        "Partition keys that a shard knows of the tuples that it publishes, the most of any shard",
        ("edge", "stream", "topic"),
        "edge",
    ),
    Metric(
        "tamis_edge_hold_seconds",
        "histogram",
        "Time from the arrival of a tuple to its publication, by the wall clock",
        ("edge", "stream"),
        "edge",
        LATENCY_BUCKETS,
    ),
    Metric(
        "tamis_edge_pattern_matches_total",
        "counter",
        "Readings at which a window ends that matches a pattern, by the pattern as queries name it (ANY for "
        "all patterns)",
        ("edge", "stream", "pattern"),
        "edge",
    ),
    Metric(
        "tamis_edge_watched_tuples_total",
        "counter",
        "Tuples that pass the filter of a query with similar() or a window function, by decision: published, "
        "omitted, late. A tuple counts once for each set of such calls",
        ("edge", "stream", "decision"),
        "edge",
    ),
    Metric(
        "tamis_edge_waiting_tuples",
        "gauge",
        "Readings that wait for the watermark before patterns and window functions see them",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_series",
        "gauge",
        "Keys whose readings are kept for patterns and window functions",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_series_bytes",
        "gauge",
        "Memory of the readings that are kept for patterns and window functions",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_read_again",
        "gauge",
        "Readings that a restart would read again, for streams with patterns or window functions",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_watermark_seconds",
        "gauge",
        "Watermark of a shard, as event time",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_watermark_lag_seconds",
        "gauge",
        "Wall clock minus the watermark of a shard",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_ahead_seconds",
        "gauge",
        "Greatest event time of a shard minus the wall clock, if that is more than the stream's max_ahead",
        ("edge", "stream", "shard"),
        "edge",
    ),
    Metric(
        "tamis_edge_doubtful_times_total",
        "counter",
        "Tuples with an event time before 2000 or after 2100; the source's time_unit may be wrong",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_shard_plan_version",
        "gauge",
        "Plan version that a shard applies",
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
        "tamis_edge_spool_limit_bytes",
        "gauge",
        "Bytes of retained records above which the edge pauses its sources",
        ("edge",),
        "edge",
    ),
    Metric(
        "tamis_edge_spool_records", "gauge", "Retained records that wait on disk for Kafka", ("edge",), "edge"
    ),
    Metric(
        "tamis_edge_inbox_records",
        "gauge",
        "Readings that are safe on disk and wait for the edge's decision",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_paused",
        "gauge",
        "1 while sources are paused because the spool is full",
        ("edge",),
        "edge",
    ),
    Metric(
        "tamis_edge_disk_full",
        "gauge",
        "1 while the disk has no room for the reserve; the edge then accepts no readings that it would have"
        " to write to disk",
        ("edge",),
        "edge",
    ),
    Metric(
        "tamis_edge_source_up",
        "gauge",
        "1 while a source can be read; 0 if its file can't be read, its broker can't be reached, or "
        "readings wait in Kafka and none arrives",
        ("edge", "source"),
        "edge",
    ),
    Metric(
        "tamis_edge_shed_tuples_total",
        "counter",
        "Retained tuples dropped at random under overload; a tuple that is dropped from several topics "
        "counts once for each",
        ("edge", "stream"),
        "edge",
    ),
    Metric(
        "tamis_edge_refused_records_total",
        "counter",
        "Records of readings that Kafka refused permanently, by the place where the edge put them: "
        "dead_letters, file",
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
        "Shards by state: waiting (not listed by a plan, or has not taken up its first plan), active, behind "
        "(does not yet apply the newest plan), away (silent at the moment), gone (declared gone), unused "
        "(given up by `tamis drop shard`, or declared gone without a reading ever, while other shards have "
        "those of its stream), ended",
        ("stream", "state"),
        "registry",
    ),
    Metric("tamis_registry_queries", "gauge", "Queries by state", ("state",), "registry"),
    Metric(
        "tamis_registry_unproven_streams",
        "gauge",
        "Streams of a query whose tuples are omitted without a proof, by the reason why that is allowed: "
        "heuristic (certify = 'heuristic'), trusted (declared shape of a Python function)",
        ("query", "certificate"),
        "registry",
    ),
    Metric(
        "tamis_registry_unproven_queries",
        "gauge",
        "1 for a query that runs only because of allow_unbounded: its memory isn't proven to be bounded",
        ("query",),
        "registry",
    ),
    Metric(
        "tamis_registry_history_start_seconds",
        "gauge",
        "Of an alert WITH (from = …): the least event time of the readings that edges have read for it",
        ("query",),
        "registry",
    ),
    Metric(
        "tamis_registry_keys",
        "gauge",
        "Keys whose tuples the joiner holds now, from all edges; of topics partitioned by KEY columns",
        ("stream", "topic"),
        "registry",
    ),
    Metric(
        "tamis_registry_declared_keys",
        "gauge",
        "The number of keys that the stream declares; of topics partitioned by KEY columns",
        ("stream", "topic"),
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
        "tamis_registry_leases",
        "gauge",
        "Consumers outside the fleet that have a lease",
        ("stream",),
        "registry",
    ),
    Metric("tamis_registry_topics", "gauge", "Shared topics in use", ("stream",), "registry"),
    Metric(
        "tamis_registry_times_begun_anew_total",
        "counter",
        "Number of times that a stream was moved to new topics because its event time was ahead of the clock",
        ("stream",),
        "registry",
    ),
    # joiner
    Metric(
        "tamis_joiner_rows_total",
        "counter",
        "Offsets of Kafka that batches have read: records, and marks of transactions",
        (),
        "joiner",
    ),
    Metric(
        "tamis_joiner_batch_seconds", "histogram", "Duration of a Spark batch", (), "joiner", LATENCY_BUCKETS
    ),
    Metric(
        "tamis_joiner_state_tuples",
        "gauge",
        "Retained tuples that are in state now",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_state_bytes",
        "gauge",
        "Bytes of the retained tuples that are in state now",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_bound_tuples",
        "gauge",
        "Proven upper bound of the retained tuples in state at any time",
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
        "Bytes of the retained tuples that a query still needs now, estimated from the mean size in each "
        "topic, or bytes of its synopses",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_query_bound_tuples",
        "gauge",
        "Proven upper bound of the tuples or entries that a query needs at any time",
        ("query",),
        "joiner",
    ),
    Metric(
        "tamis_joiner_frontier_seconds",
        "gauge",
        "Event time below which no more tuples can arrive",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_frontier_lag_seconds",
        "gauge",
        "Wall clock minus the frontier",
        ("stream", "topic"),
        "joiner",
    ),
    Metric(
        "tamis_joiner_late_total",
        "counter",
        "Late tuples, joined with those tuples that were still in state",
        (),
        "joiner",
    ),
    Metric(
        "tamis_query_late_total",
        "counter",
        "Tuples too late for a query in application time, a window that had ended, or a row of NOT EXISTS",
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
    Metric(
        "tamis_joiner_parked_records",
        "gauge",
        "Records that wait because the joiner hasn't yet read the plan version under which they were written",
        (),
        "joiner",
    ),
    Metric("tamis_alarms_total", "counter", "Alarms raised", ("query",), "joiner"),
    # alerts
    Metric(
        "tamis_alarm_latency_seconds",
        "histogram",
        "Time from the moment an alarm's last tuple left its edge to the arrival of the alarm at the alerts"
        " service, by the wall clock",
        ("query",),
        "alerts",
        LATENCY_BUCKETS,
    ),
    Metric(
        "tamis_alerts_alarms_total",
        "counter",
        "Alarms that were read, by outcome: new, duplicate",
        ("query", "outcome"),
        "alerts",
    ),
    Metric(
        "tamis_alerts_partitions",
        "gauge",
        "Partitions of the topic of alarms that this worker has; a worker with 0 is idle until another "
        "worker ends",
        (),
        "alerts",
    ),
    Metric(
        "tamis_episodes_total",
        "counter",
        "Episodes by event: opened, closed",
        ("query", "event"),
        "alerts",
    ),
    Metric("tamis_episodes_open", "gauge", "Episodes open now", ("query",), "alerts"),
    Metric(
        "tamis_notifications_total",
        "counter",
        "Notifications by sink and outcome: delivered, given_up, silenced",
        ("sink", "outcome"),
        "alerts",
    ),
    Metric(
        "tamis_notifications_waiting",
        "gauge",
        "Notifications that a sink has not yet taken and that will be sent to it, with the silences of now",
        ("sink",),
        "alerts",
    ),
    Metric(
        "tamis_sink_unread_events",
        "gauge",
        "Events of episodes in Kafka that a sink's queue has not read yet, since many notifications wait",
        ("sink",),
        "alerts",
    ),
    Metric(
        "tamis_notifications_held",
        "gauge",
        "Openings of open episodes that are not sent to a sink while a silence covers them",
        ("sink",),
        "alerts",
    ),
    Metric(
        "tamis_notifications_oldest_seconds",
        "gauge",
        "Age of the oldest notification that waits for a sink",
        ("sink",),
        "alerts",
    ),
)

BY_NAME = {metric.name: metric for metric in CATALOGUE}
