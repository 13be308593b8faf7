"""The verdict on the memory of a query over streams without time, as `tamis explain` prints it.

An unbounded SELECT does not always make the UNION unbounded, because the other SELECTs give rows, too. The
UNION is proved unbounded if all other SELECTs have no rows for the inputs of the example, because each of
them reads a stream that is empty in the example. Then the UNION has exactly the rows of the unbounded SELECT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tamis.bounded.examples.proof import WrittenProof, proof_as_written
from tamis.bounded.memory import EMPTY, Memory, not_proven
from tamis.bounded.representatives.aggregates import over_several
from tamis.bounded.representatives.proof import THEOREM, Represented, every_tuple, represented
from tamis.bounded.representatives.staircase import staircase
from tamis.bounded.timeless import messages
from tamis.bounded.timeless.aggregates import having_caveat, subqueries
from tamis.bounded.timeless.few_values import with_few_values
from tamis.bounded.timeless.minimised_alternatives import decided_translation, minimal
from tamis.bounded.timeless.proof import Proof, proof
from tamis.bounded.timeless.repairs import Branch, repairs
from tamis.bounded.timeless.translate import Translation, translate
from tamis.bounded.timeless.witness import tuples_of
from tamis.difference_bounds import Closure
from tamis.expressions.sql_text import to_sql
from tamis.operators.synopses.bound import terms
from tamis.operators.synopses.decide import Violation, theorem, violations
from tamis.plan.conjunction import Conjunction
from tamis.query.computed_columns import meaning, with_computed
from tamis.query.model import (
    Catalog,
    TimelessGroupBy,
    TimelessQuery,
    TimelessSelect,
    TimelessUnion,
    UnionQuery,
)

# So many failing conditions are tried in the query as it is written, which takes longer.
_MOST_RUN = 12

_Select = TimelessSelect | TimelessGroupBy

Failing = tuple[Conjunction, Closure, Violation]

UsedStreams = Callable[[int], frozenset[str] | None]


def memory_verdict(query: TimelessQuery, catalog: Catalog) -> Memory:
    """Decide a query over streams without time: by representatives, or by differences if these prove as small
    a bound.
    """
    if isinstance(query, TimelessUnion):
        return _union(query, catalog)
    known = _known(query, catalog)
    if known.verdict == "unbounded":
        return known
    found = represented(query, catalog)
    if isinstance(found, Represented):
        return known if _as_small(known, found) else found.memory()
    if known.verdict == "unknown" and (made := staircase(query, catalog)) is not None:
        return Memory("unbounded", None, "", THEOREM, made.reason, (), made.scenario())
    if known.verdict == "unknown" and found.reason:
        return replace(known, reason=f"not proven: {found.reason}")
    return known


def chosen_representatives(query: _Select, catalog: Catalog) -> Represented | None:
    """The representatives by which a query is evaluated; None if it is evaluated by differences."""
    found = represented(query, catalog)
    if isinstance(found, Represented):
        known = _known(query, catalog)
        return None if _as_small(known, found) else found
    if isinstance(query, TimelessGroupBy) and any(over_several(query)):
        return every_tuple(query)
    return None


def _known(query: _Select, catalog: Catalog) -> Memory:
    """The verdict by differences on the query as these evaluate it."""
    if isinstance(query, TimelessGroupBy):
        query = counted_form(query, catalog)
    return _by_differences(query, catalog)


def counted_form(query: TimelessGroupBy, catalog: Catalog) -> TimelessGroupBy:
    """The query as it is evaluated by differences. If it isn't bounded as it is, it gets columns for
    expressions of few values.
    """
    if any(over_several(query)) or not _failing(_branches(query, catalog)):
        return query
    wider = with_few_values(query, catalog)
    return query if _failing(_branches(wider, catalog)) else wider


def _as_small(known: Memory, found: Represented) -> bool:
    return known.bound is not None and known.bound <= found.bound


def _by_differences(query: _Select, catalog: Catalog) -> Memory:
    if isinstance(query, TimelessGroupBy) and (several := next(over_several(query), None)) is not None:
        reason = f"not proven: {to_sql(several)} is over several streams, and counts don't give its values"
        return Memory("unknown", None, "", THEOREM, reason)
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


def proof_of(query: TimelessQuery, catalog: Catalog) -> Proof | None:
    """The proof that a query over streams without time is unbounded; None if its verdict is another one."""
    if isinstance(query, TimelessUnion):
        place = proving_member(query, catalog, _used(query, catalog))
        if place is not None:
            return proof_of(query.members[place], catalog)
        written = _union_as_written(query, catalog)
        return None if written is None else written[1]
    if isinstance(query, TimelessGroupBy) and any(over_several(query)):
        return None
    failing = _failing(_branches(query, catalog))
    catalog = with_computed(catalog, query)
    proved = _proved(query, catalog, failing)
    return None if proved is None else proved[1]


def _translations(query: _Select, catalog: Catalog) -> list[tuple[Translation, list[Branch]]]:
    """The queries that a query with aggregates consists of, or the query itself, each with its
    alternatives.
    """
    if not isinstance(query, TimelessGroupBy):
        translation = decided_translation(query, catalog)
        return [(translation, [(one.conjunction, one.closure) for one in minimal(translation)])]
    aggregates = query.grouping.aggregates
    return [
        (subquery.translation, [(q, closure) for _, q, closure in subquery.alternatives(aggregates)])
        for subquery in subqueries(query, query.grouping, catalog)
    ]


def _branches(query: _Select, catalog: Catalog) -> list[Branch]:
    return [branch for _, own in _translations(query, with_computed(catalog, query)) for branch in own]


def _failing(branches: Sequence[Branch]) -> list[Failing]:
    return [(*one, found) for one in branches for found in violations(*one)]


def _proved(query: _Select, catalog: Catalog, failing: Sequence[Failing]) -> tuple[Failing, Proof] | None:
    told = [one for one in failing if having_caveat(query, catalog, one[0], one[2]) is None]
    for one in told:
        made = None if one[0].caveats else proof(*one)
        if made is not None:
            return one, made
    for one in [*told, *_with_checks(query, catalog)][:_MOST_RUN]:
        written = proof_as_written(query, query, catalog, _codes(query, catalog), one)
        if written is not None:
            return one, written
    return None


def _with_checks(query: _Select, catalog: Catalog) -> list[Failing]:
    """The conditions that fail in the alternatives of CHECKs."""
    if isinstance(query, TimelessGroupBy):
        return []
    translation = translate(query, catalog, checks=True)
    return _failing([(one.conjunction, one.closure) for one in minimal(translation)])


def _codes(query: _Select, catalog: Catalog) -> dict[str, int]:
    """The numbers of the constant texts of a query."""
    return {text: code for one, _ in _translations(query, catalog) for text, code in one.codes.items()}


def _union(query: TimelessUnion, catalog: Catalog) -> Memory:
    # Its members are evaluated by differences.
    found = [_by_differences(member, catalog) for member in query.members]
    failing = union(query, catalog, found, _used(query, catalog))
    if failing is not None and failing.verdict == "unknown":
        written = _union_as_written(query, catalog)
        if written is not None:
            place, proved = written
            alone = sum(one.verdict != "bounded" for one in found) == 1
            member = unbounded_member(found[place], place, alone=alone)
            why = messages.unbounded(proved.query, proved.closure, proved.failing)
            reason = f"SELECT {place + 1} of the UNION: {why}"
            return replace(member, verdict="unbounded", reason=reason, witness=_scenario(proved))
    if failing is not None:
        return failing
    total = sum(one.bound or 0 for one in found)
    formula = " + ".join(one.formula for one in found)
    return Memory("bounded", total, formula, found[0].theorem, f"each SELECT is: {found[0].reason}")


def _union_as_written(query: TimelessUnion, catalog: Catalog) -> tuple[int, WrittenProof] | None:
    """The number of a SELECT by which the whole UNION needs unlimited memory, and the proof."""
    for place, member in enumerate(query.members):
        failing = _failing(_branches(member, catalog))
        for one in failing[:_MOST_RUN]:
            made = proof_as_written(query, member, catalog, _codes(member, catalog), one)
            if made is not None:
                return place, made
    return None


def _used(query: TimelessUnion, catalog: Catalog) -> UsedStreams:
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


def _refused(query: _Select, catalog: Catalog, failing: Sequence[Failing], fixes: tuple[str, ...]) -> Memory:
    proved = _proved(query, catalog, failing)
    conjunction, closure, found = failing[0] if proved is None else proved[0]
    broken = f"{theorem(conjunction)}, condition {found.condition}"
    why = messages.unbounded(conjunction, closure, found)
    witness = None if proved is None else proved[1].witness()
    if witness is not None:
        assert proved is not None
        return Memory("unbounded", None, "", broken, why, fixes, _scenario(proved[1]))
    doubts = conjunction.caveats or (
        having_caveat(query, catalog, conjunction, found) or messages.caveat(conjunction, found),
    )
    return Memory("unknown", None, "", broken, not_proven(why, doubts), fixes)


def _scenario(found: Proof) -> str:
    witness = found.witness()
    assert witness is not None
    return messages.scenario(found.query, witness)


def _repairs(
    query: _Select, translations: Sequence[Translation], branches: Sequence[Branch]
) -> tuple[str, ...]:
    nodes = dict.fromkeys(column for one in translations for column in one.columns)
    # A condition on an expression is no limit of the column that is computed from it.
    columns = tuple(column for column in nodes if meaning(column, query) == column)
    occurring = {one.alias for one in columns}
    if any(not occurring <= set(one.aliases) for one, _ in branches):
        return ()  # with one more condition, no occurrence may stand for another one any longer
    return repairs([(replace(one, caveats=()), closure) for one, closure in branches], columns)


def union(query: UnionQuery, catalog: Catalog, found: Sequence[Memory], used: UsedStreams) -> Memory | None:
    """The verdict if one of the SELECTs, each with its own verdict in `found`, isn't bounded; None if all
    are.

    `used` gives the streams of the example by which a SELECT is unbounded.
    """
    failing = [place for place, one in enumerate(found) if one.verdict != "bounded"]
    if not failing:
        return None
    place = proving_member(query, catalog, used)
    if place is not None:
        return unbounded_member(found[place], place, alone=len(failing) == 1)
    (first, *_) = failing
    one = found[first]
    reason = (
        f"not proven: SELECT number {first + 1} of the UNION is {one.verdict} on its own, since {one.reason}"
    )
    return Memory("unknown", None, "", one.theorem, reason)


def proving_member(query: UnionQuery, catalog: Catalog, used: UsedStreams) -> int | None:
    """The SELECT whose example proves the UNION unbounded; None if there is none."""
    for place in range(len(query.members)):
        streams = used(place)
        if streams is not None and _alone(query, catalog, place, streams):
            return place
    return None


def _alone(query: UnionQuery, catalog: Catalog, place: int, streams: frozenset[str]) -> bool:
    others = [one for at, one in enumerate(query.members) if at != place]
    # A watched stream has a tuple for each tuple of its base.
    used = {stream.shown_name for name, stream in catalog.streams.items() if name in streams}
    left = {name for name, stream in catalog.streams.items() if stream.shown_name not in used}
    return all(any(source.stream in left for source in one.sources) for one in others)


def unbounded_member(one: Memory, place: int, *, alone: bool) -> Memory:
    """The verdict on a UNION that one of its SELECTs makes unbounded, from the SELECT's own. `alone`: all
    others are bounded.
    """
    where = f"SELECT {place + 1}"
    fixes = tuple(f"{fix} in {where}" for fix in one.repairs) if alone else ()
    return replace(one, reason=f"{where} of the UNION: {one.reason}", repairs=fixes)
