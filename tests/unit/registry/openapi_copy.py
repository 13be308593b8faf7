"""The committed OpenAPI description: `python -m tests.unit.registry.openapi_copy` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tamis.declarations.file_access import NO_ACCESS
from tamis.settings import KafkaSettings
from tamis.telemetry import Health, Metrics
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.http.api import application
from tamis_registry.proving.pool import provers_of
from tamis_registry.registry_loop import RegistryLoop

COPY = Path(__file__).resolve().parents[3] / "docs/openapi.json"


def described() -> dict[str, Any]:
    """The description that this release gives, without tokens."""
    metrics, health = Metrics("registry"), Health()
    worker = RegistryLoop(KafkaSettings(), 2, PLANNER, metrics, health)
    document: dict[str, Any] = application(worker, provers_of(NO_ACCESS, 1), metrics, health).openapi()
    return document


def written(document: dict[str, Any]) -> bytes:
    """A description as it is committed."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    COPY.write_bytes(written(described()))
