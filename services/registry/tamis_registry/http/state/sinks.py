"""Sinks of notifications over HTTP: what waits for each of them, and why."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from tamis_registry.core.heartbeats import sink_reports
from tamis_registry.core.status import View
from tamis_registry.http.common.parts import as_json
from tamis_registry.http.schemas.sinks import Sink
from tamis_registry.worker import Worker


def sink_routes(app: FastAPI, worker: Worker) -> None:
    """Add the route."""

    @app.get(
        "/v1/sinks",
        summary="Every sink of notifications",
        description="By name, from the heartbeats of the alerts service. Empty before its first heartbeat.",
        tags=["Sinks"],
        response_model=list[Sink],
    )
    def sinks() -> Response:
        with worker.reading() as (registry, now):
            return as_json(sink_documents(registry.view(now)))


def sink_documents(view: View) -> list[dict[str, Any]]:
    """Every sink with its state, and what waits for it."""
    return [
        {
            "name": one.name,
            "state": one.state,
            "why": [one.why] if one.why else [],
            "waiting": one.waiting,
            "unread": one.unread,
            "oldest": one.oldest,
            "error": one.error,
        }
        for one in sink_reports(view.seen, view.now)
    ]
