"""Results of explaining and proving a query, sent from the proving process to the planning process.

Proofs take long, so another process makes them. Its results are pickled, and cached by the planning process
as if it had computed them.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tamis.bounded.application_time import classification
from tamis.bounded.memory import Memory
from tamis.planning import verdict
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.queries import standing_queries
from tamis.planning.queries.standing_queries import Judged
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef


@dataclass(frozen=True)
class WorkedOut:
    """All results for a query that was explained and, where it is accepted, planned."""

    explanation: Explanation
    in_time: tuple[Memory | None] | None
    verdict: Verdict | None
    judged: Judged | None


def explained(definition: AlertDef | DerivedDef, catalog: Catalog) -> Explanation:
    """The explanation of a query, computed once for the same definitions and versions of table files."""
    objects = (definition, *verdict.read_by(definition, catalog))
    extra = ("explanation", _file_versions(definition, catalog))
    found: Explanation = catalog.results.get(objects, extra, lambda: explain(catalog, definition))
    return found


def work_out(definition: AlertDef | DerivedDef, catalog: Catalog) -> WorkedOut:
    """Explain a query, and prove what its plan needs. Raises what `explain` raises."""
    explanation = explained(definition, catalog)
    proved = judged = None
    if (
        explanation.accepted
        and isinstance(definition, AlertDef)
        and standing_queries.is_standing(definition, catalog)
    ):
        judged = standing_queries.judged(definition, catalog)
    elif explanation.accepted and not definition.query.timeless and not _inlined(definition):
        proved = verdict.judge(definition, catalog)
    return WorkedOut(explanation, classification.known(definition, catalog), proved, judged)


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: WorkedOut) -> None:
    """Cache the results of another process for an equal definition and an equal catalogue."""
    objects = (definition, *verdict.read_by(definition, catalog))
    catalog.results.put(objects, ("explanation", _file_versions(definition, catalog)), found.explanation)
    if found.in_time is not None:
        classification.learn(definition, catalog, found.in_time[0])
    if found.verdict is not None:
        verdict.learn(definition, catalog, found.verdict)
    if found.judged is not None and isinstance(definition, AlertDef):
        standing_queries.learn(definition, catalog, found.judged)


def _inlined(definition: AlertDef | DerivedDef) -> bool:
    return isinstance(definition, DerivedDef) and definition.inlined


def _file_versions(definition: AlertDef | DerivedDef, catalog: Catalog) -> Hashable:
    """The versions of the table files that a query reads."""
    return tuple(_versions(definition, catalog))


def _versions(definition: AlertDef | DerivedDef, catalog: Catalog) -> Iterator[Hashable]:
    members = definition.query.members or (definition.query,)
    for name in dict.fromkeys(source.stream for one in members for source in one.sources):
        if (table := catalog.tables.get(name)) is not None:
            try:
                found = os.stat(table.path)
                yield table.path, found.st_mtime_ns, found.st_size, found.st_ino
            except OSError:
                yield table.path, None
