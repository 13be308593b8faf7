"""Silences and acknowledgements over HTTP."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
import orjson
from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from tamis.messaging.silences import ACKNOWLEDGEMENT, SILENCE, Acknowledgement, Silence
from tamis.web.authentication import TOKEN
from tamis_registry.core.heartbeats import sink_reports
from tamis_registry.core.held_openings import HeldBack, held_back
from tamis_registry.core.silences import Wanted, acknowledgement, doubts
from tamis_registry.http.common.parts import as_json
from tamis_registry.http.common.reading_turns import ReadingTurns
from tamis_registry.http.common.rights import may_see_readings
from tamis_registry.http.records.open_episodes import open_episode
from tamis_registry.http.schemas import silences as types
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.worker import Worker

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
Beginning = Annotated[
    str, Path(pattern=r"^[0-9a-f]{4,32}$", description="The identity of the episode, or its beginning")
]


def silence_routes(app: FastAPI, worker: Worker, reader: NewestReader, turns: ReadingTurns) -> None:
    """Add the routes. `reader` and `turns`: for the look at the topic of episodes."""

    @app.get(
        "/v1/silences",
        summary="Every silence",
        description="In the order of their ends. One that is over is shown for a day. What each "
        "holds back is known from the alerts service; an opening that several of them cover counts for each.",
        tags=["Silences"],
        response_model=list[types.Silence],
    )
    def silences() -> Response:
        with worker.reading() as (registry, now):
            sinks = {one.name for one in sink_reports(registry.seen, now)}
            found, openings = registry.silences.silences, registry.held.of_sinks(sinks or None)
        held = held_back(found, openings, now)
        return as_json([_document(one, now, held.get(one.id)) for one in found])

    @app.post(
        "/v1/silences",
        status_code=HTTPStatus.CREATED,
        summary="Silence alerts for some time",
        description="Sinks that obey silences get the opening of an episode that is covered "
        "when the silence ends, unless the episode has closed by then. Needs a writer, or `operate: true`.",
        tags=["Silences"],
        response_model=types.MadeSilence,
    )
    def silence(wanted: types.SilenceRequest, request: Request) -> Response:
        asked = Wanted(
            wanted.alerts,
            wanted.severities,
            wanted.labels,
            wanted.keys,
            wanted.start,
            wanted.until,
            wanted.seconds,
            _caller(request, wanted.by),
            wanted.comment,
        )
        identity = secrets.token_hex(16)
        made = worker.submit(
            lambda registry, now: registry.keep(asked.silence(identity, registry.state.catalog, now))
        )
        assert isinstance(made, Silence)
        with worker.reading() as (registry, _):
            warnings = list(doubts(made, registry.state.catalog))
        return _created({**_document(made, made.made, None), "warnings": warnings})

    @app.delete(
        "/v1/silences/{silence}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="End a silence",
        description="What it held back is sent, if its episode is still open.",
        tags=["Silences"],
    )
    def end(silence: Id) -> None:
        worker.submit(lambda registry, _: registry.forget(f"{SILENCE}/{silence}".encode()))

    @app.get(
        "/v1/acknowledgements",
        summary="Every acknowledgement of an episode",
        description="The newest first. Each is kept for seven days. Tokens need `readings: true` for `key`.",
        tags=["Silences"],
        response_model=list[types.Acknowledgement],
    )
    def acknowledgements(request: Request) -> Response:
        readings = may_see_readings(request)
        with worker.reading() as (registry, _):
            found = registry.silences.acknowledgements
        return as_json([acknowledgement_document(one, readings=readings) for one in found])

    @app.post(
        "/v1/episodes/{episode}/acknowledgement",
        status_code=HTTPStatus.CREATED,
        summary="Tell others that you look after an episode",
        description="The episode must be open. An earlier acknowledgement is replaced. Needs a writer, or "
        "`operate: true`.",
        tags=["Silences"],
        response_model=types.Acknowledgement,
    )
    async def acknowledge(
        episode: Beginning, wanted: types.AcknowledgementRequest, request: Request
    ) -> Response:
        by = _caller(request, wanted.by)

        def work() -> Response:
            found = open_episode(reader, episode)
            made = worker.submit(
                lambda registry, now: registry.keep(acknowledgement(found, by, wanted.comment, now))
            )
            assert isinstance(made, Acknowledgement)
            return _created(acknowledgement_document(made, readings=may_see_readings(request)))

        return await turns.run(work)

    @app.delete(
        "/v1/episodes/{episode}/acknowledgement",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Take an acknowledgement back",
        tags=["Silences"],
    )
    def take_back(episode: Beginning) -> None:
        worker.submit(
            lambda registry, _: registry.forget(
                f"{ACKNOWLEDGEMENT}/{registry.silences.acknowledged(episode)}".encode()
            )
        )


def _caller(request: Request, given: str) -> str:
    """The name of the request's token; without tokens, the name that the caller gave."""
    token = request.scope.get(TOKEN)
    return given if token is None else str(token.name)


def _document(silence: Silence, now: int, held: HeldBack | None) -> dict[str, Any]:
    state = "over" if silence.until <= now else "pending" if silence.start > now else "active"
    document: dict[str, Any] = msgspec.to_builtins(silence)
    del document["kind"]
    episodes, notifications = held or HeldBack()
    return {**document, "state": state, "held_episodes": episodes, "held_notifications": notifications}


def acknowledgement_document(one: Acknowledgement, *, readings: bool) -> dict[str, Any]:
    """An acknowledgement in an answer. Keys are parts of `readings`, which not every token may see."""
    document: dict[str, Any] = msgspec.to_builtins(one)
    del document["kind"]
    key = one.key if readings else None
    times = () if key is None else one.key_times
    return {**document, "key": None if key is None else list(key), "key_times": list(times)}


def _created(document: dict[str, Any]) -> Response:
    return Response(orjson.dumps(document), HTTPStatus.CREATED, media_type="application/json")
