"""The explanation of a query with ASOF JOIN."""

from __future__ import annotations

from dataclasses import replace

from tamis.analysis.conjuncts import analyse
from tamis.bounded.latest_values import memory_verdict
from tamis.bounded.memory import EMPTY, Memory
from tamis.expressions.nodes import aliases, conjunction
from tamis.plan.omission import bare
from tamis.planning.candidate_filters import candidate_filters
from tamis.planning.explanations.explanation import Explanation, SourceExplanation
from tamis.query.model import AlertDef, Catalog, DerivedDef, Query


def explained(definition: AlertDef | DerivedDef, catalog: Catalog, kind: str) -> Explanation:
    """A query with ASOF JOIN: nothing is omitted, and its memory decides."""
    query = definition.query
    contradiction = _contradiction(query, catalog)
    if contradiction is not None:
        never = f"{contradiction}, so the query never has a row"
        return Explanation(definition.name, kind, False, never, (), Memory("bounded", 0, "0", EMPTY, never))
    found = memory_verdict(query, catalog)
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    accepted = found.verdict == "bounded" or allowed
    first = query.sources[0]
    own = tuple(c.expr for c in query.conjuncts if aliases(c.expr) == {first.alias})
    joined = " and ".join(join.alias for join in query.asof)
    why = f"no omission: a tuple at another time may have another latest tuple of {joined}"
    sources = [SourceExplanation.without_omission(first, bare(conjunction(own)), why)]
    for source, join in zip(query.sources[1:], query.asof, strict=True):
        why = "no omission: each tuple may be the latest, and hides the ones before it even if WHERE drops it"
        filter_ = bare(conjunction(candidate_filters(query, join)))
        sources.append(SourceExplanation.without_omission(source, filter_, why))
    reason = f"a row for each tuple of {first.alias}, when the watermarks have passed it" if accepted else ""
    return Explanation(definition.name, kind, accepted, reason or found.reason, tuple(sources), found)


def _contradiction(query: Query, catalog: Catalog) -> str | None:
    """The reason why a query never has a row; None if it may have rows.

    Every row of inner joins meets all conditions, like a row of a join by time. The columns of a LEFT ASOF
    JOIN may also be NULL.
    """
    if any(join.outer for join in query.asof):
        return None
    filters = tuple(conjunct for join in query.asof for conjunct in join.filters)
    return analyse(replace(query, asof=(), conjuncts=(*query.conjuncts, *filters)), catalog).contradiction
