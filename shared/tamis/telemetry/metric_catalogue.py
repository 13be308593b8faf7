"""Catalogue of all metrics of the fleet, with types, labels and help.

Services export only these metrics, and docs/metrics.md is checked against this list. Names have the prefix
`tamis_` and base units, and counters end in `_total`. Labels are bounded sets such as stream, query, edge,
shard and reason, never a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# The target for alarm latency is below one second, so that most buckets are there; the last ones show delays
# of minutes. All histograms have them.
LATENCY_BUCKETS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

# By service, or for all of them: kind, name and labels of each metric, and below them its help.
_TABLE = """
all:
  gauge tamis_build_info service version
    Always 1; the version is in the label
  gauge tamis_plan_version service
    Newest plan version that this service uses
  counter tamis_dead_letters_total service reason
    Records that a service can't use, by reason: it copies readings whole to a dead-letter topic, and
    skips and logs others
  counter tamis_http_refused_requests_total service reason
    HTTP requests without a valid token, or with a token that lacks the right, by reason

edge:
  counter tamis_edge_tuples_total edge stream decision
    Tuples by the edge's decision: published, omitted, filtered, late, dead, aggregated (they travel only
    in partial aggregates of windows)
  counter tamis_edge_saved_calls_total edge stream
    Omitted tuples for which the joiner would call a Python function of an alert over one stream (WITH
    (within = …), or windows)
  counter tamis_edge_received_bytes_total edge stream
    Bytes of the readings received from sources
  counter tamis_edge_published_bytes_total edge stream
    Bytes of the tuples and partial aggregates published to Kafka, including keys
  counter tamis_edge_partial_records_total edge stream topic
    Records of partial aggregates that were published
  counter tamis_edge_partial_rows_total edge stream topic
    Rows in the published records of partial aggregates: one for each group and pane
  counter tamis_edge_partial_bytes_total edge stream topic
    Bytes of the published records of partial aggregates
  gauge tamis_edge_open_pane_rows edge stream
    Rows of partial aggregates that are kept until they are sent
  gauge tamis_edge_open_pane_bytes edge stream
    Memory of the rows of partial aggregates that are kept until they are sent
  gauge tamis_edge_held_tuples edge stream
    Tuples that wait for the decision whether they are omitted
  gauge tamis_edge_state_tuples edge stream
    Tuples kept in memory for omission, including those that wait for a decision
  gauge tamis_edge_keys edge stream topic
    Partition keys that a shard knows of the tuples that it publishes, the most of any shard
  histogram tamis_edge_hold_seconds edge stream
    Time from the arrival of a tuple to its publication, by the wall clock
  counter tamis_edge_pattern_matches_total edge stream pattern
    Readings at which a window ends that matches a pattern, by the pattern as queries name it (ANY for
    all patterns)
  counter tamis_edge_watched_tuples_total edge stream decision
    Tuples that pass the filter of a query with similar() or a window function, by decision: published,
    omitted, late. A tuple counts once for each set of such calls
  gauge tamis_edge_waiting_tuples edge stream
    Readings that wait for the watermark before patterns and window functions see them
  gauge tamis_edge_series edge stream
    Keys whose readings are kept for patterns and window functions
  gauge tamis_edge_series_bytes edge stream
    Memory of the readings that are kept for patterns and window functions
  gauge tamis_edge_read_again edge stream
    Readings that a restart would read again, for streams with patterns, window functions or partial
    aggregates; their offsets are committed later by as much
  gauge tamis_edge_watermark_seconds edge stream shard
    Watermark of a shard, as event time
  gauge tamis_edge_watermark_lag_seconds edge stream shard
    Wall clock minus the watermark of a shard
  gauge tamis_edge_ahead_seconds edge stream shard
    Greatest event time of a shard minus the wall clock, if that is more than the stream's max_ahead
  counter tamis_edge_doubtful_times_total edge stream
    Tuples with an event time before 2000 or after 2100; the source's time_unit may be wrong
  gauge tamis_edge_shard_plan_version edge stream shard
    Plan version that a shard applies
  gauge tamis_edge_spool_bytes edge
    Bytes of retained records that wait on disk for Kafka
  gauge tamis_edge_spool_limit_bytes edge
    Bytes of retained records above which the edge pauses its sources
  gauge tamis_edge_spool_records edge
    Retained records that wait on disk for Kafka
  gauge tamis_edge_inbox_records edge stream
    Readings that are safe on disk and wait for the edge's decision
  gauge tamis_edge_paused edge
    1 while sources are paused because the spool is full
  gauge tamis_edge_disk_full edge
    1 while the disk has no room for the reserve; the edge then accepts no readings that it would have to
    write to disk
  gauge tamis_edge_source_up edge source
    1 while a source can be read; 0 if its file can't be read, its broker can't be reached, or readings
    wait in Kafka and none arrives
  counter tamis_edge_shed_tuples_total edge stream
    Retained tuples dropped at random under overload; a tuple that is dropped from several topics counts
    once for each
  counter tamis_edge_refused_records_total edge place
    Records of readings that Kafka refused permanently, by the place where the edge put them:
    dead_letters, file
  counter tamis_edge_lost_readings_total edge stream
    Readings that Kafka deleted before the edge had read them

