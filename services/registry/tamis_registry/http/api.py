"""The HTTP API: accepts statements, and returns the state of streams and queries or problem documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.responses import Response

from tamis.errors import InputError, TamisError
from tamis.plan.json_form import decode_plan
from tamis.query.names import normalized_name
from tamis.settings.token_file import TokenFile
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.server import telemetry_routes
from tamis.web.guard import Guard
from tamis.web.problems import MEDIA_TYPE, answer_with_problems, problem
from tamis_registry.core.errors import MissingError
from tamis_registry.core.status import View
from tamis_registry.http import documents
from tamis_registry.http.leases import lease_routes
from tamis_registry.http.parts import BODY_LIMIT, Name, as_json
from tamis_registry.http.problems import problem_of
from tamis_registry.http.rights import require_tokens
from tamis_registry.http.statements import Statements, statement_routes
from tamis_registry.proving.pool import Provers
from tamis_registry.worker import Worker

_log = get_logger("tamis.registry")

_PROBLEM = {"description": "A problem document (RFC 9457)", "content": {MEDIA_TYPE: {}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: _PROBLEM
    for status in ("400", "401", "403", "404", "408", "409", "413", "415", "421", "422", "429", "503")
}


def application(
    worker: Worker,
    provers: Provers,
    metrics: Metrics,
    health: Health,
    *,
    hosts: Sequence[str] = (),
    tokens: TokenFile | None = None,
) -> FastAPI:
    """The API with its page `/docs` and the telemetry routes.

    The page loads nothing from other servers. `hosts`: further names of this server, which `Guard` can't
    know. Without `tokens`, everybody who reaches the server may use it.
    """
    app = FastAPIOffline(
        redoc_url=None,
        title="Tamis registry",
        version="1",
        description="Streams and alerts of a Tamis fleet: what is defined, what runs, and why not.",
        responses=_PROBLEMS,
    )
    app.router.routes.extend(telemetry_routes(metrics, health))
    if tokens is not None:
        require_tokens(app, tokens, metrics)
    app.add_middleware(Guard, body_limit=BODY_LIMIT, hosts=hosts)  # added last, it comes first
    _errors(app)
    statement_routes(app, Statements(worker, provers, metrics))
    _reading(app, worker)
    lease_routes(app, worker)
    return app


def _errors(app: FastAPI) -> None:
    answer_with_problems(app, _log)

    @app.exception_handler(TamisError)
    async def tamis_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, TamisError)
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        return problem(HTTPStatus.BAD_REQUEST, "invalid-input", "The request is wrong", faults)


def _reading(app: FastAPI, worker: Worker) -> None:
    def show(make: Callable[[View], list[documents.Document]], kind: str, name: str | None) -> Response:
        with worker.reading() as (registry, now):
            rows = make(registry.view(now))
        if name is None:
            return as_json(rows)
        wanted = name if kind == "edge" else normalized_name(name, {row["name"] for row in rows})
        found = next((row for row in rows if row["name"] == wanted), None)
        if found is None:
            raise MissingError(f"there is no {kind} '{name}'", hint=f"GET /v1/{kind}s lists what there is")
        return as_json(found)

    for kind, every, whole in (
        ("alert", documents.alert_documents, documents.alert_documents),
        ("stream", documents.stream_documents, documents.stream_documents),
        ("pattern", documents.pattern_documents, documents.whole_pattern_documents),
        ("edge", documents.edge_documents, documents.edge_documents),
    ):
        _routes(app, kind, show, every=every, whole=whole)

    @app.get("/v1/plans", summary="The newest plan versions")
    def plans() -> Response:
        known = worker.plans.summaries(_summary)
        newest = max((plan["version"] for plan in known), default=0)
        return as_json([{**plan, "newest": plan["version"] == newest} for plan in known])

    @app.get("/v1/plans/{version}", summary="One plan as the fleet reads it")
    def plan(version: int) -> Response:
        document = worker.plans.get(version)
        if document is None:
            raise MissingError(f"there is no plan {version}", hint="GET /v1/plans lists the newest")
        return Response(document, media_type="application/json")


def _routes(
    app: FastAPI,
    kind: str,
    show: Callable[[Callable[[View], list[documents.Document]], str, str | None], Response],
    *,
    every: Callable[[View], list[documents.Document]],
    whole: Callable[[View], list[documents.Document]],
) -> None:
    """Add the routes of a kind: a list of documents by `every`, and one of those by `whole`."""

    @app.get(f"/v1/{kind}s", summary=f"Every {kind}", name=f"{kind}s")
    def all_of_them() -> Response:
        return show(every, kind, None)

    @app.get(f"/v1/{kind}s/{{name}}", summary=f"One {kind}", name=kind)
    def one(name: Name) -> Response:
        return show(whole, kind, name)


def _summary(document: bytes) -> documents.Document | None:
    """One line about a plan, if this version of Tamis can read the plan."""
    try:
        return documents.plan_document(decode_plan(document))
    except InputError as error:
        _log.warning("a plan can't be read", error=str(error))
        return None
