"""Dashboard of a stream: seen, omitted, retained, bytes saved, watermarks and lag."""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, rate


def _in_a_minute(counter: str) -> str:
    """The mean over 5 minutes, since edges publish at ends of panes."""
    return f'sum by (topic) (increase({counter}{{stream=~"$stream"}}[5m])) / 5'


STREAM = build(
    "tamis-stream",
    "Tamis / Stream",
    [
        Row(
            "Readings",
            (
                Panel(
                    "Readings by decision",
                    (
                        (
                            rate("tamis_edge_tuples_total", by="stream, decision", where='stream=~"$stream"'),
                            "{{stream}} {{decision}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Share that reaches Kafka",
                    (('stream:tamis_edge_published:ratio_rate5m{stream=~"$stream"}', "{{stream}}"),),
                    unit="percentunit",
                ),
                Panel(
                    "Bytes published per byte received",
                    (('stream:tamis_edge_bytes:ratio_rate5m{stream=~"$stream"}', "{{stream}}"),),
                    unit="percentunit",
                ),
            ),
        ),
        Row(
            "Partial aggregates beside their proven bound",
            (
                Panel(
                    "Records of partial aggregates in a minute",
                    (
                        (_in_a_minute("tamis_edge_partial_records_total"), "{{topic}}"),
                        ('tamis_registry_partial_bound_records{stream=~"$stream"}', "{{topic}} bound"),
                    ),
                    note="Each late reading may add one. A restart or a new query may add one cut of a shard",
                ),
                Panel(
                    "Rows of partial aggregates in a minute",
                    (
                        (_in_a_minute("tamis_edge_partial_rows_total"), "{{topic}}"),
                        ('tamis_registry_partial_bound_rows{stream=~"$stream"}', "{{topic}} bound"),
                    ),
                ),
                Panel(
                    "Bytes of partial aggregates",
                    (
                        (
                            rate("tamis_edge_partial_bytes_total", by="topic", where='stream=~"$stream"'),
                            "{{topic}}",
                        ),
                    ),
                    unit="Bps",
                ),
                Panel(
                    "Memory of open panes",
                    (('tamis_edge_open_pane_bytes{stream=~"$stream"}', "{{edge}} {{stream}}"),),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "State at the joiner beside its proven bound",
            (
                Panel(
                    "Tuples",
                    (
                        ('tamis_joiner_state_tuples{stream=~"$stream"}', "{{topic}} state"),
                        ('tamis_joiner_bound_tuples{stream=~"$stream"}', "{{topic}} bound"),
                    ),
                ),
                Panel("Bytes", (('tamis_joiner_state_bytes{stream=~"$stream"}', "{{topic}}"),), unit="bytes"),
            ),
        ),
        Row(
            "Event time",
            (
                Panel(
                    "Lag of the watermark by shard",
                    (('tamis_edge_watermark_lag_seconds{stream=~"$stream"}', "{{edge}} {{shard}}"),),
                    unit="s",
                ),
                Panel(
                    "Lag of the frontier",
                    (('tamis_joiner_frontier_lag_seconds{stream=~"$stream"}', "{{topic}}"),),
                    unit="s",
                    note="Of partial aggregates: what exceeds a pane and the delay, by which they wait",
                ),
                Panel(
                    "Late readings",
                    (
                        (
                            rate(
                                "tamis_edge_tuples_total",
                                by="stream, edge",
                                where='stream=~"$stream",decision="late"',
                            ),
                            "{{stream}} {{edge}}",
                        ),
                    ),
                    unit="ops",
                ),
            ),
        ),
        Row(
            "Plan",
            (
                Panel(
                    "Shards by state", (('tamis_registry_shards{stream=~"$stream"}', "{{stream}} {{state}}"),)
                ),
                Panel(
                    "Shared topics and consumers with a lease",
                    (
                        ('tamis_registry_topics{stream=~"$stream"}', "{{stream}} topics"),
                        ('tamis_registry_leases{stream=~"$stream"}', "{{stream}} leases"),
                    ),
                ),
                Panel(
                    "Keys",
                    (
                        ('tamis_registry_keys{stream=~"$stream"}', "{{topic}} at the joiner"),
                        ('max by (topic) (tamis_edge_keys{stream=~"$stream"})', "{{topic}} at one shard"),
                        ('tamis_registry_declared_keys{stream=~"$stream"}', "{{topic}} declared"),
                    ),
                ),
                Panel(
                    "Times begun anew",
                    (
                        (
                            'increase(tamis_registry_times_begun_anew_total{stream=~"$stream"}[1h])',
                            "{{stream}}",
                        ),
                    ),
                ),
                Panel(
                    "Plan version by shard",
                    (('tamis_edge_shard_plan_version{stream=~"$stream"}', "{{edge}} {{shard}}"),),
                ),
            ),
        ),
    ],
    [("stream", "tamis_edge_tuples_total")],
)
