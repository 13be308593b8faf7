"""Results of explaining and proving a query, sent from the proving process to the planning process.

Proofs take long, so another process makes them. Its results are pickled, and cached by the planning process
as if it had computed them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.memory import Memory
from tamis.planning import known_explanations, verdict
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.known_explanations import explained
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
    return WorkedOut(explanation, application_time.known(definition, catalog), proved, judged)


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: WorkedOut) -> None:
    """Cache the results of another process for an equal definition and an equal catalogue."""
    known_explanations.learn(definition, catalog, found.explanation)
    if found.in_time is not None:
        application_time.learn(definition, catalog, found.in_time[0])
    if found.verdict is not None:
        verdict.learn(definition, catalog, found.verdict)
    if found.judged is not None and isinstance(definition, AlertDef):
        standing_queries.learn(definition, catalog, found.judged)


def _inlined(definition: AlertDef | DerivedDef) -> bool:
    return isinstance(definition, DerivedDef) and definition.inlined
