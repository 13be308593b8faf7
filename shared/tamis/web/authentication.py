"""Authentication of HTTP requests by bearer tokens (RFC 6750).

A request without a valid token is answered with 401, and a token without the right for the request with 403.
Both answers are problem documents, and neither they nor the log contain the token.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal, Protocol

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from tamis.web.problems import problem
from tamis.web.tokens import Token, Tokens

# The name under which an accepted request's scope has its token.
TOKEN = "tamis.token"

Reason = Literal["no_token", "malformed", "unknown_token", "expired", "not_allowed"]

# A client that sends a wrong token in a loop must not fill the log. The metric counts every request.
SECONDS_BETWEEN_LOGS = 1.0
_LONGEST_PATH = 200  # of a path in the log

_SEND = "send the header 'Authorization: Bearer TOKEN'; `tamis token` makes a token"


class Rules(Protocol):
    """The rights that the requests of one server need."""

    def is_open(self, path: str) -> bool:
        """True if requests to `path` need no token."""
        ...

    def missing(self, token: Token, method: str, path: str) -> str | None:
        """The right that a token lacks for a request, as the end of "the token … has no right …"; None if it
        has all rights.
        """
        ...

    def is_logged(self, method: str, path: str) -> bool:
        """True if the log has to say which token an accepted request has."""
        ...


@dataclass(frozen=True)
class _Refusal:
    """The answer to a request that is not allowed. `error` is the code of RFC 6750."""

    status: HTTPStatus
    reason: Reason
    detail: str
    error: str | None = None
    name: str | None = None  # of the token, if it is known


class Authentication:
    """ASGI middleware that passes on requests with a valid token that has the right for the request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Callable[[], Tokens],
        rules: Rules,
        count: Callable[[Reason], None],
        log: structlog.typing.FilteringBoundLogger,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`tokens` returns the tokens that are valid now, `count` gets the reason of each refused request,
        and `clock` returns seconds since 1970.
        """
        self._app = app
        self._tokens, self._rules, self._count = tokens, rules, count
        self._log, self._clock = log, clock
        self._log_after, self._not_logged = 0.0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._rules.is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        token, refusal = self._authenticate(scope)
        if refusal is None:
            if token is not None and self._rules.is_logged(scope["method"], scope["path"]):
                self._log.info("a request is accepted", token=token.name, **_place(scope))
            await self._app({**scope, TOKEN: token}, receive, send)
            return
        self._count(refusal.reason)
        self._tell(refusal, scope)
        title = "Not authenticated" if refusal.status == HTTPStatus.UNAUTHORIZED else refusal.status.phrase
        kind = refusal.reason.replace("_", "-")
        answer = problem(refusal.status, kind, title, refusal.detail)
        challenge = 'Bearer realm="tamis"'
        if refusal.error is not None:
            challenge += f', error="{refusal.error}"'
        answer.headers["WWW-Authenticate"] = challenge
        await answer(scope, receive, send)

    def _authenticate(self, scope: Scope) -> tuple[Token | None, _Refusal | None]:
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        if not values:
            detail = f"this request needs a token, in a header only: {_SEND}"
            return None, _Refusal(HTTPStatus.UNAUTHORIZED, "no_token", detail)
        if len(values) > 1:
            detail = f"the request has {len(values)} headers 'Authorization'; send one"
            return None, _Refusal(HTTPStatus.BAD_REQUEST, "malformed", detail, "invalid_request")
        scheme, _, text = values[0].decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            detail = f"the header 'Authorization' has no bearer token; {_SEND}"
            return None, _Refusal(HTTPStatus.UNAUTHORIZED, "malformed", detail)
        token = self._tokens().find(text.strip())
        if token is None:
            detail = "the token is not valid here; ask for a new one"
            return None, _Refusal(HTTPStatus.UNAUTHORIZED, "unknown_token", detail, "invalid_token")
        return token, self._faults(token, scope)

    def _faults(self, token: Token, scope: Scope) -> _Refusal | None:
        if token.expires is not None and datetime.fromtimestamp(self._clock(), UTC) >= token.expires:
            detail = f"the token {token.name!r} expired at {token.expires.isoformat()}; ask for a new one"
            return _Refusal(HTTPStatus.UNAUTHORIZED, "expired", detail, "invalid_token", token.name)
        missing = self._rules.missing(token, scope["method"], scope["path"])
        if missing is None:
            return None
        detail = f"the token {token.name!r} has no right {missing}"
        return _Refusal(HTTPStatus.FORBIDDEN, "not_allowed", detail, "insufficient_scope", token.name)

    def _tell(self, refusal: _Refusal, scope: Scope) -> None:
        now = time.monotonic()
        if now < self._log_after:
            self._not_logged += 1
            return
        facts = {"reason": refusal.reason, "token": refusal.name, **_place(scope)}
        self._log.warning("a request is refused", **facts, not_logged=self._not_logged)
        self._log_after, self._not_logged = now + SECONDS_BETWEEN_LOGS, 0


def _place(scope: Scope) -> dict[str, str | None]:
    """The request in a log. The query of its address is left out: a token may be in it by mistake."""
    client = scope.get("client")
    path = scope["path"][:_LONGEST_PATH]
    return {"method": scope["method"], "path": path, "client": client[0] if client else None}
