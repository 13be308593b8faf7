"""Dashboard of an edge: its sources, what it holds, its spool, and what it could not use."""

from __future__ import annotations

from deploy.grafana.dashboards.panels import Panel, Row, build, quantile, rate

EDGE = build(
    "tamis-edge",
    "Tamis / Edge",
    [
        Row(
            "Now",
            (
                Panel(
                    "Sources",
                    (('tamis_edge_source_up{edge=~"$edge"}', "{{edge}} {{source}}"),),
                    kind="number",
                ),
                Panel("Paused", (('tamis_edge_paused{edge=~"$edge"}', "{{edge}}"),), kind="number"),
                Panel("Disk full", (('tamis_edge_disk_full{edge=~"$edge"}', "{{edge}}"),), kind="number"),
            ),
        ),
        Row(
            "Work",
            (
                Panel(
                    "Readings by decision",
                    (
                        (
                            rate("tamis_edge_tuples_total", by="edge, decision", where='edge=~"$edge"'),
                            "{{edge}} {{decision}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Time from arrival to publication",
                    (
                        (
                            quantile(0.99, "tamis_edge_hold_seconds", by="edge", where='edge=~"$edge"'),
                            "{{edge}} p99",
                        ),
                    ),
                    unit="s",
                ),
                Panel(
                    "Calls of functions that omission saves",
                    (
                        (
                            rate("tamis_edge_saved_calls_total", by="edge, stream", where='edge=~"$edge"'),
                            "{{edge}} {{stream}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Memory of the process",
                    (('process_resident_memory_bytes{job="tamis-edge"}', "{{instance}}"),),
                    unit="bytes",
                ),
                Panel(
                    "CPU of the process",
                    (
                        (
                            'rate(process_cpu_seconds_total{job="tamis-edge"}[$__rate_interval])',
                            "{{instance}}",
                        ),
                    ),
                    unit="percentunit",
                ),
            ),
        ),
        Row(
            "Patterns",
            (
                Panel(
                    "Matching readings by pattern",
                    (
                        (
                            rate(
                                "tamis_edge_pattern_matches_total",
                                by="stream, pattern",
                                where='edge=~"$edge"',
                            ),
                            "{{stream}} {{pattern}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Tuples that similar() lets pass",
                    (
                        (
                            rate(
                                "tamis_edge_watched_tuples_total",
                                by="stream, decision",
                                where='edge=~"$edge"',
                            ),
                            "{{stream}} {{decision}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Keys, and readings that wait for the watermark",
                    (
                        ('tamis_edge_series{edge=~"$edge"}', "{{edge}} {{stream}} keys"),
                        ('tamis_edge_waiting_tuples{edge=~"$edge"}', "{{edge}} {{stream}} waiting"),
                    ),
                ),
                Panel(
                    "Memory of the readings compared with patterns",
                    (('tamis_edge_series_bytes{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "Partial aggregates of windows",
            (
                Panel(
                    "Records",
                    (
                        (
                            rate("tamis_edge_partial_records_total", by="edge, topic", where='edge=~"$edge"'),
                            "{{edge}} {{topic}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Bytes",
                    (
                        (
                            rate("tamis_edge_partial_bytes_total", by="edge, topic", where='edge=~"$edge"'),
                            "{{edge}} {{topic}}",
                        ),
                    ),
                    unit="Bps",
                ),
                Panel(
                    "Rows that are not sent yet",
                    (('tamis_edge_open_pane_rows{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                ),
                Panel(
                    "Memory of the rows that are not sent yet",
                    (('tamis_edge_open_pane_bytes{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "What waits",
            (
                Panel(
                    "Tuples that omission remembers",
                    (('tamis_edge_state_tuples{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                ),
                Panel(
                    "Readings to decide",
                    (('tamis_edge_inbox_records{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                ),
                Panel(
                    "Readings that a restart would read again",
                    (('tamis_edge_read_again{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                    note="Their offsets are committed later: the lag of a consumer group in Kafka has them",
                ),
                Panel(
                    "Tuples held by omission",
                    (('tamis_edge_held_tuples{edge=~"$edge"}', "{{edge}} {{stream}}"),),
                ),
                Panel(
                    "Spool",
                    (
                        ('tamis_edge_spool_bytes{edge=~"$edge"}', "{{edge}}"),
                        ('tamis_edge_spool_limit_bytes{edge=~"$edge"}', "{{edge}} limit"),
                    ),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            "Trouble",
            (
                Panel(
                    "Event times before 2000 or after 2100",
                    (
                        (
                            rate("tamis_edge_doubtful_times_total", by="edge, stream", where='edge=~"$edge"'),
                            "{{edge}} {{stream}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Dead letters",
                    (
                        (
                            rate("tamis_dead_letters_total", by="reason", where='service="edge"'),
                            "{{reason}}",
                        ),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Ahead of the clock",
                    (('tamis_edge_ahead_seconds{edge=~"$edge"}', "{{edge}} {{shard}}"),),
                    unit="s",
                ),
                Panel(
                    "Shed, refused or lost",
                    (
                        (
                            rate("tamis_edge_shed_tuples_total", by="edge", where='edge=~"$edge"'),
                            "{{edge}} shed",
                        ),
                        (
                            rate("tamis_edge_refused_records_total", by="edge", where='edge=~"$edge"'),
                            "{{edge}} refused",
                        ),
                        (
                            rate("tamis_edge_lost_readings_total", by="edge", where='edge=~"$edge"'),
                            "{{edge}} lost",
                        ),
                    ),
                    unit="ops",
                ),
            ),
        ),
    ],
    [("edge", "tamis_edge_tuples_total")],
)
