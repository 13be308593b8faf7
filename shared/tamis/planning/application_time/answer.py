"""The verdict on the memory of a query in application time, as `tamis explain` prints it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.application_time.bound import terms
from tamis.bounded.application_time.decide import Failure, failures, theorem
from tamis.bounded.application_time.parts import MOST_STREAMS
from tamis.bounded.application_time.witness import tells_apart, witnesses
from tamis.bounded.bound import Term
from tamis.planning.application_time import words
from tamis.planning.application_time.buffer import buffered
from tamis.planning.application_time.ground import Ground, ground
from tamis.planning.application_time.repairs import repairs
from tamis.planning.application_time.timed import Alternative, alternatives, translated
from tamis.planning.bounds import EMPTY, Memory
from tamis.query.model import Catalog, Query

# 2^n plain joins run a witness: eight states show how it goes on.
_WITNESS = 3


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
    for one, failure in failing:
        if one.timed.query.caveats:
            continue
        for witness in witnesses(one.timed, failure, _relations(one), _WITNESS):
            if tells_apart(one.timed, witness):
                why = words.unbounded(one.timed, failure)
                shown = words.scenario(one.timed, witness)
                return Memory("unbounded", None, "", _broken(one.timed, failure), why, fixes, shown)
    one, failure = failing[0]
    doubts = one.timed.query.caveats or ("no example was found that would prove it",)
    reason = f"not proven: {words.unbounded(one.timed, failure)}; but {'; '.join(doubts)}"
    return Memory("unknown", None, "", _broken(one.timed, failure), reason, fixes)


def _broken(timed: Timed, failure: Failure) -> str:
    return f"{theorem(timed)}, condition {failure.violation.condition}"


def _relations(one: Alternative) -> Mapping[int, Sequence[Mapping[int, int]]]:
    """The different rows of static relations, without NULL."""
    found = {}
    for occurrence, rows in one.rows.items():
        whole = [
            {node: int(value) for node, values in rows.values.items() if (value := values[at]) is not None}
            for at in range(len(rows.places))
        ]
        found[occurrence] = list({tuple(row.items()): row for row in whole}.values())
    return found
