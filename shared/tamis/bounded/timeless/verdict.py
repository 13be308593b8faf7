"""The verdict on the memory of a query over streams without time, as `tamis explain` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tamis.bounded.conjunctive.bound import terms
from tamis.bounded.conjunctive.decide import Violation, theorem, violations
from tamis.bounded.conjunctive.difference_bounds import Closure
from tamis.bounded.conjunctive.normal_form import Conjunction
from tamis.bounded.conjunctive.witness import tuples_of
from tamis.bounded.memory import EMPTY, Memory, not_proven
from tamis.bounded.timeless import having, messages
from tamis.bounded.timeless.aggregates import subqueries
from tamis.bounded.timeless.minimised_alternatives import minimal
from tamis.bounded.timeless.proof import Proof, proof
from tamis.bounded.timeless.repairs import Branch, repairs
from tamis.bounded.timeless.translate import Translation, translate
from tamis.bounded.timeless.unions import UsedStreams, proving_member, union
from tamis.query.computed_columns import meaning, with_computed
from tamis.query.model import Catalog, Query

Failing = tuple[Conjunction, Closure, Violation]


def memory_verdict(query: Query, catalog: Catalog) -> Memory:
    """Decide a query over streams without time."""
    if query.members:
        return _union(query, catalog)
    catalog = with_computed(catalog, query)
    translations = _translations(query, catalog)
    if any(one.contradiction is not None or not branches for one, branches in translations):
        what = translations[0][0].contradiction or "the conditions contradict each other"
        return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")
    branches = [branch for _, own in translations for branch in own]
    failing = _failing(branches)
    if failing:
        fixes = _repairs(query, [one for one, _ in translations], branches)
        return _refused(query, catalog, failing, fixes)
    return _bounded(branches)


def proof_of(query: Query, catalog: Catalog) -> Proof | None:
    """The proof that a query over streams without time is unbounded; None if its verdict is another one."""
    if query.members:
        place = proving_member(query, catalog, _used(query, catalog))
        return None if place is None else proof_of(query.members[place], catalog)
    catalog = with_computed(catalog, query)
    failing = _failing([branch for _, own in _translations(query, catalog) for branch in own])
    proved = _proved(query, catalog, failing)
    return None if proved is None else proved[1]


def _translations(query: Query, catalog: Catalog) -> list[tuple[Translation, list[Branch]]]:
    """The queries that a query with aggregates consists of, or the query itself, each with its
    alternatives.
    """
    if query.grouping is None:
        translation = translate(query, catalog)
        return [(translation, [(one.conjunction, one.closure) for one in minimal(translation)])]
    aggregates = query.grouping.aggregates
    return [
        (subquery.translation, [(q, closure) for _, q, closure in subquery.alternatives(aggregates)])
        for subquery in subqueries(query, query.grouping, catalog)
    ]


def _failing(branches: Sequence[Branch]) -> list[Failing]:
    return [(*one, found) for one in branches for found in violations(*one)]


def _proved(query: Query, catalog: Catalog, failing: Sequence[Failing]) -> tuple[Failing, Proof] | None:
    for one in failing:
        doubtful = one[0].caveats or having.caveat(query, catalog, one[0], one[2])
        made = None if doubtful else proof(*one)
        if made is not None:
            return one, made
    return None


def _union(query: Query, catalog: Catalog) -> Memory:
    found = [memory_verdict(member, catalog) for member in query.members]
    failing = union(query, catalog, found, _used(query, catalog))
    if failing is not None:
        return failing
    total = sum(one.bound or 0 for one in found)
    formula = " + ".join(one.formula for one in found)
    return Memory("bounded", total, formula, found[0].theorem, f"each SELECT is: {found[0].reason}")


def _used(query: Query, catalog: Catalog) -> UsedStreams:
    def streams(place: int) -> frozenset[str] | None:
        found = proof_of(query.members[place], catalog)
        witness = None if found is None else found.witness()
        return None if witness is None else frozenset(stream for stream, _ in tuples_of(witness))

    return streams


def _bounded(branches: Sequence[Branch]) -> Memory:
    counted = Counter(term.text for one in branches for term in terms(*one))
    texts = [text if count == 1 else f"{count} * {text}" for text, count in counted.items()]
    total = sum(int(term.count) for one in branches for term in terms(*one))
    first = branches[0][0]
    if not texts:
        return Memory("bounded", 0, "0", theorem(first), "each tuple is decided alone: none is kept")
    reason = "later tuples can distinguish only a limited number of cases of the tuples before them: " + (
        "one tuple is kept for each case" if first.distinct else "a count is kept for each case"
    )
    return Memory("bounded", total, " + ".join(texts), theorem(first), reason)


def _refused(query: Query, catalog: Catalog, failing: Sequence[Failing], fixes: tuple[str, ...]) -> Memory:
    proved = _proved(query, catalog, failing)
    conjunction, closure, found = failing[0] if proved is None else proved[0]
    broken = f"{theorem(conjunction)}, condition {found.condition}"
    why = messages.unbounded(conjunction, closure, found)
    witness = None if proved is None else proved[1].witness()
    if witness is not None:
        return Memory("unbounded", None, "", broken, why, fixes, messages.scenario(conjunction, witness))
    doubts = conjunction.caveats or (
        having.caveat(query, catalog, conjunction, found) or messages.caveat(conjunction, found),
    )
    return Memory("unknown", None, "", broken, not_proven(why, doubts), fixes)


def _repairs(
    query: Query, translations: Sequence[Translation], branches: Sequence[Branch]
) -> tuple[str, ...]:
    nodes = dict.fromkeys(column for one in translations for column in one.columns)
    # A condition on an expression is no limit of the column that is computed from it.
    columns = tuple(column for column in nodes if meaning(column, query) == column)
    occurring = {one.alias for one in columns}
    if any(not occurring <= set(one.aliases) for one, _ in branches):
        return ()  # with one more condition, no occurrence may stand for another one any longer
    return repairs([(replace(one, caveats=()), closure) for one, closure in branches], columns)
