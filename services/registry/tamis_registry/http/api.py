"""The HTTP API: accepts statements, and returns the state of streams and queries or problem documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.responses import Response

from tamis.errors import InputError, TamisError
from tamis.plan.json_form import decode_plan
from tamis.plan.model import Plan
from tamis.settings.token_file import TokenFile
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.server import telemetry_routes
from tamis.web.guard import Guard
from tamis.web.problems import answer_with_problems, problem
from tamis.wording.names import normalized_name, suggest
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.core.status import View
from tamis_registry.http.common.fair_requests import FairRequests, ReadingTurns
from tamis_registry.http.common.openapi import PROBLEMS, TAGS, described, docs_route
from tamis_registry.http.common.parts import BODY_LIMIT, Name, as_json
from tamis_registry.http.common.problems import problem_of
from tamis_registry.http.common.rights import require_tokens, works_long
from tamis_registry.http.definitions.leases import lease_routes
from tamis_registry.http.definitions.names import name_routes
from tamis_registry.http.definitions.statements import Statements, statement_routes
from tamis_registry.http.definitions.trials import Trials, trial_routes
from tamis_registry.http.documents import Document
from tamis_registry.http.documents.alerts import alert_documents, whole_alert
from tamis_registry.http.documents.edges import edge_documents
from tamis_registry.http.documents.streams import pattern_documents, stream_documents, whole_pattern_documents
from tamis_registry.http.live.broadcast import Broadcast
from tamis_registry.http.live.console import console_routes
from tamis_registry.http.live.events import event_routes
from tamis_registry.http.schemas import definitions as types
from tamis_registry.http.state.alert_plan import alert_plan_routes
from tamis_registry.http.state.episodes import episode_routes
from tamis_registry.http.state.fleet import kafka_routes, shard_routes, sink_routes
from tamis_registry.http.state.joiner import joiner_routes
from tamis_registry.http.state.readings import reading_routes
from tamis_registry.http.state.silences import silence_routes
from tamis_registry.http.state.topics import topic_routes
from tamis_registry.kafka.newest import NewestReader
from tamis_registry.plans import Origin
from tamis_registry.proving.pool import Provers
from tamis_registry.registry_loop import RegistryLoop

_log = get_logger("tamis.registry")

MOST_FAULTS = 20  # of one request, in the answer


@dataclass(frozen=True)
class Kind:
    """Documents of one kind, and their type in the OpenAPI description. `complete` adds to a single document
    what would be too much in a list.
    """

    word: str
    documents: Callable[[View], list[Document]]
    model: type
    complete: Callable[[View, dict[str, Any]], dict[str, Any]] = lambda _, document: document

    @property
    def order(self) -> str:
        """The order of the list."""
        return "In the order of their names." if self.word == "edge" else "In the order of creation."


def application(
    loop: RegistryLoop,
    provers: Provers,
    metrics: Metrics,
    health: Health,
    *,
    hosts: Sequence[str] = (),
    tokens: TokenFile | None = None,
) -> FastAPI:
    """The API with its page `/docs`, the console and the telemetry routes.

    The pages load nothing from other servers. `hosts`: further names of this server, which `Guard` can't
    know. Without `tokens`, everybody who reaches the server may use it. Its server calls
    `state.broadcast.close` before it stops.
    """
    app = FastAPIOffline(
        docs_url=None,
        redoc_url=None,
        title="Tamis registry",
        version="1",
        description="Streams and alerts of a Tamis fleet: what is defined, what runs, and why not.",
        openapi_tags=TAGS,
        responses=PROBLEMS,
    )
    app.openapi = partial(described, app, tokens=tokens is not None)  # type: ignore[method-assign]
    docs_route(app)
    app.router.routes.extend(telemetry_routes(metrics, health))
    app.router.routes.extend(console_routes())
    app.add_middleware(FairRequests, has_own=works_long)
    if tokens is not None:
        require_tokens(app, tokens, metrics)
    app.add_middleware(Guard, body_limit=BODY_LIMIT, hosts=hosts)  # added last, it comes first
    _errors(app)
    statement_routes(app, Statements(loop, provers, metrics))
    _reading(app, loop)
    alert_plan_routes(app, loop)
    topic_routes(app, loop)
    lease_routes(app, loop)
    name_routes(app, loop)
    shard_routes(app, loop)
    joiner_routes(app, loop)
    kafka_routes(app, loop)
    sink_routes(app, loop)
    reader = NewestReader(loop.kafka)
    turns = ReadingTurns()
    reading_routes(app, loop, reader, turns)
    trial_routes(app, Trials(loop, provers, reader, turns))
    silence_routes(app, loop, reader, turns)
    episode_routes(app, loop, reader, turns)
    app.state.broadcast = Broadcast(loop, loop.kafka)
    event_routes(app, loop, app.state.broadcast, tokens)
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
        found = error.errors()
        said = [f"{'.'.join(map(str, e['loc'])):.300}: {e['msg']:.300}" for e in found[:MOST_FAULTS]]
        more = [f"{len(found) - MOST_FAULTS} more"] if len(found) > MOST_FAULTS else []
        faults = "; ".join((*said, *more))
        return problem(HTTPStatus.BAD_REQUEST, "invalid-input", "The request is wrong", faults)


def _reading(app: FastAPI, loop: RegistryLoop) -> None:
    def show(kind: Kind, name: str | None) -> Response:
        with loop.reading() as (registry, now):
            view = registry.view(now)
            rows = kind.documents(view)
            if name is None:
                return as_json(rows)
            wanted = name if kind.word == "edge" else normalized_name(name, {row["name"] for row in rows})
            found = next((kind.complete(view, row) for row in rows if row["name"] == wanted), None)
        if found is None:
            known = [str(row["name"]) for row in rows]
            hint = suggest(wanted, known, lists(f"{kind.word}s"))
            raise MissingError(f"there is no {kind.word} '{name}'", hint=hint)
        return as_json(found)

    alert = Kind("alert", alert_documents, types.WholeAlert, whole_alert)
    _routes(app, Kind("alert", alert_documents, types.Alert), show, alert)
    _routes(app, Kind("stream", stream_documents, types.Stream), show)
    patterns = Kind("pattern", pattern_documents, types.Pattern)
    _routes(app, patterns, show, Kind("pattern", whole_pattern_documents, types.WholePattern))
    _routes(app, Kind("edge", edge_documents, types.Edge), show)

    @app.get(
        "/v1/plans",
        summary="The newest plan versions",
        description="At most 50, each in one line.",
        tags=["Plans"],
        response_model=list[types.PlanSummary],
    )
    def plans() -> Response:
        known = loop.plans.summaries(_summary)
        newest = max((plan["version"] for plan in known), default=0)
        return as_json(
            [
                {**plan, **_origin_document(origin), "newest": plan["version"] == newest}
                for plan in known
                if (origin := loop.plans.origin(plan["version"])) is not None
            ]
        )

    @app.get(
        "/v1/plans/{version}",
        summary="One plan as the fleet reads it",
        description="Members and expressions are those of the topic `tamis.plans`.",
        tags=["Plans"],
        response_model=types.WholePlan,
    )
    def plan(version: int) -> Response:
        document = loop.plans.get(version)
        if document is None:
            raise MissingError(f"there is no plan {version}", hint=lists("plans", "the newest"))
        return Response(document, media_type="application/json")


def _routes(
    app: FastAPI, kind: Kind, show: Callable[[Kind, str | None], Response], whole: Kind | None = None
) -> None:
    """Add the routes of a kind: all documents, and one of them by its name, which may be a `whole` one."""
    word, one_of = kind.word, whole or kind

    @app.get(
        f"/v1/{word}s",
        summary=f"Every {word}",
        name=f"{word}s",
        description=kind.order,
        tags=[f"{word}s".capitalize()],
        response_model=list[kind.model],  # type: ignore[name-defined]
    )
    def all_of_them() -> Response:
        return show(kind, None)

    @app.get(
        f"/v1/{word}s/{{name}}",
        summary=f"One {word}",
        name=word,
        tags=[f"{word}s".capitalize()],
        response_model=one_of.model,
    )
    def one(name: Name) -> Response:
        return show(one_of, name)


def _origin_document(origin: Origin) -> Document:
    """The time at which a plan version was made, and why."""
    return {"made": origin.time, "why": list(origin.why)}


def _plan_document(plan: Plan) -> Document:
    """One line about a plan version."""
    return {
        "version": plan.version,
        "definitions": [f"{d.alert}@{d.version}" for d in plan.queries],
        "retiring": sorted(plan.retiring),
        "topics": [topic.name for stream in plan.streams for topic in stream.topics],
        "shards": len(plan.since),
    }


def _summary(document: bytes) -> Document | None:
    """One line about a plan, if this version of Tamis can read the plan."""
    try:
        return _plan_document(decode_plan(document))
    except InputError as error:
        _log.warning("a plan can't be read", error=str(error))
        return None
