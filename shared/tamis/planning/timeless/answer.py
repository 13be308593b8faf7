"""The verdict on the memory of a query over streams without time, as `tamis explain` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tamis.bounded.bound import terms
from tamis.bounded.closure import Closure
from tamis.bounded.decide import Violation, theorem, violations
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.witness import tuples_of
from tamis.planning.bounds import EMPTY, Memory
from tamis.planning.timeless import having, words
from tamis.planning.timeless.grouped import parts
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.proof import Proof, proof
from tamis.planning.timeless.repairs import Branch, repairs
from tamis.planning.timeless.translate import Translation, translate
from tamis.planning.timeless.unions import Used, proving, union
from tamis.query.model import Catalog, Query

Failing = tuple[Conjunction, Closure, Violation]


def answer(query: Query, catalog: Catalog) -> Memory:
    """Decide a query over streams without time."""
    if query.members:
        return _union(query, catalog)
    asked = _asked(query, catalog)
    if any(one.contradiction is not None or not branches for one, branches in asked):
        what = asked[0][0].contradiction or "the conditions contradict each other"
        return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")
    branches = [branch for _, own in asked for branch in own]
    failing = _failing(branches)
    if failing:
        fixes = _repairs([one for one, _ in asked], branches)
        return _refused(query, catalog, failing, fixes)
    return _bounded(branches)


def proof_of(query: Query, catalog: Catalog) -> Proof | None:
    """The proof that a query over streams without time is unbounded; None where it is not called that."""
    if query.members:
        place = proving(query, catalog, _used(query, catalog))
        return None if place is None else proof_of(query.members[place], catalog)
    failing = _failing([branch for _, own in _asked(query, catalog) for branch in own])
    proved = _proved(query, catalog, failing)
    return None if proved is None else proved[1]


def _asked(query: Query, catalog: Catalog) -> list[tuple[Translation, list[Branch]]]:
    """The queries that a query with aggregates consists of, or itself, each with its alternatives."""
    if query.grouping is None:
        translation = translate(query, catalog)
        return [(translation, [(one.conjunction, one.closure) for one in minimal(translation)])]
    aggregates = query.grouping.aggregates
    return [
        (part.translation, [(q, closure) for _, q, closure in part.alternatives(aggregates)])
        for part in parts(query, query.grouping, catalog)
    ]


def _failing(branches: Sequence[Branch]) -> list[Failing]:
    return [(*one, found) for one in branches for found in violations(*one)]


def _proved(query: Query, catalog: Catalog, failing: Sequence[Failing]) -> tuple[Failing, Proof] | None:
    for one in failing:
        doubtful = one[0].caveats or having.doubt(query, catalog, one[0], one[2])
        made = None if doubtful else proof(*one)
        if made is not None:
            return one, made
    return None


def _union(query: Query, catalog: Catalog) -> Memory:
    found = [answer(member, catalog) for member in query.members]
    failing = union(query, catalog, found, _used(query, catalog))
    if failing is not None:
        return failing
    total = sum(one.bound or 0 for one in found)
    formula = " + ".join(one.formula for one in found)
    return Memory("bounded", total, formula, found[0].theorem, f"each SELECT is: {found[0].reason}")


def _used(query: Query, catalog: Catalog) -> Used:
    def streams(place: int) -> frozenset[str] | None:
        found = proof_of(query.members[place], catalog)
        witness = None if found is None else found.witness()
        return None if witness is None else frozenset(stream for stream, _ in tuples_of(witness))

    return streams


def _bounded(branches: Sequence[Branch]) -> Memory:
    counted = Counter(term.text for one in branches for term in terms(*one))
    said = [text if count == 1 else f"{count} * {text}" for text, count in counted.items()]
    total = sum(int(term.count) for one in branches for term in terms(*one))
    first = branches[0][0]
    if not said:
        return Memory("bounded", 0, "0", theorem(first), "each tuple is decided alone: none is kept")
    reason = "all that a later tuple can tell of those before it has a limit: " + (
        "one tuple stands for those that the same rows need"
        if first.distinct
        else "their number is kept for each case"
    )
    return Memory("bounded", total, " + ".join(said), theorem(first), reason)


def _refused(query: Query, catalog: Catalog, failing: Sequence[Failing], fixes: tuple[str, ...]) -> Memory:
    proved = _proved(query, catalog, failing)
    asked, closure, found = failing[0] if proved is None else proved[0]
    broken = f"{theorem(asked)}, condition {found.condition}"
    why = words.unbounded(asked, closure, found)
    witness = None if proved is None else proved[1].witness()
    if witness is not None:
        return Memory("unbounded", None, "", broken, why, fixes, words.scenario(asked, witness))
    doubts = asked.caveats or (having.doubt(query, catalog, asked, found) or words.doubt(asked, found),)
    return Memory("unknown", None, "", broken, f"not proven: {why}; but {'; '.join(doubts)}", fixes)


def _repairs(translations: Sequence[Translation], branches: Sequence[Branch]) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(column for one in translations for column in one.columns))
    occurring = {one.alias for one in columns}
    if any(not occurring <= set(query.aliases) for query, _ in branches):
        return ()  # with one more condition, no occurrence may stand for another one any longer
    return repairs([(replace(query, caveats=()), closure) for query, closure in branches], columns)
