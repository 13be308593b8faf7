"""Dashboard of the whole fleet: is it well, what does it save, what does it raise?"""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, rate

FLEET = build(
    "tamis-fleet",
    "Tamis / Fleet",
    [
        Row(
            "Now",
            (
                Panel("Edges", (('sum(up{job="tamis-edge"})', "up"),), kind="number"),
                Panel("Queries", (("sum by (state) (tamis_registry_queries)", "{{state}}"),), kind="number"),
                Panel("Open episodes", (("sum(tamis_episodes_open)", "open"),), kind="number"),
                Panel(
                    "Bytes kept from Kafka",
                    (
                        (
                            "1 - sum(rate(tamis_edge_published_bytes_total[$__rate_interval]))"
                            " / sum(rate(tamis_edge_received_bytes_total[$__rate_interval]))",
                            "saved",
                        ),
                    ),
                    unit="percentunit",
                    kind="number",
                ),
                Panel(
                    "Fullest query",
                    (("max(query:tamis_query_state:ratio_bound)", "state per bound"),),
                    unit="percentunit",
                    kind="number",
                    note="The greatest share of its proven bound that a query's state has reached",
                ),
                Panel("Plan", (("max by (service) (tamis_plan_version)", "{{service}}"),), kind="number"),
            ),
        ),
        Row(
            "Readings and tuples",
            (
                Panel(
                    "Readings by decision",
                    (
                        (
                            rate("tamis_edge_tuples_total", by="decision"),
                            "{{decision}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Share that reaches Kafka",
                    (("stream:tamis_edge_published:ratio_rate5m", "{{stream}}"),),
                    unit="percentunit",
                ),
                Panel(
                    "Bytes received and published",
                    (
                        ("sum(rate(tamis_edge_received_bytes_total[$__rate_interval]))", "received"),
                        ("sum(rate(tamis_edge_published_bytes_total[$__rate_interval]))", "published"),
                    ),
                    unit="Bps",
                ),
            ),
        ),
        Row(
            "Alarms",
            (
                Panel("Alarms", (("query:tamis_alarms:rate5m", "{{query}}"),), unit="ops"),
                Panel(
                    "Latency of alarms",
                    (
                        ("query:tamis_alarm_latency_seconds:p50_rate5m", "{{query}} p50"),
                        ("query:tamis_alarm_latency_seconds:p99_rate5m", "{{query}} p99"),
                    ),
                    unit="s",
                ),
                Panel(
                    "State per proven bound",
                    (("query:tamis_query_state:ratio_bound", "{{query}}"),),
                    unit="percentunit",
                ),
            ),
        ),
        Row(
            "Trouble",
            (
                Panel(
                    "Dead letters",
                    (
                        (
                            rate("tamis_dead_letters_total", by="service, reason"),
                            "{{service}} {{reason}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Refused HTTP requests",
                    (
                        (
                            rate("tamis_http_refused_requests_total", by="service, reason"),
                            "{{service}} {{reason}}",
                        ),
                    ),
                    unit="reqps",
                ),
                Panel("Shards by state", (("sum by (state) (tamis_registry_shards)", "{{state}}"),)),
                Panel(
                    "Lag of streams",
                    (("max by (stream) (tamis_joiner_frontier_lag_seconds)", "{{stream}}"),),
                    unit="s",
                ),
                Panel(
                    "Notifications that wait",
                    (
                        ("sum by (sink) (tamis_notifications_waiting)", "{{sink}}"),
                        ("sum by (sink) (tamis_sink_unread_events)", "{{sink}}, events not read yet"),
                        ("sum by (sink) (tamis_notifications_held)", "{{sink}}, silenced"),
                    ),
                ),
            ),
        ),
        Row(
            "Registry and notifications",
            (
                Panel(
                    "Statements",
                    ((rate("tamis_registry_statements_total", by="kind, outcome"), "{{kind}} {{outcome}}"),),
                    unit="ops",
                ),
                Panel(
                    "Queries and omission without a proof",
                    (
                        ("sum(tamis_registry_unproven_queries) or vector(0)", "queries"),
                        ("sum(tamis_registry_unproven_streams) or vector(0)", "streams of queries"),
                    ),
                ),
                Panel(
                    "Alarms read",
                    ((rate("tamis_alerts_alarms_total", by="outcome"), "{{outcome}}"),),
                    unit="ops",
                ),
                Panel(
                    "Notifications",
                    ((rate("tamis_notifications_total", by="sink, outcome"), "{{sink}} {{outcome}}"),),
                    unit="ops",
                ),
                Panel(
                    "Longest wait for a sink",
                    (("max by (sink) (tamis_notifications_oldest_seconds)", "{{sink}}"),),
                    unit="s",
                ),
            ),
        ),
    ],
)