registry:
  gauge tamis_registry_shards stream state
    Shards by state: waiting (not listed by a plan, or has not taken up its first plan), active, behind
    (does not yet apply the newest plan), away (silent at the moment), gone (declared gone), unused
    (given up by `tamis drop shard`, or declared gone without a reading ever, while other shards have
    those of its stream), ended
  gauge tamis_registry_queries state
    Queries by state
  gauge tamis_registry_unproven_streams query certificate
    Streams of a query whose tuples are omitted without a proof, by the reason why that is allowed:
    heuristic (certify = 'heuristic'), trusted (declared shape of a Python function)
  gauge tamis_registry_unproven_queries query
    1 for a query that runs only because of allow_unbounded: its memory isn't proven to be bounded
  gauge tamis_registry_history_start_seconds query
    Of an alert WITH (from = …): the least event time of the readings that edges have read for it
  gauge tamis_registry_keys stream topic
    Keys whose tuples the joiner holds now, from all edges; of topics partitioned by KEY columns
  gauge tamis_registry_declared_keys stream topic
    The number of keys that the stream declares; of topics partitioned by KEY columns
  gauge tamis_registry_partial_bound_records stream topic
    Proven upper bound of the records of partial aggregates that all listed shards together publish in a
    minute, besides one for each late reading and one cut of a shard for each restart or change of queries
  gauge tamis_registry_partial_bound_rows stream topic
    The same of the rows in these records
  counter tamis_registry_statements_total kind outcome
    Statements by kind and outcome
  gauge tamis_registry_leases stream
    Consumers outside the fleet that have a lease
  gauge tamis_registry_topics stream
    Shared topics in use
  counter tamis_registry_times_begun_anew_total stream
    Number of times that a stream was moved to new topics because its event time was ahead of the clock

joiner:
  counter tamis_joiner_rows_total
    Offsets of Kafka that batches have read: records, and marks of transactions
  histogram tamis_joiner_batch_seconds
    Duration of a Spark batch
  gauge tamis_joiner_state_tuples stream topic
    Retained tuples that are in state now
  gauge tamis_joiner_state_bytes stream topic
    Bytes of the retained tuples that are in state now
  gauge tamis_joiner_bound_tuples stream topic
    Proven upper bound of the retained tuples in state at any time
  gauge tamis_query_state_tuples query
    Retained tuples that a query still needs now, or entries of its synopses
  gauge tamis_query_state_bytes query
    Bytes of the retained tuples that a query still needs now, estimated from the mean size in each
    topic, or bytes of its synopses
  gauge tamis_query_bound_tuples query
    Proven upper bound of the tuples or entries that a query needs at any time
  gauge tamis_joiner_frontier_seconds stream topic
    Event time below which no more tuples can arrive
  gauge tamis_joiner_frontier_lag_seconds stream topic
    Wall clock minus the frontier; for partial aggregates, whose frontier moves only at ends of panes, as
    much as it exceeds the stream's delay and the longest pane
  counter tamis_joiner_late_total
    Late tuples, joined with those tuples that were still in state
  counter tamis_query_late_total query
    Tuples too late for a query in application time, a window that had ended, or a row of NOT EXISTS
  counter tamis_query_disordered_cuts_total query
    Cuts (records of partial aggregates) that don't follow the one before: a commit of an edge went back,
    and readings may be missing in rows or counted twice
  counter tamis_joiner_lost_records_total
    Records that Kafka deleted before the joiner had read them
  gauge tamis_joiner_parked_records
    Records that wait because the joiner hasn't yet read the plan version under which they were written
  counter tamis_alarms_total query
    Alarms raised

alerts:
  histogram tamis_alarm_latency_seconds query
    Time from the moment an alarm's last tuple left its edge to the arrival of the alarm at the alerts
    service, by the wall clock
  counter tamis_alerts_alarms_total query outcome
    Alarms that were read, by outcome: new, duplicate
  gauge tamis_alerts_partitions
    Partitions of the topic of alarms that this worker has; a worker with 0 is idle until another worker
    ends
  counter tamis_episodes_total query event
    Episodes by event: opened, closed
  gauge tamis_episodes_open query
    Episodes open now
  counter tamis_notifications_total sink outcome
    Notifications by sink and outcome: delivered, given_up, silenced
  gauge tamis_notifications_waiting sink
    Notifications that a sink has not yet taken and that will be sent to it, with the silences of now
  gauge tamis_sink_unread_events sink
    Events of episodes in Kafka that a sink's queue has not read yet, since many notifications wait
  gauge tamis_notifications_held sink
    Openings of open episodes that are not sent to a sink while a silence covers them
  gauge tamis_notifications_oldest_seconds sink
    Age of the oldest notification that waits for a sink
"""


@dataclass(frozen=True)
class Metric:
    """One metric family; `service` exports it. `kind`: counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    service: str


def _read(table: str) -> Iterator[Metric]:
    service, row, help_ = "", [""], list[str]()
    for line in [*table.strip().splitlines(), ""]:
        if line.startswith("    "):
            help_.append(line.strip())
            continue
        if help_:
            kind, name, *labels = row
            yield Metric(name, kind, " ".join(help_), tuple(labels), service)
            help_ = []
        if line.endswith(":"):
            service = line[:-1]
        row = line.split()


CATALOGUE = tuple(_read(_TABLE))
