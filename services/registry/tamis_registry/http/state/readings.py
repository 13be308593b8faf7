"""Newest alarms, episodes, readings and dead letters over HTTP, read from Kafka within limits."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import orjson
from confluent_kafka import Message
from fastapi import FastAPI, Query
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from tamis.errors import RefusedError
from tamis.messaging.dead_letters import Reason
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, EPISODES
from tamis.wording.names import normalized_name
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.http.common.fair_requests import ReadingTurns
from tamis_registry.http.common.parts import Name, as_json
from tamis_registry.http.documents.streams import stream_facts
from tamis_registry.kafka.newest import Entry, Newest, NewestReader
from tamis_registry.kafka.stream_tuples import tuple_picker
from tamis_registry.registry_loop import RegistryLoop


class TopicRecord(TypedDict):
    """A record of a topic. docs/topics.md has the members of its value."""

    topic: str
    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    value: dict[str, Any]


class HiddenRecord(TypedDict):
    """A record whose value can't be shown, with the reason."""

    topic: str
    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    why: str


class DeadLetter(TypedDict):
    """A record that could not be used, with the reason."""

    partition: int
    offset: int
    time: Annotated[int, Field(description="Kafka's timestamp, in microseconds")]
    reason: str
    error: str
    service: str
    source: Annotated[str, Field(description="Where it came from: a topic, a file or a path of HTTP")]
    source_partition: int
    source_offset: int
    edge: Annotated[
        str | None, Field(description="The edge that made it; null for other services and earlier releases")
    ]
    stream: Annotated[
        str | None,
        Field(description="Of a reading: the stream that it was sent to; null for earlier releases"),
    ]
    sink: Annotated[str | None, Field(description="Of a notification: the sink that did not take it")]
    bytes: Annotated[int, Field(description="The length of the original")]
    text: Annotated[str | None, Field(description="Its first 4,096 bytes; null if they are no UTF-8 text")]
    base64: Annotated[str | None, Field(description="The same where `text` is null")]


class Found(TypedDict):
    """Records that were looked at, and those that could not be decoded."""

    complete: Annotated[
        bool,
        Field(
            description="True if all that Kafka keeps was looked through, and nothing that fits is left out"
        ),
    ]
    read: Annotated[int, Field(description="Records that were looked at")]
    unreadable: Annotated[int, Field(description="Records that could not be decoded")]


class Records(Found):
    """The newest records, the newest first."""

    records: list[TopicRecord]
    not_shown: Annotated[
        list[HiddenRecord], Field(description="Of the newest records, those that are missing")
    ]


class DeadLetters(Found):
    """The newest dead letters, the newest first. `reasons` counts those in the answer."""

    records: list[DeadLetter]
    reasons: dict[str, int]


class Column(TypedDict):
    """A column of a stream or a table."""

    name: str
    type: str
    key: bool


class NamedStream(TypedDict):
    """A stream or a table that a query can read."""

    name: str
    kind: Literal["raw", "derived", "table"]
    columns: list[Column]
    time: Annotated[str | None, Field(description="The column of event times; null for streams without time")]


class NamedFunction(TypedDict):
    """A function of the users' own."""

    name: str
    parameters: list[str]
    sql: Annotated[str, Field(description="Its CREATE FUNCTION statement")]


class Names(TypedDict):
    """The names that SQL can use now."""

    streams: list[NamedStream]
    alerts: list[str]
    functions: list[NamedFunction]
    patterns: list[str]
    builtin: Annotated[list[str], Field(description="Functions and aggregates of Tamis")]
    keywords: list[str]


MOST = 500
SAMPLE_BYTES = 4096  # of a dead letter
DEEPEST = 254  # levels that a value in an answer has at most

Limit = Annotated[int, Query(ge=1, le=MOST, description="The greatest number of records")]

Record = dict[str, Any]
Pick = Callable[[Message], Record | None]

_BOUNDED = " Reading ends after 2 s or 32 MiB. Tokens need `readings: true`."


