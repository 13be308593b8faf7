"""Dashboard of the joiner: batches, lag, state beside its bound, and the process."""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, quantile

JOINER = build(
    "tamis-joiner",
    "Tamis / Joiner",
    [
        Row(
            "Work",
            (
                Panel(
                    "Records read",
                    (("rate(tamis_joiner_rows_total[$__rate_interval])", "records"),),
                    unit="ops",
                ),
                Panel(
                    "Duration of a batch",
                    (
                        (
                            quantile(0.5, "tamis_joiner_batch_seconds"),
                            "p50",
                        ),
                        (
                            quantile(0.99, "tamis_joiner_batch_seconds"),
                            "p99",
                        ),
                    ),
                    unit="s",
                ),
                Panel("Alarms", (("query:tamis_alarms:rate5m", "{{query}}"),), unit="ops"),
            ),
        ),
        Row(
            "State",
            (
                Panel(
                    "Tuples beside the proven bound",
                    (
                        ("sum(tamis_joiner_state_tuples)", "state"),
                        ("sum(tamis_joiner_bound_tuples)", "bound"),
                    ),
                ),
                Panel(
                    "Bytes by stream",
                    (("sum by (stream) (tamis_joiner_state_bytes)", "{{stream}}"),),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "Event time",
            (
                Panel(
                    "Lag of the frontier",
                    (("tamis_joiner_frontier_lag_seconds", "{{stream}} {{topic}}"),),
                    unit="s",
                    note="Of partial aggregates: what exceeds a pane and the delay, by which they wait",
                ),
                Panel(
                    "Late tuples", (("rate(tamis_joiner_late_total[$__rate_interval])", "late"),), unit="ops"
                ),
            ),
        ),
        Row(
            "Trouble",
            (
                Panel("Records that wait for their plan", (("tamis_joiner_parked_records", "parked"),)),
                Panel(
                    "Cuts that don't follow the one before",
                    (("increase(tamis_query_disordered_cuts_total[1h])", "{{query}}, in an hour"),),
                ),
                Panel(
                    "Records deleted unread",
                    (("increase(tamis_joiner_lost_records_total[1h])", "in an hour"),),
                ),
                Panel(
                    "Memory of the driver",
                    (('process_resident_memory_bytes{job="tamis-joiner"}', "{{instance}}"),),
                    unit="bytes",
                ),
            ),
        ),
    ],
)
