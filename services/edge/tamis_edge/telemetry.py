"""Metrics of the edge, from the catalogue, refreshed once a second."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from tamis.telemetry.metrics import Metrics
from tamis_edge.core.outbox import DECISIONS, START_OF_TIME
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.shards.worker import Worker
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool

# Of tuples of watched streams. How many pass no filter is not counted.
WATCHED_DECISIONS = ("published", "omitted", "late")

# Gauges of shards that the edge may lose, or that have a value only at times.
OF_SHARDS = (
    "tamis_edge_watermark_seconds",
    "tamis_edge_watermark_lag_seconds",
    "tamis_edge_ahead_seconds",
    "tamis_edge_shard_plan_version",
)


class EdgeTelemetry:
    """Turns the state of workers, spool and journal into metrics. `now` is wall clock in microseconds."""

    def __init__(self, metrics: Metrics, edge: str) -> None:
        self._metrics, self._edge = metrics, edge
        self._shown: set[tuple[str, str]] = set()  # streams and gauges that only some streams have

    def show(
        self,
        workers: Iterable[Worker],
        *,
        troubles: Mapping[str, str | None],
        spool: Spool,
        journal: Journal,
        paused: bool,
        disk_full: bool,
        version: int,
        now: int,
    ) -> None:
        """Refresh all metrics."""
        metrics, edge = self._metrics, self._edge
        metrics.set("tamis_plan_version", version, service="edge")
        metrics.set("tamis_edge_spool_bytes", spool.bytes, edge=edge)
        metrics.set("tamis_edge_spool_limit_bytes", spool.limit, edge=edge)
        metrics.set("tamis_edge_spool_records", spool.records, edge=edge)
        metrics.set("tamis_edge_paused", paused, edge=edge)
        metrics.set("tamis_edge_disk_full", disk_full, edge=edge)
        for source, trouble in troubles.items():
            metrics.set("tamis_edge_source_up", trouble is None, edge=edge, source=source)
        held: dict[str, int] = defaultdict(int)
        remembered: dict[str, int] = defaultdict(int)
        inbox: dict[str, int] = defaultdict(int)
        gauges: dict[str, Counter[str]] = defaultdict(Counter)  # those of some streams
        keys: Counter[tuple[str, str]] = Counter()
        with metrics.replacing(*OF_SHARDS):
            for worker in workers:
                stream, shard = worker.label, worker.source.name
                rows, run = journal.rows(shard), worker.run
                inbox[stream] += rows
                if run is None:
                    continue
                if rows:
                    # Decided readings that stay only because a restart would need them.
                    inbox[stream] -= run.durable.decided - run.durable.done
                self.count(stream, run)
                for topic, count in run.keys.items():
                    keys[stream, topic] = max(keys[stream, topic], count)
                held[stream] += run.held
                remembered[stream] += run.remembered
                gauges[stream].update(_gauges(run))
                labels = {"edge": edge, "stream": stream, "shard": shard}
                metrics.set("tamis_edge_shard_plan_version", run.version, **labels)
                if ahead := run.ahead(now):
                    metrics.set("tamis_edge_ahead_seconds", ahead / 1e6, **labels)
                if run.watermark != START_OF_TIME and not run.ended:
                    metrics.set("tamis_edge_watermark_seconds", run.watermark / 1e6, **labels)
                    metrics.set("tamis_edge_watermark_lag_seconds", (now - run.watermark) / 1e6, **labels)
        with metrics.replacing("tamis_edge_keys"):
            for (stream, topic), count in keys.items():
                metrics.set("tamis_edge_keys", count, edge=edge, stream=stream, topic=topic)
        for stream, waiting in inbox.items():
            metrics.set("tamis_edge_inbox_records", waiting, edge=edge, stream=stream)
            metrics.set("tamis_edge_held_tuples", held[stream], edge=edge, stream=stream)
            metrics.set("tamis_edge_state_tuples", remembered[stream], edge=edge, stream=stream)

        self._shown |= {(stream, name) for stream, known in gauges.items() for name in known}
        for stream, name in self._shown:
            metrics.set(name, gauges[stream][name], edge=edge, stream=stream)

    def count(self, stream: str, run: ShardRun) -> None:
        """Add the counts of a run since they were last taken."""
        labels = {"edge": self._edge, "stream": stream}
        counts, watched = run.take_counts(), run.take_watched_counts()
        for decision in DECISIONS:
            if amount := getattr(counts, decision):
                self._metrics.inc("tamis_edge_tuples_total", amount, decision=decision, **labels)
        for decision in WATCHED_DECISIONS:
            if amount := getattr(watched, decision):
                self._metrics.inc("tamis_edge_watched_tuples_total", amount, decision=decision, **labels)
        for holds in (*counts.holds, *watched.holds):
            self._metrics.observe_many("tamis_edge_hold_seconds", holds / 1e6, **labels)
        if shed := counts.shed + watched.shed:
            self._metrics.inc("tamis_edge_shed_tuples_total", shed, **labels)
        if saved := counts.saved_calls + watched.saved_calls:
            self._metrics.inc("tamis_edge_saved_calls_total", saved, **labels)
        if size := counts.published_bytes + watched.published_bytes:
            self._metrics.inc("tamis_edge_published_bytes_total", size, **labels)
        for topic, sent in counts.partials.items():
            self._metrics.inc("tamis_edge_partial_records_total", sent.records, topic=topic, **labels)
            self._metrics.inc("tamis_edge_partial_rows_total", sent.rows, topic=topic, **labels)
            self._metrics.inc("tamis_edge_partial_bytes_total", sent.bytes, topic=topic, **labels)
        for pattern, amount in run.watched.take_matches().items():
            self._metrics.inc("tamis_edge_pattern_matches_total", amount, pattern=pattern, **labels)


def _gauges(run: ShardRun) -> dict[str, int]:
    """The gauges that a run adds to those of its stream, if queries compare it with patterns or edges send
    partial aggregates of it.
    """
    found = {}
    if run.watched:
        found["tamis_edge_series"] = run.watched.series
        found["tamis_edge_series_bytes"] = run.watched.bytes
        found["tamis_edge_waiting_tuples"] = run.watched.waiting
    if run.partials:
        found["tamis_edge_open_pane_rows"] = run.partials.rows
        found["tamis_edge_open_pane_bytes"] = run.partials.bytes
    if found:
        found["tamis_edge_read_again"] = run.read_again
    return found
