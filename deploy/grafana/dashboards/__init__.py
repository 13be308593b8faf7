"""Grafana dashboards as code: `python -m deploy.grafana.dashboards` writes `deploy/grafana/json`.

A dashboard is a list of rows of panels; `panels` builds them with grafana-foundation-sdk. The text under
the title of a panel is the help of its metrics in `tamis.telemetry.metric_catalogue`.
"""
