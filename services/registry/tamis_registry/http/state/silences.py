"""Silences and acknowledgements over HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
import orjson
from confluent_kafka import Message
from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from tamis.errors import InputError, UnavailableError
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.silences import ACKNOWLEDGEMENT, SILENCE, Acknowledgement, Silence
from tamis.messaging.topics import EPISODES
from tamis.web.authentication import TOKEN
from tamis_registry.core.errors import MissingError
from tamis_registry.core.heartbeats import sink_reports
from tamis_registry.core.silences import (
    AcknowledgedEpisode,
    HeldBack,
    Wanted,
    acknowledgement,
    doubts,
    held_back,
)
from tamis_registry.http.common.fair_requests import ReadingTurns
from tamis_registry.http.common.parts import as_json
from tamis_registry.http.common.rights import may_see_readings
from tamis_registry.http.schemas import silences as types
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.registry_loop import RegistryLoop

LENGTH = 32  # of an identity
MOST = 500  # events that are looked at, of all episodes that begin so
_HINT = "`tamis watch` shows the identity of each episode"


@dataclass(frozen=True)
class Event:
    """An event of an episode, and what happened: `opened`, `open` or `closed`."""

    episode: AcknowledgedEpisode
    what: str


def open_episode(reader: NewestReader, beginning: str) -> AcknowledgedEpisode:
    """The only open episode whose identity begins so.

    Raises MissingError if there is none, InputError if there are several. A whole identity is taken as it is,
    without alert and key, if the topic can't be read, or is too long to be read to its beginning: the episode
    may be older than what was read.
    """
    whole = len(beginning) == LENGTH
    try:
        found = reader.read([EPISODES], _beginning(beginning), 1 if whole else MOST)
    except UnavailableError:
        # A registry that doesn't show readings needs no right on this topic.
        if whole:
            return AcknowledgedEpisode(beginning)
        raise
    events = [entry.value for entry in found.entries]
    # One event is enough for a whole identity, so nothing was left out.
    return chosen(beginning, events, complete=found.complete or bool(whole and events))


def chosen(beginning: str, events: Sequence[Event], *, complete: bool) -> AcknowledgedEpisode:
    """The only open episode among these events, whose identities begin with `beginning`; the newest event is
    first. `complete`: no other event begins so; otherwise a whole identity without an open episode is
    returned as it is.

    Raises MissingError if there is none, InputError if there are several.
    """
    newest: dict[str, Event] = {}
    for event in events:
        newest.setdefault(event.episode.identity, event)
    running = [event.episode for event in newest.values() if event.what != "closed"]
    if len(running) == 1:
        return running[0]
    if running:
        raise InputError(f"several open episodes begin with '{beginning}'", where="episode", hint=_HINT)
    if not complete and len(beginning) == LENGTH:
        return AcknowledgedEpisode(beginning)
    closed = "; the episode has closed" if newest else ""
    identity = "the identity" if len(beginning) == LENGTH else "an identity that begins with"
    raise MissingError(f"no open episode has {identity} '{beginning}'{closed}", hint=_HINT)


def _beginning(beginning: str) -> Callable[[Message], Event | None]:
    start = orjson.dumps(beginning)[:-1]

    def pick(message: Message) -> Event | None:
        value = message.value() or b""
        if start not in value:
            return None
        record = orjson.loads(value)
        identity, event = record["episode"], record["event"]
        alert, key = record["alert"], record["key"]
        if not all(type(text) is str for text in (identity, event, alert)) or type(key) is not list:
            raise TypeError("no episode")
        if not identity.startswith(beginning):
            return None
        times = ColumnNames.of(message.headers()).times_of(key)
        return Event(AcknowledgedEpisode(identity, alert, tuple(key), times), event)

    return pick


Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
Beginning = Annotated[
    str, Path(pattern=r"^[0-9a-f]{4,32}$", description="The identity of the episode, or its beginning")
]


def silence_routes(app: FastAPI, loop: RegistryLoop, reader: NewestReader, turns: ReadingTurns) -> None:
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
        with loop.reading() as (registry, now):
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
        made = loop.submit(
            lambda registry, now: registry.keep(asked.silence(identity, registry.state.catalog, now))
        )
        assert isinstance(made, Silence)
        with loop.reading() as (registry, _):
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
        loop.submit(lambda registry, _: registry.forget(f"{SILENCE}/{silence}".encode()))

    @app.get(
        "/v1/acknowledgements",
        summary="Every acknowledgement of an episode",
        description="The newest first. Each is kept for seven days. Tokens need `readings: true` for `key`.",
        tags=["Silences"],
        response_model=list[types.Acknowledgement],
    )
    def acknowledgements(request: Request) -> Response:
        readings = may_see_readings(request)
        with loop.reading() as (registry, _):
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
            made = loop.submit(
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
        loop.submit(
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
