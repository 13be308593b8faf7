"""The verdict on the memory of a query in application time, as `tamis explain` prints it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.application_time.bound import terms
from tamis.bounded.application_time.decide import Failure, failures, theorem
from tamis.bounded.application_time.parts import MOST_STREAMS
from tamis.bounded.bound import Term
from tamis.planning.application_time import words
from tamis.planning.application_time.buffer import buffered
from tamis.planning.application_time.ground import Ground, ground
from tamis.planning.application_time.proof import Proof, proof
from tamis.planning.application_time.repairs import repairs
from tamis.planning.application_time.timed import Alternative, alternatives, translated
from tamis.planning.bounds import EMPTY, Memory
from tamis.query.model import Catalog, Query


def answer(query: Query, catalog: Catalog) -> Memory:
    """Decide a query in application time.

    Raises InputError where a static relation can't be read.
    """
    found = [_select(member, ground(member, catalog)) for member in query.members or (query,)]
    for place, one in enumerate(found, 1):
        if isinstance(one, Memory) and one.verdict != "bounded":
            if not query.members:
                return one
            reason = f"not proven: SELECT {place} of the UNION by itself is {one.verdict}: {one.reason}"
            return Memory("unknown", None, "", one.theorem, reason)
    kept = [one for one in found if not isinstance(one, Memory)]
    if not kept:
        first = found[0]
        assert isinstance(first, Memory)
        return first
    streams = [catalog.streams[s.stream] for s in query.sources if s.stream in catalog.streams]
    branches = [one.timed for own in kept for one in own]
    summands = [*buffered(dict.fromkeys(streams)), *(term for one in branches for term in terms(one))]
    return _bounded(branches[0], summands, words.undeclared(streams, branches))


def _select(query: Query, ground: Ground) -> Memory | tuple[Alternative, ...]:
    """The alternatives of a SELECT that is bounded; otherwise the verdict, and where it never has a row."""
    empty = [name for name, relation in ground.relations.items() if not len(relation)]
    if empty:
        return _never(f"table {empty[0]} has no rows")
    translation = translated(query, ground)
    found = tuple(alternatives(translation, ground))
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
    """The proof that a query is unbounded; None where there is none, or for a UNION."""
    if query.members:
        return None
    known = ground(query, catalog)
    found = alternatives(translated(query, known), known)
    return proof([(one, failure) for one in found for failure in failures(one.timed)])


def _never(what: str) -> Memory:
    return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")


def _bounded(first: Timed, summands: Sequence[Term], undeclared: Sequence[str]) -> Memory:
    counted = Counter(_text(term) for term in summands)
    formula = " + ".join(text if count == 1 else f"{count} * {text}" for text, count in counted.items())
    reason = "all that a later tuple can tell of those before it has a limit: " + (
        "one stands for those that the same rows need"
        if first.query.distinct
        else "their number is kept for each case"
    )
    total = sum(term.count for term in summands)
    if not math.isfinite(total):
        reason += f"; no number, since it is not declared {', '.join(undeclared)}"
        return Memory("bounded", None, formula, theorem(first), reason)
    return Memory("bounded", int(total), formula, theorem(first), reason)


def _text(term: Term) -> str:
    return term.text.replace("inf (", "n (")


def _refused(failing: Sequence[tuple[Alternative, Failure]], fixes: tuple[str, ...]) -> Memory:
    shown = proof(failing)
    if shown is not None:
        timed, failure = shown.alternative.timed, shown.failure
        example = words.scenario(timed, shown.witness)
        return Memory(
            "unbounded", None, "", _broken(timed, failure), words.unbounded(timed, failure), fixes, example
        )
    one, failure = failing[0]
    doubts = one.timed.query.caveats or ("no example was found that would prove it",)
    reason = f"not proven: {words.unbounded(one.timed, failure)}; but {'; '.join(doubts)}"
    return Memory("unknown", None, "", _broken(one.timed, failure), reason, fixes)


def _broken(timed: Timed, failure: Failure) -> str:
    return f"{theorem(timed)}, condition {failure.violation.condition}"
