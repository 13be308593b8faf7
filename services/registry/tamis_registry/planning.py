"""Planning as the registry uses it."""

from __future__ import annotations

from typing import Any

from tamis.planning.build import plan_for
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis_registry.core.planner import Planner


def _explain(made: AlertDef | DerivedDef, catalog: Catalog) -> dict[str, Any]:
    return explain(catalog, made).document()


PLANNER = Planner(_explain, plan_for)
