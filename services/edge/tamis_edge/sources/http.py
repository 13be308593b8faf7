"""The HTTP source: readings by POST, answered once they are safe on disk."""

from __future__ import annotations

import asyncio
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from http import HTTPStatus

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tamis.errors import UnavailableError
from tamis.messaging.topics import is_stream_name
from tamis.plan.model import Plan
from tamis.recordings.json_structure import ComplexityError, lines, loads, parts
from tamis.settings.http_security import HttpSecurity
from tamis.telemetry.logs import get_logger
from tamis.telemetry.server import HttpServer
from tamis.web.authentication import Authentication, Reason
from tamis.web.guard import Guard
from tamis.web.problems import answer_with_problems, problem
from tamis.web.tokens import Token
from tamis.wording.file_text import wide_encoding
from tamis_edge.decode.decoder import MAX_READING
from tamis_edge.settings import Http, HttpSource
from tamis_edge.sources.base import Source
from tamis_edge.sources.journal_shard import MOST_UNPLANNED, JournalShard
from tamis_edge.storage.journal import Journal

_log = get_logger("edge.http")

RETRY_AFTER = 5  # seconds; Kafka takes about as long to restart
PATH = "/v1/streams/"
UNPROTECTED = HttpSecurity()
MOST_READINGS = 100_000
SMALL = 32_768  # bytes of a body whose readings are found at once: that takes less than 20 ms


class EdgeRules:
    """The rights that requests to an edge need: a writer's, of the stream."""

    def is_open(self, path: str) -> bool:
        """False: an edge's probes have a port of their own."""
        return False

    def missing(self, token: Token, method: str, path: str) -> str | None:
        """The right that a token lacks."""
        if token.role != "writer":
            return f"to send readings: that needs the role 'writer', and it has {token.role!r}"
        stream = path.removeprefix(PATH)
        if token.streams is None or stream in token.streams:
            return None
        return f"to write to the stream {stream!r:.250}; its streams: {', '.join(sorted(token.streams))}"

    def is_logged(self, method: str, path: str) -> bool:
        """False: an edge gets too many requests."""
        return False


class HttpSources(Source):
    """All HTTP sources of an edge behind one server.

    A stream that only the default source accepts must be in the plan. A stream that a source names may be
    created later: its readings wait in the journal.
    """

    def __init__(
        self,
        sources: Sequence[HttpSource],
        *,
        edge: str,
        http: Http,
        journal: Journal,
        plan: Callable[[], Plan | None],
        wake: Callable[[], None],
        security: HttpSecurity = UNPROTECTED,
        count_refused: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        """`count_refused` gets the reason of each request that has no right to be answered."""
        self._edge, self._journal, self._plan, self._wake = edge, journal, plan, wake
        self._limit = http.body_limit
        self._named = {stream: source for source in sources for stream in source.streams or ()}
        self._open = next((source for source in sources if source.streams is None), None)
        self._names = [source.name for source in sources]
        self._shards: dict[str, JournalShard] = {}
        self._full = False
        self._security = security
        middleware = [Middleware(Guard, body_limit=self._limit, hosts=[http.host, *http.hosts])]
        if security.tokens is not None:
            tokens, rules = security.tokens.current, EdgeRules()
            middleware.append(
                Middleware(Authentication, tokens=tokens, rules=rules, count=count_refused, log=_log)
            )
        application = Starlette(
            routes=[Route(f"{PATH}{{stream}}", self._post, methods=["POST"])], middleware=middleware
        )
        # Most senders don't send a reading again to the address that a redirection names.
        application.router.redirect_slashes = False
        answer_with_problems(application, _log)
        self._server = HttpServer(application, http.host, http.port, certificates=security.certificates)

    @property
    def url(self) -> str:
        """The address at which the source answers."""
        return self._server.url

    def start(self) -> None:
        self._security.watch()
        self._server.start()

    def shards(self) -> list[JournalShard]:
        plan = self._plan()
        wanted = dict(self._named)
        if self._open is not None:
            # Readings from before the first plan, or from before the stream was dropped, are still in the
            # journal.
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
        """Pass True to refuse readings because the spool is full."""
        self._full = full

    def stop(self) -> None:
        self._server.stop()

    def _source(self, stream: str) -> HttpSource | None:
        if stream in self._named:
            return self._named[stream]
        plan = self._plan()
        if is_stream_name(stream) and (plan is None or plan.stream(stream) is not None):
            return self._open
        return None

    def _unplanned(self, stream: str) -> bool:
        """True if too many streams already wait for the first plan."""
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
        body = await request.body()
        try:
            form = request.headers.get("content-type", "")
            # Other senders are answered while a thread finds the readings of a large body.
            large = len(body) > SMALL
            readings = await asyncio.to_thread(split, body, form) if large else split(body, form)
        except TooManyError:
            detail = f"the limit of one request is {MOST_READINGS} readings; send them in parts"
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", "Too many readings", detail)
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


class TooManyError(Exception):
    """A request has more than `MOST_READINGS` readings."""


def split(body: bytes, content_type: str) -> list[bytes]:
    """The readings of a request's body: one JSON object, an array, or NDJSON. Each is as it was sent, because
    a dead letter must be unchanged.

    An item or a line that isn't JSON, among others that are, becomes a dead letter later. So does a reading
    with a number that isn't finite. A byte order mark before the first reading is left out, as RFC 8259
    allows.

    Raises:
        ValueError: nothing in it can be parsed.
        TooManyError: there are more than `MOST_READINGS`.
    """
    body = body.removeprefix(BOM_UTF8)
    wide = wide_encoding(body)
    if wide is not None:
        raise ValueError(f"not JSON: {wide}, and not UTF-8; send it in UTF-8")
    document = None
    if "ndjson" not in content_type and "jsonlines" not in content_type:
        document = parts(body, MOST_READINGS)
        if document is None and b"\n" not in body.strip():
            raise ValueError(_fault(body) or "a JSON value that is neither object nor array")
    if document is not None and body.lstrip()[:1] == b"{":
        document = [body], True
    readings, complete = document or lines(body, MOST_READINGS)
    if not complete:
        raise TooManyError
    if b"" in readings:
        raise ValueError("not JSON: an item of the array is empty")
    if readings and all(map(_fault, readings)):
        raise ValueError(_fault(readings[0]) if len(readings) == 1 else "none of its readings is JSON")
    return readings


def _fault(reading: bytes) -> str | None:
    """The reason why a reading isn't JSON; None also for one that is too large, or has too many values."""
    if len(reading) > MAX_READING:
        return None
    try:
        loads(reading)
    except ComplexityError:
        return None
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    return None


def _unavailable(detail: str) -> Response:
    response = problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "Not available now", detail)
    response.headers["Retry-After"] = str(RETRY_AFTER)
    return response
