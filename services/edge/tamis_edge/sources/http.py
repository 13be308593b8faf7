"""The HTTP source: readings by POST, answered once they are safe on disk."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tamis.errors import UnavailableError
from tamis.messaging.topics import is_stream_name
from tamis.planning.plan import Plan
from tamis.telemetry.logs import get_logger
from tamis.telemetry.server import HttpServer
from tamis.web.body import read_body
from tamis.web.guard import Guard
from tamis.web.problems import answer_with_problems, problem
from tamis_edge.config import Http, HttpSource
from tamis_edge.decode.decoder import MAX_READING
from tamis_edge.journal import Journal
from tamis_edge.sources.journalled import MOST_UNPLANNED, JournalShard

_log = get_logger("edge.http")

RETRY_AFTER = 5  # seconds; about what Kafka needs to come back from a restart


class HttpSources:
    """All HTTP sources of an edge behind one server.

    A stream that only the default source takes must be in the plan; one that a source names may be created
    later: its readings wait in the journal.
    """

    behind = False  # a full micro-batch says so

    def __init__(
        self,
        sources: Sequence[HttpSource],
        *,
        edge: str,
        http: Http,
        journal: Journal,
        plan: Callable[[], Plan | None],
        wake: Callable[[], None],
    ) -> None:
        self._edge, self._journal, self._plan, self._wake = edge, journal, plan, wake
        self._limit = http.body_limit
        self._named = {stream: source for source in sources for stream in source.streams or ()}
        self._open = next((source for source in sources if source.streams is None), None)
        self._names = [source.name for source in sources]
        self._shards: dict[str, JournalShard] = {}
        self._full = False
        application = Starlette(
            routes=[Route("/v1/streams/{stream}", self._post, methods=["POST"])],
            middleware=[Middleware(Guard, body_limit=self._limit, hosts=[http.host, *http.hosts])],
        )
        answer_with_problems(application, _log)
        self._server = HttpServer(application, http.host, http.port)

    @property
    def url(self) -> str:
        """Where the source answers."""
        return self._server.url

    def start(self) -> None:
        self._server.start()

    def shards(self) -> list[JournalShard]:
        plan = self._plan()
        wanted = dict(self._named)
        if self._open is not None:
            # What came before there was a plan, or before the stream was dropped, still has to be looked at.
            suffix = f":{self._edge}/{self._open.name}"
            old = [name.removesuffix(suffix) for name in self._journal.shards() if name.endswith(suffix)]
            known = [stream.name for stream in plan.streams] if plan is not None else []
            for stream in known + old:
                wanted.setdefault(stream, self._open)
        for stream, source in wanted.items():
            if stream not in self._shards:
                self._shards[stream] = JournalShard(
                    self._journal,
                    stream=stream,
                    edge=self._edge,
                    source=source.name,
                    topic=f"/v1/streams/{stream}",
                    fields=source.fields,
                    declared=stream in self._named,
                )
        return list(self._shards.values())

    def troubles(self) -> dict[str, str | None]:
        return dict.fromkeys(self._names)  # without its server the edge ends

    def check(self) -> None:
        self._server.check()

    def refuse(self, full: bool) -> None:
        """Whether to turn readings away since the spool is full."""
        self._full = full

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        """Nothing is left to close: the server stopped first."""

    def _source(self, stream: str) -> HttpSource | None:
        if stream in self._named:
            return self._named[stream]
        plan = self._plan()
        if is_stream_name(stream) and (plan is None or plan.stream(stream) is not None):
            return self._open
        return None

    def _unplanned(self, stream: str) -> bool:
        """Whether the stream is one too many of those that wait for the first plan."""
        if stream in self._named or self._open is None or self._plan() is not None:
            return False
        suffix = f":{self._edge}/{self._open.name}"
        waiting = [name for name in self._journal.shards() if name.endswith(suffix)]
        return len(waiting) >= MOST_UNPLANNED and stream + suffix not in waiting

    async def _post(self, request: Request) -> Response:
        stream = request.path_params["stream"]
        source = self._source(stream)
        if source is None:
            plan = self._plan()
            known = sorted(
                {*self._named, *((s.name for s in plan.streams) if plan is not None and self._open else ())}
            )
            return problem(
                HTTPStatus.NOT_FOUND,
                "unknown-stream",
                "Unknown stream",
                f"{stream!r:.250} is not a stream of this edge; known: {', '.join(known) or 'none'}",
            )
        if self._unplanned(stream):
            return _unavailable(f"there is no plan yet, and readings of {MOST_UNPLANNED} streams wait for it")
        try:
            body = await read_body(request, self._limit)
        except HTTPException as error:
            status = HTTPStatus(error.status_code)
            return problem(status, "body", status.phrase, error.detail)
        try:
            readings = split(body, request.headers.get("content-type", ""))
        except ValueError as error:
            detail = f"{error}; send a JSON object, an array of objects, or NDJSON"
            return problem(HTTPStatus.BAD_REQUEST, "body", "The body can't be parsed", detail)
        if any(len(reading) > MAX_READING for reading in readings):
            detail = f"the limit of one reading is {MAX_READING} bytes"
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", "Reading too large", detail)
        if self._full:
            return _unavailable("the spool is full: Kafka has been away for long")
        name = f"{stream}:{self._edge}/{source.name}"
        try:
            await asyncio.wrap_future(self._journal.append(name, readings, time.time_ns() // 1000))
        except UnavailableError as error:
            return _unavailable(str(error))
        self._wake()
        return JSONResponse({"accepted": len(readings)}, status_code=202)


def split(body: bytes, content_type: str) -> list[bytes]:
    """The readings of a request's body: one JSON object, an array, or NDJSON.

    A line that isn't JSON among lines that are stays as it is, and becomes a dead letter later.

    Raises:
        ValueError: nothing in it can be parsed.
    """
    if "ndjson" not in content_type and "jsonlines" not in content_type:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            if b"\n" not in body.strip():
                raise ValueError(f"not JSON: {error}") from None
        else:
            if isinstance(document, list):
                return _items(body.decode())
            if isinstance(document, dict):
                return [body]
            raise ValueError("a JSON value that is neither object nor array")
    lines = [line.strip() for line in body.split(b"\n")]
    readings = [line for line in lines if line]
    if readings and not any(map(_is_json, readings)):
        raise ValueError("none of its lines is JSON")
    return readings


_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def _items(array: str) -> list[bytes]:
    """The items of a JSON array as they stand in it: a dead letter has to be what was sent.

    Raises ValueError where one nests too deeply.
    """
    items = []
    at = array.index("[") + 1
    while array[at := _BETWEEN.match(array, at).end()] != "]":  # type: ignore[union-attr]
        try:
            _, end = _DECODER.raw_decode(array, at)
        except RecursionError:
            raise ValueError("an item of the array nests too deeply") from None
        items.append(array[at:end].encode())
        at = end
    return items


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _unavailable(detail: str) -> Response:
    response = problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "Not available now", detail)
    response.headers["Retry-After"] = str(RETRY_AFTER)
    return response
