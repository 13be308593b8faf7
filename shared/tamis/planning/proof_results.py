"""Verdict and proofs of a query, sent from the proving process to the planning process.

Proofs take long, so another process makes them. Its results are pickled, and cached by the planning process
as if it had computed them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.bounded.application_time import verdict as application_time
from tamis.bounded.memory import Memory
from tamis.planning import decide, join_verdict
from tamis.planning.queries import standing_queries
from tamis.planning.queries.standing_queries import Judged
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef


@dataclass(frozen=True)
class WorkedOut:
    """The verdict on a query and, if it is accepted, what its plan needs besides."""

    verdict: Verdict
    in_time: tuple[Memory | None] | None
    judged: Judged | None


def work_out(definition: AlertDef | DerivedDef, catalog: Catalog) -> WorkedOut:
    """Decide a query, and prove what its plan needs. Raises what `verdict_on` raises."""
    verdict = decide.verdict_on(definition, catalog)
    judged = None
    if (
        verdict.accepted
        and isinstance(definition, AlertDef)
        and standing_queries.is_standing(definition, catalog)
    ):
        judged = standing_queries.judged(definition, catalog)
    return WorkedOut(verdict, application_time.known(definition, catalog), judged)


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: WorkedOut) -> None:
    """Cache the results of another process for an equal definition and an equal catalogue."""
    decide.learn(definition, catalog, found.verdict)
    if found.in_time is not None:
        application_time.learn(definition, catalog, found.in_time[0])
    if found.verdict.join is not None:
        join_verdict.learn(definition, catalog, found.verdict.join)
    if found.judged is not None and isinstance(definition, AlertDef):
        standing_queries.learn(definition, catalog, found.judged)
