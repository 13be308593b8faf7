"""Dashboard of a stream: seen, omitted, retained, bytes saved, watermarks and lag."""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, rate

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
