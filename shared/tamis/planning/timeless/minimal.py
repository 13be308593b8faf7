"""The alternatives of a query that can have rows, without occurrences that others stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.bounded.closure import Closure
from tamis.bounded.minimise import covered, without
from tamis.bounded.normal_form import Conjunction
from tamis.planning.timeless.translate import Branch, Translation


@dataclass(frozen=True)
class Minimal:
    """An alternative. `stands` names, for each source that was taken out, the one whose tuple is in its
    place.
    """

    conjunction: Conjunction
    closure: Closure
    stands: Mapping[str, str]
    branch: Branch


def minimal(translation: Translation) -> Iterator[Minimal]:
    """Every alternative that doesn't contradict itself."""
    for branch in translation.branches:
        query = branch.conjunction
        closure: Closure | None = branch.closure
        stands: dict[str, str] = {}
        while closure is not None:
            pair = covered(query, closure) if _alike(translation, query) else None
            if pair is None:
                yield Minimal(doubted(translation, query), closure, stands, branch)
                break
            gone, kept = (query.aliases[i] for i in pair)
            stands = {alias: kept if to == gone else to for alias, to in stands.items()} | {gone: kept}
            query, _ = without(query, closure, *pair)
            closure = query.closure()


def doubted(translation: Translation, query: Conjunction) -> Conjunction:
    """An alternative, with a caveat where tuples of an example for it may also join by another one: two
    occurrences of a stream can't be filled apart.
    """
    if not query.self_joined or not (query.ranges or len(translation.branches) > 1):
        return query
    return replace(query, caveats=(*query.caveats, "a stream is joined with itself, by several alternatives"))


def _alike(translation: Translation, query: Conjunction) -> bool:
    """Is all that the query says of its streams in the differences?"""
    return query.self_joined and not query.caveats and not translation.joins
