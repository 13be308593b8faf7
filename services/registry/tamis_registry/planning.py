"""The planning functions that the registry uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.planning.explain import estimated
from tamis.planning.incremental import plan_for
from tamis.planning.known_explanations import explained
from tamis.planning.proof_results import learn
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.plan.planner import Planner


def _explain(
    made: AlertDef | DerivedDef, catalog: Catalog, readings: Mapping[str, StreamStatistics] | None
) -> dict[str, Any]:
    found = explained(made, catalog)
    return (found if readings is None else estimated(catalog, found, readings)).document()


PLANNER = Planner(_explain, plan_for, learn=learn)
