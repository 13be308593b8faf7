"""Leases over HTTP: POST makes and renews a lease, GET shows it, DELETE ends it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from tamis.errors import InputError
from tamis.query.model import Catalog
from tamis.wording.names import normalized_name
from tamis_registry.core import leases
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import Lease
from tamis_registry.http.common.parts import Name, as_json, once
from tamis_registry.http.documents.leases import lease_document, look_document
from tamis_registry.http.schemas.definitions import StreamTopic
from tamis_registry.registry_loop import RegistryLoop

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


def lease_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the routes."""

    def wish(request: Request, name: str, predicate: str, consumer: str, seconds: int) -> _Wish:
        once(request, ("predicate", "consumer", "lease"))
        with loop.reading() as (registry, _):
            catalog = registry.state.catalog
        # A predicate may take a while to read: the loop goes on meanwhile, and never changes this catalogue.
        stream = normalized_name(name, {**catalog.streams, **catalog.derived})
        lease = leases.new_lease(stream, predicate, consumer, seconds, catalog)
        return _Wish(lease, predicate, catalog)

    @app.get(
        "/v1/streams/{name}/topic",
        summary="The topic that would serve a predicate; changes nothing",
        tags=["Leases"],
        response_model=StreamTopic,
    )
    def look(
        name: Name,
        request: Request,
        predicate: Predicate = "",
        consumer: Consumer = "",
        lease: Term = leases.SECONDS,
    ) -> Response:
        wanted = wish(request, name, predicate, consumer, lease).lease
        with loop.reading() as (registry, now):
            known = registry.state.leases.get(wanted.id)
            if known is not None:
                return as_json(lease_document(registry.view(now), known))
            snapshot = registry.snapshot()
        state, found = snapshot.look(wanted)
        with loop.reading() as (registry, now):
            return as_json(look_document(registry.view(now), state, found))

    @app.post(
        "/v1/streams/{name}/topic",
        summary="A lease of the topic that serves a predicate, or more time",
        description="Send it again before the lease expires. docs/subscribing.md has the rules of readers.",
        tags=["Leases"],
        response_model=StreamTopic,
    )
    async def subscribe(
        name: Name,
        request: Request,
        predicate: Predicate = "",
        consumer: Consumer = "",
        lease: Term = leases.SECONDS,
    ) -> Response:
        if await request.body():
            # Unread, it would be a lease of every tuple.
            raise InputError(
                "this request must have no body", hint="give the parameters in the address, as curl -G does"
            )
        return await run_in_threadpool(lend, request, name, predicate, consumer, lease)

    def lend(request: Request, name: str, predicate: str, consumer: str, seconds: int) -> Response:
        wanted = wish(request, name, predicate, consumer, seconds)
        with loop.reading() as (registry, now):
            found = registry.renew(wanted.lease, now)
        if found is None:
            found = loop.submit(lambda registry, now: registry.subscribe(wanted.now(registry), now))
        with loop.reading() as (registry, now):
            return as_json(lease_document(registry.view(now), found))

    @app.delete(
        "/v1/leases/{lease}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="End a lease before it runs out",
        tags=["Leases"],
    )
    def release(lease: Name) -> None:
        loop.submit(lambda registry, now: registry.release(lease, now))


@dataclass(frozen=True)
class _Wish:
    """A requested lease, and the catalogue with which its predicate was read."""

    lease: Lease
    predicate: str
    catalog: Catalog

    def now(self, registry: Registry) -> Lease:
        """The lease for the present catalogue. The predicate is read again if the stream has changed."""
        catalog, stream = registry.state.catalog, self.lease.stream
        streams = [{**known.streams, **known.derived}.get(stream) for known in (self.catalog, catalog)]
        if streams[0] is streams[1]:
            return self.lease
        return leases.new_lease(stream, self.predicate, self.lease.consumer, self.lease.seconds, catalog)
