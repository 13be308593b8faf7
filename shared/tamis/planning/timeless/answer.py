"""The verdict on the memory of a query over streams without time, as `tamis explain` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tamis.bounded.bound import terms
from tamis.bounded.closure import Closure
from tamis.bounded.decide import Violation, theorem, violation, violations
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.witness import Witness, construct, keeps_keys, tells_apart
from tamis.planning.bounds import EMPTY, Memory
from tamis.planning.timeless import words
from tamis.planning.timeless.grouped import parts
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.repairs import Branch, repairs
from tamis.planning.timeless.translate import Translation, translate
from tamis.query.model import Catalog, Query

# 2^n plain joins run a witness: eight states show how it goes on.
_WITNESS = 3
# As many combinations as one of these joins may try: only self-joins of more than five get there.
_LARGEST_JOIN = 2000


def answer(query: Query, catalog: Catalog) -> Memory:
    """Decide a query over streams without time."""
    if query.members:
        return _union([answer(member, catalog) for member in query.members])
    if query.grouping is not None:
        aggregates = query.grouping.aggregates
        asked = [
            (part.translation, [(q, closure) for _, q, closure in part.alternatives(aggregates)])
            for part in parts(query, query.grouping, catalog)
        ]
    else:
        translation = translate(query, catalog)
        asked = [(translation, [(one.conjunction, one.closure) for one in minimal(translation)])]
    if any(one.contradiction is not None or not branches for one, branches in asked):
        what = asked[0][0].contradiction or "the conditions contradict each other"
        return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")
    branches = [branch for _, own in asked for branch in own]
    failing = [(*one, found) for one in branches if (found := violation(*one)) is not None]
    if failing:
        fixes = _repairs([one for one, _ in asked], branches)
        return _refused(failing, fixes)
    return _bounded(branches)


def _union(found: Sequence[Memory]) -> Memory:
    """A union is bounded where every SELECT is; one that isn't proves nothing, since others give rows too."""
    for place, one in enumerate(found, 1):
        if one.verdict != "bounded":
            reason = f"not proven: SELECT {place} of the UNION by itself is {one.verdict}: {one.reason}"
            return Memory("unknown", None, "", one.theorem, reason)
    total = sum(one.bound or 0 for one in found)
    formula = " + ".join(one.formula for one in found)
    return Memory("bounded", total, formula, found[0].theorem, f"each SELECT is: {found[0].reason}")


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


def _refused(failing: Sequence[tuple[Conjunction, Closure, Violation]], fixes: tuple[str, ...]) -> Memory:
    for query, closure, found in failing:
        witness = _witness(query, closure, found)
        if witness is not None and not query.caveats:
            broken = f"{theorem(query)}, condition {found.condition}"
            why = words.unbounded(query, closure, found)
            return Memory("unbounded", None, "", broken, why, fixes, words.scenario(query, witness))
    query, closure, found = failing[0]
    doubts = query.caveats or ("no example was found that would prove it",)
    reason = f"not proven: {words.unbounded(query, closure, found)}; but {'; '.join(doubts)}"
    return Memory("unknown", None, "", f"{theorem(query)}, condition {found.condition}", reason, fixes)


def _witness(query: Conjunction, closure: Closure, found: Violation) -> Witness | None:
    """Inputs that show what a condition says, with one value of each key of the stream that is filled."""
    stream = query.streams[found.occurrence]
    keys = [n for one in query.keyed for n in one.nodes if query.streams[query.occurrence(n)] == stream]
    asked, fixed, failing = replace(query, keyed=()), closure.copy(), found
    if keys:
        values = closure.solution()
        if not all(fixed.fix(node, values[node]) for node in keys):
            return None
        again = [one for one in violations(asked, fixed) if one.occurrence == found.occurrence]
        if not again:
            return None
        failing = again[0]
    witness = construct(asked, fixed, failing, _WITNESS)
    if witness is None or (_WITNESS + 1) ** _most_alike(query) > _LARGEST_JOIN:
        return None
    return witness if keeps_keys(query, witness) and tells_apart(asked, witness) else None


def _most_alike(query: Conjunction) -> int:
    """How often the stream occurs that occurs most often."""
    return max(Counter(query.streams).values())


def _repairs(translations: Sequence[Translation], branches: Sequence[Branch]) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(column for one in translations for column in one.columns))
    occurring = {one.alias for one in columns}
    if any(not occurring <= set(query.aliases) for query, _ in branches):
        return ()  # with one more condition, no occurrence may stand for another one any longer
    return repairs([(replace(query, caveats=()), closure) for query, closure in branches], columns)
