"""The verdict on the memory of a query in application time, as `tamis explain` prints it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from tamis.analysis.conjuncts import analyse, time_distances
from tamis.bounded.application_time.decide import Failure, decided_translation, failures, theorem
from tamis.bounded.application_time.repairs import repairs
from tamis.bounded.application_time.static_relations import QueryInputs, query_inputs
from tamis.bounded.application_time.translate import Alternative, alternatives
from tamis.bounded.application_time.witness import Named, Proof, Witness, proof
from tamis.bounded.memory import EMPTY, Memory, no_number, not_proven, sentences, undeclared
from tamis.bounded.timeless import messages
from tamis.bounded.timeless.messages import caveat
from tamis.bounded.timeless.verdict import UsedStreams, proving_member, union
from tamis.declarations.streams import StreamDef
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.bound import reorder_buffer_terms, terms
from tamis.operators.application_time.partial_combinations import MOST_STREAMS
from tamis.operators.synopses.bound import Term
from tamis.query.model import (
    AlertDef,
    ApplicationTimeUnion,
    Catalog,
    DerivedDef,
    InApplicationTime,
    JoinByTime,
    Query,
    selects_of,
)

# The verdict on a bounded SELECT of a UNION, whose bound is counted over all SELECTs together.
_SOME = Memory("bounded", None, "", "", "")


def memory_verdict(query: InApplicationTime | JoinByTime, catalog: Catalog) -> Memory:
    """Decide a query in application time.

    Raises InputError if a static relation can't be read.
    """
    found = [_select(member, query_inputs(member, catalog)) for member in selects_of(query)]
    texts = [one if isinstance(one, Memory) else _SOME for one in found]
    if isinstance(query, ApplicationTimeUnion):
        failing = union(query, catalog, texts, _used(query, catalog))
        if failing is not None:
            return failing
    elif texts[0].verdict != "bounded":
        return texts[0]
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
    return _bounded(branches[0], summands, _missing_declarations(streams, branches))


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


def proof_of(query: InApplicationTime | JoinByTime, catalog: Catalog) -> Proof | None:
    """The proof that a query is unbounded; None if there is none."""
    if isinstance(query, ApplicationTimeUnion):
        place = proving_member(query, catalog, _used(query, catalog))
        return None if place is None else proof_of(query.members[place], catalog)
    known = query_inputs(query, catalog)
    found = alternatives(decided_translation(query, known), known)
    return proof([(one, failure) for one in found for failure in failures(one.timed)])


def _used(query: ApplicationTimeUnion, catalog: Catalog) -> UsedStreams:
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
        example = _example(timed, shown.witness)
        return Memory("unbounded", None, "", _broken(timed, failure), _reason(timed, failure), fixes, example)
    one, failure = failing[0]
    doubts = one.timed.query.caveats or (caveat(one.timed.query, failure.violation),)
    reason = not_proven(_reason(one.timed, failure), doubts)
    return Memory("unknown", None, "", _broken(one.timed, failure), reason, fixes)


def _broken(timed: TimedQuery, failure: Failure) -> str:
    return f"{theorem(timed)}, condition {failure.violation.condition}"


def open_ended(query: Query, catalog: Catalog) -> bool:
    """True for a join over event time in which the times of two tuples may be any distance apart. The join by
    time would keep all tuples forever.
    """
    if not isinstance(query, JoinByTime) or query.window is not None:
        return False
    if len(query.sources) < 2 or query.exists or query.absences:
        return False
    if not time_distances(query, catalog).unconnected():
        return False
    found = analyse(query, catalog)
    return not found.refused and found.contradiction is None


def decided(definition: AlertDef | DerivedDef, catalog: Catalog) -> Memory | None:
    """The verdict in application time on an open-ended join over event time; None for all other queries."""

    catalog = catalog.reading(definition)

    def decide() -> Memory | None:
        query = definition.query
        if not isinstance(query, JoinByTime) or not open_ended(query, catalog):
            return None
        return memory_verdict(query, catalog)

    found: Memory | None = catalog.results.get(_key(definition, catalog), "application time", decide)
    return found


def learn(definition: AlertDef | DerivedDef, catalog: Catalog, found: Memory | None) -> None:
    """Remember a verdict that another process has made."""
    catalog.results.put(_key(definition, catalog), "application time", found)


def known(definition: AlertDef | DerivedDef, catalog: Catalog) -> tuple[Memory | None] | None:
    """The remembered verdict, in a tuple; None if there is none yet."""
    return catalog.results.find(_key(definition, catalog), "application time")


def _key(definition: AlertDef | DerivedDef, catalog: Catalog) -> tuple[object, ...]:
    streams = catalog.reading(definition).streams
    return definition, *(streams.get(source.stream) for source in definition.query.sources)


def runs_in_time(definition: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """True if the query is evaluated in application time. This includes an open-ended join if application
    time bounds its memory.
    """
    if isinstance(definition.query, InApplicationTime):
        return True
    found = decided(definition, catalog)
    return found is not None and found.verdict == "bounded"


def _reason(timed: TimedQuery, failure: Failure) -> str:
    """The reason why a query needs unlimited memory."""
    query, part = timed.query, failure.part
    texts = messages.unbounded(query, timed.closure, failure.violation)
    if part is None:
        return texts
    kept = " and ".join(query.aliases[x] for x in part.members if x not in part.spans)
    to_come = [x for x in part.missing if timed.end(x) == math.inf]
    later = " or ".join(query.aliases[x] for x in to_come)
    return sentences(texts, f"a tuple of {later} may come any time after those of {kept}")


def _example(timed: TimedQuery, witness: Witness) -> str:
    """A witness as an example for users."""
    query = timed.query
    columns = [query.nodes[node - 1].column for node in witness.key]
    numbers = [[_value(timed, node, stored) for stored in witness.stored] for node in witness.key]
    texts = [messages.values(query, node, own) for node, own in zip(witness.key, numbers, strict=True)]
    shown = [", ".join(one) for one in zip(*texts, strict=True)]
    named = " and ".join(dict.fromkeys(stream for stream, _ in witness.stored[0]))
    later = " and ".join(dict.fromkeys(stream for stream, _ in witness.completions[0]))
    values = ", ".join(f"({one})" for one in shown)
    return (
        f"any number of tuples of {named}, one after the other, with ({', '.join(columns)}) = {values}, …:"
        f" later tuples of {later} give different rows for each subset of these"
    )


def _value(timed: TimedQuery, node: int, stored: Sequence[Named]) -> int:
    """The value of a node in what is stored at once."""
    stream, column = timed.query.streams[timed.query.occurrence(node)], timed.query.nodes[node - 1].column
    return next(one[column] for name, one in stored if name == stream and column in one)


def _missing_declarations(streams: Iterable[StreamDef], timed: Sequence[TimedQuery]) -> list[str]:
    """The declarations that are missing for a number."""
    with_time = [stream for stream in dict.fromkeys(streams) if stream.time is not None]
    found = [lack for stream in with_time if (lack := undeclared(stream))]
    for one in timed:
        for i in one.streams if any(one.end(i) != math.inf for i in one.streams) else ():
            if one.arrivals[i].time and one.closure.lower(one.arrivals[i].time) == -math.inf:
                found.append(
                    f"stream {one.query.streams[i]} has no CHECK that says when its event time begins"
                )
    return list(dict.fromkeys(found))
