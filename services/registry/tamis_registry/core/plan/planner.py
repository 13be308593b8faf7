"""Interface to planning. The planner is passed in, so that tests can run the core with another planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tamis.declarations.file_access import NO_ACCESS, FileAccess
from tamis.messaging.schemas.wire_format import Kind
from tamis.planning.decide import verdict_on
from tamis.planning.incremental import Built, plan_for
from tamis.planning.proof_results import WorkedOut, learn
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef


@dataclass(frozen=True)
class Planner:
    """The planning functions that the registry uses.

    `decide` gives the verdict on a query, and `build` makes a plan (`plan_for`). Both may raise TamisError.
    `file_access`: the files that tables may name. `register` registers the schema of a topic and returns its
    number; None without a schema registry.
    """

    decide: Callable[[AlertDef | DerivedDef, Catalog], Verdict] = verdict_on
    build: Callable[..., Built] = plan_for
    file_access: FileAccess = NO_ACCESS
    register: Callable[[str, Kind, str], int] | None = None


PLANNER = Planner()


def knowing(planner: Planner, known: Mapping[int, WorkedOut]) -> Planner:
    """A planner that uses the results of another process for some queries, which are given by the identity of
    their definitions.
    """

    def decide(made: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
        found = known.get(id(made))
        if found is not None:
            learn(made, catalog, found)
        return planner.decide(made, catalog)

    return replace(planner, decide=decide)
