"""The verdict on the memory of a query in application time, as `tamis explain` prints it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

from tamis.bounded.application_time import messages
from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.application_time.bound import terms
from tamis.bounded.application_time.decide import Failure, decided_translation, failures, theorem
from tamis.bounded.application_time.partial_combinations import MOST_STREAMS
from tamis.bounded.application_time.proof import Proof, proof
from tamis.bounded.application_time.reorder_buffer import reorder_buffer_terms
from tamis.bounded.application_time.repairs import repairs
from tamis.bounded.application_time.static_relations import QueryInputs, query_inputs
from tamis.bounded.application_time.translate import Alternative, alternatives
from tamis.bounded.conjunctive.bound import Term
from tamis.bounded.memory import EMPTY, Memory, no_number, not_proven, sentences
from tamis.bounded.timeless.messages import caveat
from tamis.bounded.timeless.unions import UsedStreams, proving_member, union
from tamis.query.model import Catalog, Query

# The verdict on a bounded SELECT of a UNION, whose bound is counted over all SELECTs together.
_SOME = Memory("bounded", None, "", "", "")


def memory_verdict(query: Query, catalog: Catalog) -> Memory:
    """Decide a query in application time.

    Raises InputError if a static relation can't be read.
    """
    found = [_select(member, query_inputs(member, catalog)) for member in query.members or (query,)]
    texts = [one if isinstance(one, Memory) else _SOME for one in found]
    if not query.members and texts[0].verdict != "bounded":
        return texts[0]
    failing = union(query, catalog, texts, _used(query, catalog)) if query.members else None
    if failing is not None:
        return failing
    kept = [one for one in found if not isinstance(one, Memory)]
    if not kept:
        first = found[0]
        assert isinstance(first, Memory)
        return first
    streams = [catalog.streams[s.stream] for s in query.sources if s.stream in catalog.streams]
    branches = [one.timed for own in kept for one in own]
    summands = [
        *reorder_buffer_terms(dict.fromkeys(streams)),
        *(term for one in branches for term in terms(one)),
    ]
    return _bounded(branches[0], summands, messages.missing_declarations(streams, branches))


def _select(query: Query, inputs: QueryInputs) -> Memory | tuple[Alternative, ...]:
    """The alternatives of a bounded SELECT; otherwise its verdict, also if it never has a row."""
    empty = [name for name, relation in inputs.relations.items() if not len(relation)]
    if empty:
        return _never(f"table {empty[0]} has no rows")
    translation = decided_translation(query, inputs)
    found = tuple(alternatives(translation, inputs))
    if translation.contradiction is not None or not found:
        return _never(translation.contradiction or "the conditions contradict each other, or the tables")
    if len(found[0].timed.streams) > MOST_STREAMS:
        reason = f"joins of more than {MOST_STREAMS} streams aren't decided in application time"
        return Memory("unknown", None, "", theorem(found[0].timed), reason)
    failing = [(one, failure) for one in found for failure in failures(one.timed)]
    if not failing:
        return found
    fixes = repairs([one.timed for one in found], translation.columns)
    return _refused(failing, fixes)


def proof_of(query: Query, catalog: Catalog) -> Proof | None:
    """The proof that a query is unbounded; None if there is none."""
    if query.members:
        place = proving_member(query, catalog, _used(query, catalog))
        return None if place is None else proof_of(query.members[place], catalog)
    known = query_inputs(query, catalog)
    found = alternatives(decided_translation(query, known), known)
    return proof([(one, failure) for one in found for failure in failures(one.timed)])


def _used(query: Query, catalog: Catalog) -> UsedStreams:
    def streams(place: int) -> frozenset[str] | None:
        found = proof_of(query.members[place], catalog)
        if found is None:
            return None
        witness = found.witness
        return frozenset(
            s for s, _ in itertools.chain(*witness.stored, *witness.completions, witness.relations)
        )

    return streams


def _never(what: str) -> Memory:
    return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")


def _bounded(first: TimedQuery, summands: Sequence[Term], missing: Sequence[str]) -> Memory:
    counted = Counter(_text(term) for term in summands)
    formula = " + ".join(text if count == 1 else f"{count} * {text}" for text, count in counted.items())
    reason = "later tuples can distinguish only a limited number of cases of the tuples before them: " + (
        "one tuple is kept for each case" if first.query.distinct else "a count is kept for each case"
    )
    total = sum(term.count for term in summands)
    if not math.isfinite(total):
        reason = sentences(no_number(missing), reason)
        return Memory("bounded", None, formula, theorem(first), reason)
    return Memory("bounded", int(total), formula, theorem(first), reason)


def _text(term: Term) -> str:
    return term.text.replace("inf (", "n (")


def _refused(failing: Sequence[tuple[Alternative, Failure]], fixes: tuple[str, ...]) -> Memory:
    shown = proof(failing)
    if shown is not None:
        timed, failure = shown.alternative.timed, shown.failure
        example = messages.scenario(timed, shown.witness)
        return Memory(
            "unbounded", None, "", _broken(timed, failure), messages.unbounded(timed, failure), fixes, example
        )
    one, failure = failing[0]
    doubts = one.timed.query.caveats or (caveat(one.timed.query, failure.violation),)
    reason = not_proven(messages.unbounded(one.timed, failure), doubts)
    return Memory("unknown", None, "", _broken(one.timed, failure), reason, fixes)


def _broken(timed: TimedQuery, failure: Failure) -> str:
    return f"{theorem(timed)}, condition {failure.violation.condition}"
