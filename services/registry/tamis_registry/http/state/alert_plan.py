"""The physical plan of an alert over HTTP: the operators that run at edges and in the joiner."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.responses import Response

from tamis.planning.decide import verdict_on
from tamis.planning.plan_trees.operators import QueryPlan
from tamis.planning.plan_trees.query_plans import query_plan
from tamis.wording.names import normalized_name, suggest
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.core.state.model import Stored
from tamis_registry.core.status import View, alert_status
from tamis_registry.http.common.parts import Name, as_json
from tamis_registry.http.schemas import plan_trees as types
from tamis_registry.registry_loop import RegistryLoop


def alert_plan_routes(app: FastAPI, loop: RegistryLoop) -> None:
    """Add the route."""

    @app.get(
        "/v1/alerts/{name}/plan",
        summary="The physical plan of an alert",
        description="The operators that run for it, of the newest plan: where, what they do, and what they "
        "keep. An alert that doesn't run has none.",
        tags=["Alerts"],
        response_model=types.QueryPlan,
    )
    def alert_plan(name: Name) -> Response:
        with loop.reading() as (registry, now):
            view = registry.view(now)
        alerts = {one.name: one for one in view.state.of_kind("alert")}
        stored = alerts.get(normalized_name(name, alerts))
        if stored is None:
            hint = suggest(name, list(alerts), lists("alerts"))
            raise MissingError(f"there is no alert '{name}'", hint=hint)
        return as_json(plan_of(view, stored).document())


def plan_of(view: View, stored: Stored) -> QueryPlan:
    """The physical plan of an alert in the newest plan of the fleet.

    Raises InputError if a table that it reads can't be read any more.
    """
    alert = view.state.catalog.alerts.get(stored.name)
    if alert is None or view.definition(stored.name, stored.version) is None:
        status = alert_status(view, stored)
        why = f"the alert is {status.state}" + (f": {'; '.join(status.why)}" if status.why else "")
        return QueryPlan(stored.name, "alert", status.state != "refused", why)
    # The plan rests on this verdict, so that it is there already.
    return query_plan(alert, verdict_on(alert, view.state.catalog), view.plan, stored.version)
