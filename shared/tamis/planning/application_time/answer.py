"""The verdict on the memory of a query in application time, as `tamis explain` prints it."""

from __future__ import annotations

import itertools
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
from tamis.planning.timeless.unions import Used, proving, union
from tamis.planning.timeless.words import doubt
from tamis.query.model import Catalog, Query

# The verdict of a SELECT by itself, in a UNION whose bound is counted over all of them.
_SOME = Memory("bounded", None, "", "", "")


def answer(query: Query, catalog: Catalog) -> Memory:
    """Decide a query in application time.

    Raises InputError where a static relation can't be read.
    """
    found = [_select(member, ground(member, catalog)) for member in query.members or (query,)]
    said = [one if isinstance(one, Memory) else _SOME for one in found]
    if not query.members and said[0].verdict != "bounded":
        return said[0]
    failing = union(query, catalog, said, _used(query, catalog)) if query.members else None
    if failing is not None:
        return failing
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
    """The proof that a query is unbounded; None where there is none."""
    if query.members:
        place = proving(query, catalog, _used(query, catalog))
        return None if place is None else proof_of(query.members[place], catalog)
    known = ground(query, catalog)
    found = alternatives(translated(query, known), known)
    return proof([(one, failure) for one in found for failure in failures(one.timed)])


def _used(query: Query, catalog: Catalog) -> Used:
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
    doubts = one.timed.query.caveats or (doubt(one.timed.query, failure.violation),)
    reason = f"not proven: {words.unbounded(one.timed, failure)}; but {'; '.join(doubts)}"
    return Memory("unknown", None, "", _broken(one.timed, failure), reason, fixes)


def _broken(timed: Timed, failure: Failure) -> str:
    return f"{theorem(timed)}, condition {failure.violation.condition}"
