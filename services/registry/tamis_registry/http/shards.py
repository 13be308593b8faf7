"""Shards over HTTP: an operator lets the registry forget one that is gone for good."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path

from tamis_registry.worker import Worker

# Names of shards have a slash: `stream:edge/source`.
ShardName = Annotated[str, Path(max_length=1000)]


def shard_routes(app: FastAPI, worker: Worker) -> None:
    """Add the route."""

    @app.delete(
        "/v1/shards/{name:path}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Forget a shard that is gone for good",
        description="It no longer makes alerts degraded, and no list has it. Refused while a plan lists the "
        "shard, and while its edge reports it. If the edge reports it again, it comes back.",
        tags=["Edges"],
    )
    def forget(name: ShardName) -> None:
        worker.submit(lambda registry, now: registry.forget_shard(name, now))