def reading_routes(app: FastAPI, loop: RegistryLoop, reader: NewestReader, turns: ReadingTurns) -> None:
    """Add the routes."""

    def of_alert(topic: str, name: str, limit: int) -> Response:
        with loop.reading() as (registry, _):
            alerts = registry.state.catalog.alerts
        wanted = normalized_name(name, alerts)
        found = reader.read([topic], _written(_of_alert(wanted)), limit)
        if not found.entries and wanted not in alerts:
            # The records of an alert that was dropped are still shown.
            raise MissingError(f"there is no alert '{name}'", hint=lists("alerts"))
        return as_json(_records(found))

    @app.get(
        "/v1/alerts/{name}/alarms",
        summary="The newest alarms of an alert",
        description="`tuples` of a value has the readings that raised the alarm." + _BOUNDED,
        tags=["Readings"],
        response_model=Records,
    )
    async def alarms(name: Name, limit: Limit = 50) -> Response:
        return await turns.run(partial(of_alert, ALARMS, name, limit))

    @app.get(
        "/v1/alerts/{name}/episodes",
        summary="The newest events of an alert's episodes",
        description=_BOUNDED.strip(),
        tags=["Readings"],
        response_model=Records,
    )
    async def episodes(name: Name, limit: Limit = 50) -> Response:
        return await turns.run(partial(of_alert, EPISODES, name, limit))

    def of_stream(name: str, limit: int) -> Response:
        with loop.reading() as (registry, now):
            streams = {stored.name: stored for stored in registry.state.of_kind("stream", "derived")}
            stored = streams.get(normalized_name(name, streams))
            if stored is None:
                raise MissingError(f"there is no stream '{name}'", hint=lists("streams"))
            topics = stream_facts(registry.view(now), stored)["topics"]
            plan = registry.plan
        if stored.kind == "derived" and not topics:
            what = f"stream {stored.name} has no topic: its query runs within the alerts that read it"
            raise RefusedError(what, hint="see the alarms of these alerts, or try an alert on this stream")
        return as_json(_records(reader.read(topics, _written(tuple_picker(plan)), limit)))

    @app.get(
        "/v1/streams/{name}/readings",
        summary="The newest readings in the topics of a stream",
        description="Readings that edges omitted are in no topic, and each topic has only the columns and "
        "readings that its readers need." + _BOUNDED,
        tags=["Readings"],
        response_model=Records,
    )
    async def readings(name: Name, limit: Limit = 50) -> Response:
        return await turns.run(partial(of_stream, name, limit))

    def all_dead_letters(limit: int, reason: Reason | None) -> Response:
        def pick(message: Message) -> Record | None:
            letter = _dead_letter(message)
            return letter if reason in (None, letter["reason"]) else None

        found = reader.read([DEAD_LETTERS], pick, limit)
        letters = [
            {"partition": one.partition, "offset": one.offset, "time": one.time, **one.value}
            for one in found.entries
        ]
        reasons = Counter(letter["reason"] for letter in letters)
        return as_json({"records": letters, "reasons": reasons, **facts(found)})

    @app.get(
        "/v1/dead-letters",
        summary="The newest dead letters",
        description="With the reason and the beginning of the original bytes." + _BOUNDED,
        tags=["Readings"],
        response_model=DeadLetters,
    )
    async def dead_letters(limit: Limit = 50, reason: Reason | None = None) -> Response:
        return await turns.run(partial(all_dead_letters, limit, reason))


def _written(pick: Pick) -> Callable[[Message], bytes | None]:
    """`pick` with its record as JSON, which takes less memory; empty if the record is nested too deeply."""

    def picked(message: Message) -> bytes | None:
        record = pick(message)
        if record is None:
            return None
        try:
            return orjson.dumps(record)
        except orjson.JSONEncodeError:
            return b""

    return picked


def _of_alert(alert: str) -> Pick:
    quoted = orjson.dumps(alert)

    def pick(message: Message) -> Record | None:
        value = message.value() or b""
        if quoted not in value:
            return None
        record = orjson.loads(value)
        return record if record["alert"] == alert else None

    return pick


def _dead_letter(message: Message) -> dict[str, Any]:
    headers = {name: _text(value) for name, value in dict(message.headers() or ()).items()}
    value = message.value() or b""
    sample, text = value[:SAMPLE_BYTES], _start(value)
    return {
        "reason": headers["reason"],
        "error": headers["error"],
        "service": headers["service"],
        "source": headers["source.topic"],
        "source_partition": int(headers["source.partition"]),
        "source_offset": int(headers["source.offset"]),
        "edge": headers.get("edge"),
        "stream": headers.get("stream"),
        "sink": headers.get("sink"),
        "bytes": len(value),
        "text": text,
        "base64": base64.b64encode(sample).decode() if text is None else None,
    }


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def _start(value: bytes) -> str | None:
    """The beginning of a text, cut between two characters; None if it isn't one."""
    sample = value[:SAMPLE_BYTES]
    try:
        return sample.decode()
    except UnicodeDecodeError as error:
        if len(value) > SAMPLE_BYTES and error.reason == "unexpected end of data":
            return sample[: error.start].decode()
        return None


def _records(found: Newest[bytes]) -> dict[str, Any]:
    shown = [{**_place(one), "value": orjson.Fragment(one.value)} for one in found.entries if one.value]
    why = f"its value is nested deeper than {DEEPEST} levels"
    hidden = [{**_place(one), "why": why} for one in found.entries if not one.value]
    return {"records": shown, "not_shown": hidden, **facts(found)}


def _place(one: Entry[Any]) -> dict[str, Any]:
    return {"topic": one.topic, "partition": one.partition, "offset": one.offset, "time": one.time}


def facts(found: Newest[Any]) -> dict[str, Any]:
    """The members of an answer that say how much was looked at."""
    return {"complete": found.complete, "read": found.read, "unreadable": found.unreadable}
