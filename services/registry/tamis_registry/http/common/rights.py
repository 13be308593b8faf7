"""Rights of tokens at the registry: readers look and explain, writers also change definitions."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from starlette.responses import Response

from tamis.settings.token_file import TokenFile
from tamis.telemetry import Metrics, get_logger
from tamis.web.authentication import TOKEN, Authentication, Reason
from tamis.web.problems import problem
from tamis.web.tokens import Token
from tamis_registry.http.live.console import PREFIX
from tamis_registry.proving.turns import Client, Rank

# The console, the page of the API and its description are the same for every registry. Browsers load them
# without a token; the console asks for one.
_OPEN = ("/", "/healthz", "/readyz", "/docs", "/openapi.json")
_OPEN_FILES = ("/static-offline-docs/", PREFIX)
_READING = ("GET", "HEAD", "OPTIONS")
# Readers may POST to these, which change nothing.
_ASKING = ("/v1/explain", "/v1/try")
# The last parts of paths whose answers have readings.
_READINGS = ("alarms", "episodes", "readings", "dead-letters")


class RegistryRules:
    """The rights that requests to the registry need."""

    def is_open(self, path: str) -> bool:
        """True for health, the console and the page of the API."""
        return path in _OPEN or path.startswith(_OPEN_FILES)

    def missing(self, token: Token, method: str, path: str) -> str | None:
        """The right that a token lacks."""
        if token.streams is not None:
            return "at the registry: its list of streams makes it a token of edges"
        if not token.readings and shows_readings(path):
            return _to_see_readings(path)
        if token.role == "writer" or method in _READING or path in _ASKING:
            return None
        if operates(path):
            if token.operate:
                return None
            return f"to operate ({method} {path:.100}): that needs the role 'writer', or 'operate: true'"
        return (
            f"to change definitions ({method} {path:.100}): that needs the role 'writer', and it has 'reader'"
        )

    def is_logged(self, method: str, path: str) -> bool:
        """True for requests that change something."""
        return method not in _READING and path not in _ASKING


def may_see_readings(request: Request) -> bool:
    """True if the answer to a request may have readings from topics."""
    token: Token | None = request.scope.get(TOKEN)
    return token is None or token.readings


def may_operate(request: Request) -> bool:
    """True if the client may make and end silences and acknowledgements."""
    token: Token | None = request.scope.get(TOKEN)
    return token is None or token.role == "writer" or token.operate


def may_change(request: Request) -> bool:
    """True if the client may change definitions."""
    token: Token | None = request.scope.get(TOKEN)
    return token is None or token.role == "writer"


def client_of(request: Request, *, changes: bool = False) -> Client:
    """Client of a request, for the order of requests. `changes`: the request changes definitions."""
    token: Token | None = request.scope.get(TOKEN)
    if changes:
        rank = Rank.CHANGE
    else:
        rank = Rank.WRITER if token is not None and token.role == "writer" else Rank.READER
    return Client("" if token is None else token.name, rank)


def refusal_of_readings(request: Request) -> Response | None:
    """The answer to a request that may not see readings; None if it may. It is for operations that show
    readings to some requests only, which the middleware can't tell apart.
    """
    if may_see_readings(request):
        return None
    token: Token = request.scope[TOKEN]
    detail = f"the token {token.name!r} has no right {_to_see_readings(request.url.path)}"
    answer = problem(HTTPStatus.FORBIDDEN, "not-allowed", HTTPStatus.FORBIDDEN.phrase, detail)
    answer.headers["WWW-Authenticate"] = 'Bearer realm="tamis", error="insufficient_scope"'
    return answer


def _to_see_readings(path: str) -> str:
    return f"to see readings ({path:.100}): that needs 'readings: true' in the file of tokens"


def works_long(path: str) -> bool:
    """True for paths whose requests wait for turns of their own (texts, and those that read topics), or are
    answered as long as the client listens.

    >>> [works_long(p) for p in ("/v1/try", "/v1/events", "/v1/alerts/hot/alarms", "/healthz", "/v1/alerts")]
    [True, True, True, True, False]
    """
    own = (*_ASKING, "/v1/statements", "/v1/events", "/metrics")
    return path in own or RegistryRules().is_open(path) or operates(path) or shows_readings(path)


def operates(path: str) -> bool:
    """True if requests to `path` make or end silences and acknowledgements.

    >>> [operates(p) for p in ("/v1/silences", "/v1/silences/5f0c", "/v1/episodes/5f0c/acknowledgement")]
    [True, True, True]
    >>> operates("/v1/alerts/silences")
    False
    """
    return path.split("/")[1:3] in (["v1", "silences"], ["v1", "episodes"])


def shows_readings(path: str) -> bool:
    """True if answers under `path` have readings.

    >>> [shows_readings(p) for p in ("/v1/alerts/hot/alarms", "/v1/dead-letters", "/v1/episodes")]
    [True, True, True]
    >>> [shows_readings(p) for p in ("/v1/alerts/alarms", "/v1/episodes/5f0c/acknowledgement")]
    [False, False]
    """
    # The router also takes a path that ends with a line break.
    parts = path.strip().split("/")
    return parts[-1] in _READINGS and (len(parts) > 4 or parts[2:] in (["dead-letters"], ["episodes"]))


def require_tokens(app: FastAPI, tokens: TokenFile, metrics: Metrics) -> None:
    """Let in only requests with a token."""

    def count(reason: Reason) -> None:
        metrics.inc("tamis_http_refused_requests_total", service="registry", reason=reason)

    log = get_logger("registry.http")
    app.add_middleware(Authentication, tokens=tokens.current, rules=RegistryRules(), count=count, log=log)
