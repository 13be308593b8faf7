"""Shards over HTTP: an operator gives up one from which nothing more comes."""

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
        summary="Give up a shard from which nothing more comes",
        description="Joins no longer wait for it until max_stall has passed, and it makes no alert degraded. "
        "Refused if something new came from it in the last 15 s. It comes back with its next reading.",
        tags=["Edges"],
    )
    def forget(name: ShardName) -> None:
        worker.submit(lambda registry, now: registry.forget_shard(name, now))
