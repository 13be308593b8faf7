"""The verdict on the memory of a query over streams without time, as `tamis explain` prints it."""

from __future__ import annotations

from dataclasses import replace

from tamis.bounded.bound import terms
from tamis.bounded.closure import Closure
from tamis.bounded.decide import Violation, theorem, violation
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.witness import Witness, construct, tells_apart
from tamis.planning.bounds import EMPTY, Memory
from tamis.planning.timeless import words
from tamis.planning.timeless.minimal import minimal
from tamis.planning.timeless.repairs import repairs
from tamis.planning.timeless.translate import Translation, translate
from tamis.query.model import Catalog, Query

# 2^n plain joins run a witness: eight states show how it goes on.
_WITNESS = 3


def answer(query: Query, catalog: Catalog) -> Memory:
    """Decide a query over streams without time."""
    translation = translate(query, catalog)
    branches = [(one.conjunction, one.closure) for one in minimal(translation)]
    if translation.contradiction is not None or not branches:
        what = translation.contradiction or "the conditions contradict each other"
        return Memory("bounded", 0, "0", EMPTY, f"warning: {what}, so the query never has a row")
    failing = [(*one, found) for one in branches if (found := violation(*one)) is not None]
    if failing:
        return _refused(translation, branches, failing)
    said = list(dict.fromkeys(term.text for one in branches for term in terms(*one)))
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


def _refused(
    translation: Translation,
    branches: list[tuple[Conjunction, Closure]],
    failing: list[tuple[Conjunction, Closure, Violation]],
) -> Memory:
    query, closure, found = failing[0]
    for query, closure, found in failing:
        witness = _witness(query, closure, found)
        if witness is not None and not _doubts(query):
            return Memory(
                "unbounded",
                None,
                "",
                f"{theorem(query)}, condition {found.condition}",
                words.unbounded(query, closure, found),
                _repairs(translation, branches),
                words.scenario(query, witness),
            )
    doubts = _doubts(query) or ["no example was found that would prove it"]
    reason = f"not proven: {words.unbounded(query, closure, found)}; but {'; '.join(doubts)}"
    return Memory(
        "unknown",
        None,
        "",
        f"{theorem(query)}, condition {found.condition}",
        reason,
        _repairs(translation, branches),
    )


def _witness(query: Conjunction, closure: Closure, found: Violation) -> Witness | None:
    witness = construct(query, closure, found, _WITNESS)
    return witness if witness is not None and tells_apart(query, witness) else None


def _doubts(query: Conjunction) -> list[str]:
    """Why a failing condition may prove nothing."""
    return list(query.caveats)


def _repairs(translation: Translation, branches: list[tuple[Conjunction, Closure]]) -> tuple[str, ...]:
    if any(len(query.nodes) != len(translation.columns) for query, _ in branches):
        return ()
    sure = [(replace(query, caveats=()), closure) for query, closure in branches]
    return repairs(sure, translation.columns)
