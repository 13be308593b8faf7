"""Dashboard of a query: live state beside its proven bound, alarms, episodes and latency."""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, rate

QUERY = build(
    "tamis-query",
    "Tamis / Query",
    [
        Row(
            "Memory",
            (
                Panel(
                    "State beside the proven bound",
                    (
                        ('tamis_query_state_tuples{query=~"$query"}', "{{query}} state"),
                        ('tamis_query_bound_tuples{query=~"$query"}', "{{query}} bound"),
                    ),
                ),
                Panel(
                    "State per proven bound",
                    (('query:tamis_query_state:ratio_bound{query=~"$query"}', "{{query}}"),),
                    unit="percentunit",
                ),
                Panel(
                    "State in bytes",
                    (('tamis_query_state_bytes{query=~"$query"}', "{{query}}"),),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "Alarms",
            (
                Panel("Alarms", (('query:tamis_alarms:rate5m{query=~"$query"}', "{{query}}"),), unit="ops"),
                Panel(
                    "Latency of alarms",
                    (
                        ('query:tamis_alarm_latency_seconds:p50_rate5m{query=~"$query"}', "{{query}} p50"),
                        ('query:tamis_alarm_latency_seconds:p99_rate5m{query=~"$query"}', "{{query}} p99"),
                    ),
                    unit="s",
                ),
                Panel(
                    "Tuples too late for the query",
                    (('rate(tamis_query_late_total{query=~"$query"}[$__rate_interval])', "{{query}}"),),
                    unit="ops",
                ),
            ),
        ),
        Row(
            "Episodes",
            (
                Panel("Open episodes", (('tamis_episodes_open{query=~"$query"}', "{{query}}"),)),
                Panel(
                    "Episodes by event",
                    (
                        (
                            rate("tamis_episodes_total", by="query, event", where='query=~"$query"'),
                            "{{query}} {{event}}",
                        ),
                    ),
                    unit="ops",
                ),
            ),
        ),
    ],
    [("query", "tamis_query_state_tuples")],
)
