"""Planning as the registry uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.planning.build import plan_for
from tamis.planning.explain import estimated, explain
from tamis.planning.traffic import Estimate
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis_registry.core.planner import Planner


def _explain(
    made: AlertDef | DerivedDef, catalog: Catalog, readings: Mapping[str, Estimate] | None
) -> dict[str, Any]:
    found = explain(catalog, made)
    return (found if readings is None else estimated(catalog, found, readings)).document()


PLANNER = Planner(_explain, plan_for)
