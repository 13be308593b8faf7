"""Telemetry of all services: metrics, structured logs, health and readiness.

`metric_catalogue` lists every metric and `metrics` exports those of one service; `health` collects the
checks of a service, and `server` answers `/metrics`, `/healthz` and `/readyz`. `threads` has those of which
a service needs some so much that it ends when one has died.
"""

from tamis.telemetry.health import Health
from tamis.telemetry.logs import configure_logs, get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.server import TelemetryServer

__all__ = ["Health", "Metrics", "TelemetryServer", "configure_logs", "get_logger"]
