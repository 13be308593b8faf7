"""The Kafka cluster, the sinks of notifications, and shards that are given up, over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from tamis_registry.core.heartbeats import sink_reports
from tamis_registry.core.status import View
from tamis_registry.http.common.parts import as_json
from tamis_registry.registry_loop import RegistryLoop


class Kafka(TypedDict):
    """The Kafka cluster that has the topics of the fleet."""

    cluster_id: Annotated[
        str | None, Field(description="As Kafka told it when the registry connected; null if it doesn't")
    ]


def kafka_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/kafka",
        summary="The Kafka cluster of the fleet",
        description="For clients that also use Kafka: to find out if they use the same cluster.",
        tags=["Kafka"],
        response_model=Kafka,
    )
    def kafka() -> Response:
        with loop.reading():
            return as_json({"cluster_id": loop.cluster_id})


class Sink(TypedDict):
    """A sink of notifications, over all workers of the alerts service."""

    name: str
    state: Annotated[
        Literal["delivering", "behind", "failing", "silent"],
        Field(
            description="`failing`: it took none at the last attempt. `behind`: one has waited for more than "
            "15 s. `silent`: the alerts service reports nothing"
        ),
    ]
    why: list[str]
    waiting: Annotated[
        int, Field(description="Notifications that it has not taken yet and that will be sent")
    ]
    unread: Annotated[
        int,
        Field(
            description="Events of episodes in Kafka that its queue has not read yet, since many "
            "notifications wait. Not each of them is a notification for this sink"
        ),
    ]
    oldest: Annotated[int | None, Field(description="When the oldest of them was written")]
    error: Annotated[
        str | None, Field(description="Why it took none at the last attempt; never its address or a secret")
    ]


def sink_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/sinks",
        summary="Every sink of notifications",
        description="By name, from the heartbeats of the alerts service. Empty before its first heartbeat.",
        tags=["Sinks"],
        response_model=list[Sink],
    )
    def sinks() -> Response:
        with loop.reading() as (registry, now):
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


# Names of shards have a slash: `stream:edge/source`.
ShardName = Annotated[str, Path(max_length=1000)]


def shard_routes(app: FastAPI, loop: RegistryLoop) -> None:
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
        loop.submit(lambda registry, now: registry.forget_shard(name, now))
