"""Open episodes of all alerts over HTTP, with acknowledgements and silences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message
from fastapi import FastAPI
from starlette.responses import Response

from tamis.messaging.column_names import ColumnNames
from tamis.messaging.silences import Acknowledgement, Silence, covers
from tamis.messaging.topics import EPISODES
from tamis_registry.http.common.fair_requests import ReadingTurns
from tamis_registry.http.common.parts import as_json
from tamis_registry.http.schemas.silences import OpenEpisodes
from tamis_registry.http.state.readings import facts
from tamis_registry.http.state.silences import acknowledgement_document
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.registry_loop import RegistryLoop

# Events that are looked at. An open episode has one for each of its gaps.
MOST = 10_000


class Event(msgspec.Struct, gc=False):
    """The members of an event of `tamis.episodes` that tell if an episode is open, and since when."""

    alert: str
    key: tuple[Any, ...]
    episode: str
    event: str
    start: int
    end: int
    alarms: int
    severity: str | None
    labels: dict[str, str]
    key_times: tuple[int, ...] = ()  # positions in `key`, from the headers of the record


_decode = msgspec.json.Decoder(Event).decode


def episode_routes(app: FastAPI, loop: RegistryLoop, reader: NewestReader, turns: ReadingTurns) -> None:
    """Add the route."""

    def open_now() -> Response:
        found = reader.read([EPISODES], _event, MOST)
        with loop.reading() as (registry, now):
            silences, acknowledgements = registry.silences.silences, registry.silences.acknowledgements
        episodes = open_episodes([one.value for one in found.entries], silences, acknowledgements, now)
        return as_json({"episodes": episodes, **facts(found)})

    @app.get(
        "/v1/episodes",
        summary="Every open episode",
        description="The newest first, with who looks after it and how long it is silenced. Episodes without "
        f"an event among the newest {MOST:,} are missing. Reading ends after 2 s or 32 MiB. Tokens need "
        "`readings: true`.",
        tags=["Readings"],
        response_model=OpenEpisodes,
    )
    async def episodes() -> Response:
        return await turns.run(open_now)


def open_episodes(
    events: Iterable[Event],
    silences: Sequence[Silence],
    acknowledgements: Sequence[Acknowledgement],
    now: int,
) -> list[dict[str, Any]]:
    """The open episodes of events, of which the newest come first, in the order of their first alarms."""
    newest: dict[str, Event] = {}
    for one in events:
        newest.setdefault(one.episode, one)
    looked_after = {one.episode: one for one in acknowledgements}
    running = [one for one in newest.values() if one.event != "closed"]
    found = []
    for event in sorted(running, key=lambda one: (-one.start, one.alert, one.episode)):
        document = msgspec.to_builtins(event)
        del document["event"]
        acknowledged = looked_after.get(event.episode)
        document["key"], document["key_times"] = list(event.key), list(event.key_times)
        document["acknowledged"] = (
            None if acknowledged is None else acknowledgement_document(acknowledged, readings=True)
        )
        ends = [one.until for one in silences if covers(one, document, now)]
        document["silenced"] = max(ends, default=None)
        found.append(document)
    return found


def _event(message: Message) -> Event:
    try:
        event = _decode(message.value() or b"")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    event.key_times = ColumnNames.of(message.headers()).times_of(event.key)
    return event
