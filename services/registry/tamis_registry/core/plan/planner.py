"""Interface to planning. The planner is passed in, so that tests can run the core with another planner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tamis.declarations.definitions import FunctionDef
from tamis.declarations.file_access import NO_ACCESS, FileAccess
from tamis.declarations.streams import StreamDef
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


# What another process has worked out for a query, by the identity of the query's definition. Each with the
# definition that ALTER or CREATE OR REPLACE has made, if the query was only resolved again with it.
Known = dict[int, list[tuple[StreamDef | FunctionDef | None, WorkedOut]]]


def knowing(planner: Planner, known: Known) -> Planner:
    """A planner that uses the results of another process for some queries."""

    def decide(made: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
        found = [one for changed, one in known.get(id(made), ()) if _has(catalog, changed)]
        if found:
            learn(made, catalog, found[-1])
        return planner.decide(made, catalog)

    return replace(planner, decide=decide)


def _has(catalog: Catalog, changed: StreamDef | FunctionDef | None) -> bool:
    """True if a definition is one of a catalogue: a query may be there from before the change."""
    if changed is None:
        return True
    definitions = catalog.streams if isinstance(changed, StreamDef) else catalog.functions
    return definitions.get(changed.name) is changed
