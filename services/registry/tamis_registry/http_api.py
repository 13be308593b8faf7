"""The HTTP API: statements in, what there is out; errors are problem documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal

import orjson
from fastapi import FastAPI, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tamis.errors import InputError, TamisError
from tamis.fleet.registry_client import LONGEST_FILE
from tamis.planning.plan_json import decode_plan
from tamis.query.model import Drop
from tamis.query.names import meant
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.server import telemetry_routes
from tamis.web.body import read_body
from tamis.web.guard import Guard
from tamis.web.problems import MEDIA_TYPE, answer_with_problems, problem
from tamis_registry import documents
from tamis_registry.core import leases
from tamis_registry.core.carry import Conflict
from tamis_registry.core.change import Change
from tamis_registry.core.errors import MissingError
from tamis_registry.core.registry import Registry
from tamis_registry.core.state import Lease
from tamis_registry.core.statements import Outcome
from tamis_registry.core.status import View
from tamis_registry.problems import problem_of
from tamis_registry.worker import Worker

BODY_LIMIT = 1024 * 1024
# The last is what curl and others send with whatever text they are given, unless they are told.
TEXT_TYPES = ("application/sql", "text/plain", "text/sql", "application/x-www-form-urlencoded")

Name = Annotated[str, Path(max_length=255)]
File = Annotated[
    str | None,
    Query(
        max_length=LONGEST_FILE,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="How messages call the text: FILE:line:column",
    ),
]

Predicate = Annotated[
    str,
    Query(
        max_length=leases.LONGEST,
        description="A condition over the stream's columns, as in WHERE; nothing: every tuple",
    ),
]
Consumer = Annotated[
    str,
    Query(
        max_length=100,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="Who asks: consumers of one name and predicate share a lease",
    ),
]
Term = Annotated[
    int,
    Query(
        ge=leases.LEAST_SECONDS,
        le=leases.MOST_SECONDS,
        description="Seconds until the lease expires unless it is asked for again",
    ),
]

_log = get_logger("tamis.registry")

_SQL_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string"}, "example": "SHOW ALERTS;"}
            for kind in ("application/sql", "text/plain")
        },
    }
}
_PROBLEM = {"description": "A problem document (RFC 9457)", "content": {MEDIA_TYPE: {}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: _PROBLEM for status in ("400", "403", "404", "408", "409", "413", "415", "421", "422", "503")
}


def application(worker: Worker, metrics: Metrics, health: Health, hosts: Sequence[str] = ()) -> FastAPI:
    """The API with `/docs`, which loads nothing from elsewhere, and the telemetry routes. `hosts`: names of
    this server that `Guard` can't know.
    """
    app = FastAPIOffline(
        redoc_url=None,
        title="Tamis registry",
        version="1",
        description="Streams and alerts of a Tamis fleet: what is defined, what runs, and why not.",
        responses=_PROBLEMS,
    )
    app.router.routes.extend(telemetry_routes(metrics, health))
    app.add_middleware(Guard, body_limit=BODY_LIMIT, hosts=hosts)
    _errors(app)
    _statements(app, worker, metrics)
    _reading(app, worker)
    _subscribing(app, worker)
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


def _statements(app: FastAPI, worker: Worker, metrics: Metrics) -> None:
    def perform(decide: Callable[[Registry, int], tuple[list[Outcome], Change]]) -> Response:
        try:
            outcomes = worker.submit(decide)
        except TamisError as error:
            metrics.inc("tamis_registry_statements_total", kind="text", outcome=_outcome(error))
            raise
        for outcome in outcomes:
            metrics.inc("tamis_registry_statements_total", kind=outcome.statement, outcome=outcome.result)
        with worker.reading() as (registry, now):
            view = registry.view(now)
            return _json([documents.outcome_document(outcome, view) for outcome in outcomes])

    @app.post("/v1/statements", openapi_extra=_SQL_BODY, summary="Apply SQL statements, all or none")
    async def statements(request: Request, file: File = None) -> Response:
        text = await _sql(request)
        return await run_in_threadpool(perform, lambda registry, now: registry.apply(text, now, file))

    @app.post("/v1/explain", openapi_extra=_SQL_BODY, summary="Explain the queries of a text, apply nothing")
    async def explain(request: Request, file: File = None) -> Response:
        text = await _sql(request)

        def run() -> Response:
            with worker.reading() as (registry, _):
                pass  # proofs may take a second: they must not hold up the loop
            return _json({"queries": registry.explain(text, file)})

        return await run_in_threadpool(run)

    def drop(kind: Literal["alert", "stream", "function", "table"], name: str) -> Response:
        def decide(registry: Registry, now: int) -> tuple[list[Outcome], Change]:
            kinds = (kind, "derived") if kind == "stream" else (kind,)
            known = {stored.name for stored in registry.state.statements.values() if stored.kind in kinds}
            return registry.take([Drop(kind, meant(name, known))], now)

        try:
            return perform(decide)
        except Conflict as error:
            # There is no text that its position could be in.
            raise Conflict(error.what, None, error.hint) from None

    @app.delete("/v1/alerts/{name}", summary="Drop an alert")
    def drop_alert(name: Name) -> Response:
        return drop("alert", name)

    @app.delete("/v1/streams/{name}", summary="Drop a stream that nothing reads")
    def drop_stream(name: Name) -> Response:
        return drop("stream", name)

    @app.delete("/v1/functions/{name}", summary="Drop a function that nothing calls")
    def drop_function(name: Name) -> Response:
        return drop("function", name)

    @app.delete("/v1/tables/{name}", summary="Drop a table that nothing reads")
    def drop_table(name: Name) -> Response:
        return drop("table", name)


def _reading(app: FastAPI, worker: Worker) -> None:
    def show(make: Callable[[View], list[documents.Document]], kind: str, name: str | None) -> Response:
        with worker.reading() as (registry, now):
            rows = make(registry.view(now))
        if name is None:
            return _json(rows)
        wanted = name if kind == "edge" else meant(name, {row["name"] for row in rows})
        found = next((row for row in rows if row["name"] == wanted), None)
        if found is None:
            raise MissingError(f"there is no {kind} '{name}'", hint=f"GET /v1/{kind}s lists what there is")
        return _json(found)

    for kind, make in (
        ("alert", documents.alert_documents),
        ("stream", documents.stream_documents),
        ("edge", documents.edge_documents),
    ):
        _routes(app, kind, make, show)

    @app.get("/v1/plans", summary="The newest plan versions")
    def plans() -> Response:
        known = [decode_plan(document) for document in worker.plans.newest_first()]
        newest = max((plan.version for plan in known), default=0)
        return _json([documents.plan_document(plan, newest) for plan in known])

    @app.get("/v1/plans/{version}", summary="One plan as the fleet reads it")
    def plan(version: int) -> Response:
        document = worker.plans.get(version)
        if document is None:
            raise MissingError(f"there is no plan {version}", hint="GET /v1/plans lists the newest")
        return Response(document, media_type="application/json")


def _subscribing(app: FastAPI, worker: Worker) -> None:
    @app.get("/v1/streams/{name}/topic", summary="The topic that serves a predicate, and a lease of it")
    def topic(
        name: Name,
        request: Request,
        predicate: Predicate = "",
        consumer: Consumer = "",
        lease: Term = leases.SECONDS,
    ) -> Response:
        _once(request, ("predicate", "consumer", "lease"))

        def subscribe(registry: Registry, now: int) -> tuple[Lease, Change]:
            return registry.subscribe(wish(registry), now)

        def wish(registry: Registry) -> Lease:
            catalog = registry.state.catalog
            stream = meant(name, {**catalog.streams, **catalog.derived})
            return leases.new_lease(stream, predicate, consumer, lease, catalog)

        with worker.reading() as (registry, now):
            pass  # a predicate may take a while to read
        wanted = wish(registry)
        with worker.reading() as (registry, now):
            found = registry.renew(wanted, now)
        if found is None:
            found = worker.submit(subscribe)
        with worker.reading() as (registry, now):
            return _json(documents.lease_document(registry.view(now), found))

    @app.delete(
        "/v1/leases/{lease}", status_code=HTTPStatus.NO_CONTENT, summary="End a lease before it runs out"
    )
    def release(lease: Name) -> None:
        worker.submit(lambda registry, now: registry.release(lease, now))


def _once(request: Request, known: Sequence[str]) -> None:
    """Refuse parameters that aren't known, or come twice: without its predicate a lease is of every tuple."""
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known or count > 1:
            what = f"'{name}' is given {count} times" if name in known else f"there is no parameter '{name}'"
            raise InputError(what, hint=f"give {', '.join(known)}, each once")


def _routes(
    app: FastAPI,
    kind: str,
    make: Callable[[View], list[documents.Document]],
    show: Callable[[Callable[[View], list[documents.Document]], str, str | None], Response],
) -> None:
    @app.get(f"/v1/{kind}s", summary=f"Every {kind}", name=f"{kind}s")
    def every() -> Response:
        return show(make, kind, None)

    @app.get(f"/v1/{kind}s/{{name}}", summary=f"One {kind}", name=kind)
    def one(name: Name) -> Response:
        return show(make, kind, name)


async def _sql(request: Request) -> str:
    kind = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if kind not in TEXT_TYPES:
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send SQL as {' or '.join(TEXT_TYPES[:2])}, not as {kind}"
        )
    body = await read_body(request, BODY_LIMIT)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            "the text is not UTF-8", where=f"byte {error.start}", hint="save the file as UTF-8"
        ) from None


def _json(document: object) -> Response:
    return Response(orjson.dumps(document), media_type="application/json")


def _outcome(error: TamisError) -> str:
    return "unavailable" if error.retriable else "refused"
