"""Statements over HTTP: parsed and proved in another process, then planned and applied by the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Literal, TypeVar

import orjson
from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from tamis.errors import TamisError
from tamis.query.model import Catalog, Drop
from tamis.telemetry import Metrics
from tamis.wording.names import normalized_name
from tamis_registry.core.plan.change import Change
from tamis_registry.core.registry import Registry
from tamis_registry.core.statements.catalog_changes import Conflict
from tamis_registry.core.statements.outcomes import Outcome
from tamis_registry.core.statements.reading import OutdatedError, Read
from tamis_registry.http.common.parts import (
    SQL_BODY,
    File,
    Name,
    as_json,
    read_sql,
    while_connected,
)
from tamis_registry.http.common.rights import client_of, may_change
from tamis_registry.http.documents.alerts import outcome_document
from tamis_registry.http.schemas.statements import Explanations
from tamis_registry.http.schemas.statements import Outcome as OutcomeType
from tamis_registry.proving.pool import Provers
from tamis_registry.proving.turns import Client
from tamis_registry.registry_loop import RegistryLoop

T = TypeVar("T")

# A text is read again where others change the definitions meanwhile. One of them succeeds each time.
MOST_TRIES = 20

Existing = Annotated[
    Literal["check", "keep"],
    Query(
        description="What to do where a name is in service in another form: refuse the text, unless it says "
        "OR REPLACE (check), or leave what is in service as it is and say how the text differs (keep)",
    ),
]


class Statements:
    """Applies and explains texts."""

    def __init__(self, loop: RegistryLoop, provers: Provers, metrics: Metrics) -> None:
        self._loop, self._provers, self._metrics = loop, provers, metrics

    async def apply(self, text: str, file: str | None, *, keep: bool, client: Client) -> Response:
        """All statements of a text, or none."""

        def use(read: Read, by: Catalog) -> list[Outcome]:
            return self._loop.submit(lambda registry, now: registry.apply_read(read, by, now, keep=keep))

        async def attempt() -> list[Outcome]:
            by = await run_in_threadpool(self._catalog)
            read = await self._provers.read(text, by, file, keep=keep, client=client)
            return await run_in_threadpool(use, read, by)

        try:
            outcomes = await _until_current(attempt)
        except TamisError as error:
            self._refused(error)
            raise
        return await run_in_threadpool(self._answer, outcomes)

    async def explain(self, text: str, file: str | None, *, files: bool, client: Client) -> Response:
        """The changes that a text would make to queries. `files`: the text may name files."""

        def prepare(by: Catalog) -> Callable[[Read], bytes]:
            with self._loop.reading() as (registry, _):
                snapshot = registry.snapshot()
            return lambda read: orjson.dumps({"queries": snapshot.explain_read(read, by)})

        async def attempt() -> bytes:
            by = await run_in_threadpool(self._catalog)
            return await self._provers.explain(
                text, by, file, files=files, client=client, prepare=partial(prepare, by)
            )

        return Response(await _until_current(attempt), media_type="application/json")

    def change(self, decide: Callable[[Registry, int], tuple[list[Outcome], Change]]) -> Response:
        """Apply a change that has no text to read."""
        try:
            outcomes = self._loop.submit(decide)
        except TamisError as error:
            self._refused(error)
            raise
        return self._answer(outcomes)

    def _catalog(self) -> Catalog:
        with self._loop.reading() as (registry, _):
            return registry.state.catalog

    def _answer(self, outcomes: list[Outcome]) -> Response:
        for outcome in outcomes:
            self._metrics.inc(
                "tamis_registry_statements_total", kind=outcome.statement, outcome=outcome.result
            )
        # Before the loop has to wait: an explanation is made from the verdict only now, when it is shown.
        explained = [one.explanation() for one in outcomes]
        with self._loop.reading() as (registry, now):
            view = registry.view(now)
            pairs = zip(outcomes, explained, strict=True)
            return as_json([outcome_document(*pair, view) for pair in pairs])

    def _refused(self, error: TamisError) -> None:
        outcome = "unavailable" if error.retriable else "refused"
        self._metrics.inc("tamis_registry_statements_total", kind="text", outcome=outcome)


async def _until_current(attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of an attempt with definitions that nobody changed meanwhile."""
    for left in reversed(range(MOST_TRIES)):
        try:
            return await attempt()
        except OutdatedError:
            if not left:
                raise
    raise AssertionError


def statement_routes(app: FastAPI, made: Statements) -> None:
    """Add the routes."""

    @app.post(
        "/v1/statements",
        openapi_extra=SQL_BODY,
        summary="Apply SQL statements, all or none",
        description="All statements of the text make one plan version. Definitions that are the same as in "
        "service get the result `unchanged`, so a text can be sent again.",
        tags=["Statements"],
        response_model=list[OutcomeType],
    )
    async def statements(request: Request, file: File = None, existing: Existing = "check") -> Response:
        text = await read_sql(request)
        return await while_connected(
            request, made.apply(text, file, keep=existing == "keep", client=client_of(request, changes=True))
        )

    @app.post(
        "/v1/explain",
        openapi_extra=SQL_BODY,
        summary="Explain the queries of a text, apply nothing",
        description="What edges would omit, the bound on memory and the topics, as `tamis explain --json`. "
        "Mistakes are in `errors` of the problem document, with line and column.",
        tags=["Statements"],
        response_model=Explanations,
    )
    async def explain(request: Request, file: File = None) -> Response:
        text = await read_sql(request)
        return await while_connected(
            request, made.explain(text, file, files=may_change(request), client=client_of(request))
        )

    for kind, summary in _DROPS.items():
        _drop_route(app, made, kind, summary)


_Dropped = Literal["alert", "stream", "function", "table", "pattern"]
_DROPS: dict[_Dropped, str] = {
    "alert": "Drop an alert",
    "stream": "Drop a stream that nothing reads",
    "function": "Drop a function that nothing calls",
    "table": "Drop a table that nothing reads",
    "pattern": "Drop a pattern that no query compares with",
}


def _drop_route(app: FastAPI, made: Statements, kind: _Dropped, summary: str) -> None:
    """Add the route that drops a definition by its name."""

    @app.delete(
        f"/v1/{kind}s/{{name}}",
        name=f"drop_{kind}",
        summary=summary,
        tags=[f"{kind}s".capitalize()],
        response_model=list[OutcomeType],
    )
    def drop(name: Name) -> Response:
        def decide(registry: Registry, now: int) -> tuple[list[Outcome], Change]:
            kinds = (kind, "derived") if kind == "stream" else (kind,)
            known = {stored.name for stored in registry.state.statements.values() if stored.kind in kinds}
            return registry.take([Drop(kind, normalized_name(name, known))], now)

        try:
            return made.change(decide)
        except Conflict as error:
            # There is no text that its position could be in.
            raise Conflict(error.what, None, error.hint) from None
