"""Tokens of HTTP servers: who is let in, what a refusal says, and what it doesn't say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from tamis.web.authentication import Authentication, Reason
from tamis.web.tokens import LONGEST, Token, Tokens, digest, new_token
from tamis_edge.sources.http import EdgeRules
from tamis_registry.http.common.rights import RegistryRules

TEXT = {name: new_token() for name in ("reader", "writer", "air", "old", "console", "night")}
TOKENS = Tokens(
    [
        Token("grafana", digest(TEXT["reader"]), "reader"),
        Token("ci", digest(TEXT["writer"]), "writer"),
        Token("gateway", digest(TEXT["air"]), "writer", frozenset({"air"})),
        Token("console", digest(TEXT["console"]), "reader", readings=True),
        Token("night", digest(TEXT["night"]), "reader", operate=True),
        Token("old", digest(TEXT["old"]), "writer", expires=datetime(2026, 1, 1, tzinfo=UTC)),
    ]
)


async def answer(_: Request) -> Response:
    return PlainTextResponse("done")


class Server:
    """An application behind the tokens above; the reasons of refusals, and the log."""

    def __init__(self, rules: Any) -> None:
        self.reasons: list[Reason] = []
        with capture_logs() as self.log:
            self._app = Authentication(
                Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "DELETE"])]),
                tokens=lambda: TOKENS,
                rules=rules,
                count=self.reasons.append,
                log=structlog.get_logger(),
            )

    def ask(self, method: str, path: str, headers: Any = None, token: str | None = None) -> httpx.Response:
        """The answer to one request."""
        given = [("authorization", f"Bearer {TEXT[token]}")] if token else (headers or [])

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, headers=given)

        with capture_logs() as log:
            found = asyncio.run(send())
        self.log += log
        return found


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/v1/alerts", None, 401),
        ("GET", "/v1/alerts", "reader", 200),
        ("GET", "/v1/alerts", "writer", 200),
        ("GET", "/v1/alerts", "old", 401),
        ("GET", "/v1/alerts", "air", 403),
        ("POST", "/v1/explain", "reader", 200),
        ("POST", "/v1/try", "reader", 200),
        ("POST", "/v1/try", "air", 403),
        ("POST", "/v1/statements", None, 401),
        ("POST", "/v1/statements", "reader", 403),
        ("POST", "/v1/statements", "writer", 200),
        ("POST", "/v1/statements", "air", 403),
        ("POST", "/v1/streams/air/topic", "reader", 403),
        ("GET", "/v1/streams/air/topic", "reader", 200),
        ("DELETE", "/v1/alerts/hot", "reader", 403),
        ("DELETE", "/v1/alerts/hot", "writer", 200),
        ("POST", "/v1/silences", "night", 200),
        ("POST", "/v1/silences", "writer", 200),
        ("POST", "/v1/silences", "reader", 403),
        ("GET", "/v1/silences", "reader", 200),
        ("DELETE", "/v1/silences/5f0c", "night", 200),
        ("POST", "/v1/episodes/5f0c/acknowledgement", "night", 200),
        ("POST", "/v1/episodes/5f0c/acknowledgement", "console", 403),
        ("POST", "/v1/statements", "night", 403),
        ("DELETE", "/v1/alerts/silences", "night", 403),
        ("GET", "/metrics", None, 401),
        ("GET", "/metrics", "reader", 200),
        ("GET", "/healthz", None, 200),
        ("GET", "/readyz", None, 200),
        ("GET", "/docs", None, 200),
        ("GET", "/openapi.json", None, 200),
        ("GET", "/static-offline-docs/swagger-ui.css", None, 200),
        ("GET", "/static-offline-docs", None, 401),
        ("GET", "http://127.0.0.1//healthz", None, 401),
        ("GET", "/healthz/", None, 401),
    ],
)
def test_rights_at_the_registry(method: str, path: str, token: str | None, status: int) -> None:
    assert Server(RegistryRules()).ask(method, path, token=token).status_code == status


READINGS = (
    "/v1/alerts/hot/alarms",
    "/v1/alerts/hot/episodes",
    "/v1/streams/air/readings",
    "/v1/dead-letters",
)


@pytest.mark.parametrize("path", [*READINGS, "/v1/alerts/hot/alarms%0A", "/v1/dead-letters?limit=5"])
def test_readings_at_the_registry_need_a_right_of_their_own(path: str) -> None:
    server = Server(RegistryRules())
    assert [server.ask("GET", path, token=one).status_code for one in ("reader", "writer")] == [403, 403]
    assert server.ask("GET", path, token="console").status_code == 200
    assert server.ask("POST", "/v1/statements", token="console").status_code == 403


@pytest.mark.parametrize("path", ["/v1/alerts/alarms", "/v1/streams/readings/topic", "/v1/alerts"])
def test_names_like_those_of_readings_need_no_further_right(path: str) -> None:
    assert Server(RegistryRules()).ask("GET", path, token="reader").status_code == 200


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/v1/streams/air", None, 401),
        ("/v1/streams/air", "reader", 403),
        ("/v1/streams/air", "writer", 200),
        ("/v1/streams/air", "air", 200),
        ("/v1/streams/surface", "air", 403),
        ("/v1/streams/air/", "air", 403),
        ("/v1/streams/AIR", "air", 403),
        ("/v1/streams/%61ir", "air", 200),
    ],
)
def test_rights_at_an_edge(path: str, token: str | None, status: int) -> None:
    assert Server(EdgeRules()).ask("POST", path, token=token).status_code == status


@pytest.mark.parametrize(
    ("headers", "status", "reason", "error", "said"),
    [
        ([], 401, "no_token", None, "this request needs a token, in a header only"),
        ([("authorization", "Bearer")], 401, "malformed", None, "has no bearer token"),
        ([("authorization", "Bearer   ")], 401, "malformed", None, "has no bearer token"),
        ([("authorization", f"Basic {TEXT['writer']}")], 401, "malformed", None, "has no bearer token"),
        ([("authorization", TEXT["writer"])], 401, "malformed", None, "has no bearer token"),
        (
            [("authorization", f"Bearer {TEXT['writer']}")] * 2,
            400,
            "malformed",
            "invalid_request",
            "send one",
        ),
        ([("authorization", "Bearer wrong")], 401, "unknown_token", "invalid_token", "is not valid here"),
        ([("authorization", b"Bearer \xff\xfe")], 401, "unknown_token", "invalid_token", "is not valid here"),
        (
            [("authorization", f"Bearer {'x' * (LONGEST + 1)}")],
            401,
            "unknown_token",
            "invalid_token",
            "not valid",
        ),
        (
            [("authorization", f"Bearer {TEXT['writer'][:-1]}")],
            401,
            "unknown_token",
            "invalid_token",
            "not valid",
        ),
        (
            [("authorization", f"Bearer {TEXT['old']}")],
            401,
            "expired",
            "invalid_token",
            "the token 'old' expired at 2026-01-01T00:00:00+00:00",
        ),
        (
            [("authorization", f"Bearer {TEXT['reader']}")],
            403,
            "not_allowed",
            "insufficient_scope",
            "the token 'grafana' has no right to change definitions (POST /v1/statements): that needs the "
            "role 'writer', and it has 'reader'",
        ),
    ],
)
def test_a_refusal_says_what_is_missing_and_no_token(
    headers: Any, status: int, reason: str, error: str | None, said: str
) -> None:
    server = Server(RegistryRules())
    found = server.ask("POST", f"/v1/statements?token={TEXT['writer']}", headers)
    assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
    assert said in found.json()["detail"]
    challenge = found.headers["www-authenticate"]
    assert challenge == 'Bearer realm="tamis"' + (f', error="{error}"' if error else "")
    assert server.reasons == [reason]
    (logged,) = server.log
    assert (logged["event"], logged["reason"]) == ("a request is refused", reason)
    shown = f"{found.text}{dict(found.headers)}{server.log}"
    assert not any(text in shown for text in TEXT.values()) and "wrong" not in shown


def test_the_scheme_is_read_in_any_case() -> None:
    found = Server(RegistryRules()).ask("GET", "/v1/alerts", [("authorization", f"bearer {TEXT['reader']}")])
    assert found.status_code == 200


def test_refusals_are_all_counted_and_logged_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(RegistryRules())
    for _ in range(5):
        server.ask("GET", "/v1/alerts")
    assert len(server.reasons) == 5 and len(server.log) == 1
    monkeypatch.setattr("tamis.web.authentication.time.monotonic", lambda: float("inf"))
    server.ask("GET", "/v1/alerts")
    assert server.log[-1]["not_logged"] == 4


def test_the_log_says_who_changed_something() -> None:
    server = Server(RegistryRules())
    server.ask("GET", "/v1/alerts", token="writer")
    server.ask("DELETE", "/v1/alerts/hot", token="writer")
    (logged,) = server.log
    assert (logged["event"], logged["token"], logged["path"]) == (
        "a request is accepted",
        "ci",
        "/v1/alerts/hot",
    )


def test_ten_thousand_tokens_are_found_as_quickly_as_one() -> None:
    tokens = Tokens(Token(f"t{n}", digest(f"tamis_{n}"), "reader") for n in range(10_000))
    assert len(tokens) == 10_000
    found = tokens.find("tamis_9999")
    assert found is not None and found.name == "t9999"
    assert tokens.find("tamis_10000") is None
