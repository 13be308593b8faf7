"""Metrics, structured logs and health of every service."""

from tamis.telemetry.health import Health
from tamis.telemetry.logs import configure_logs, get_logger
from tamis.telemetry.metrics import Metrics
from tamis.telemetry.server import TelemetryServer

__all__ = ["Health", "Metrics", "TelemetryServer", "configure_logs", "get_logger"]
