"""The Kafka cluster of the fleet over HTTP."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.responses import Response

from tamis_registry.http.common.parts import as_json
from tamis_registry.http.schemas.kafka import Kafka
from tamis_registry.worker import Worker


def kafka_routes(app: FastAPI, worker: Worker) -> None:
    """Add the route."""

    @app.get(
        "/v1/kafka",
        summary="The Kafka cluster of the fleet",
        description="For clients that also use Kafka: to find out if they use the same cluster.",
        tags=["Kafka"],
        response_model=Kafka,
    )
    def kafka() -> Response:
        with worker.reading():
            return as_json({"cluster_id": worker.cluster_id})
