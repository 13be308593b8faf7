"""Alternatives of a query that can have rows. Occurrences that others cover are removed (see `minimise`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tamis.bounded.conjunctive.decide import violations
from tamis.bounded.conjunctive.difference_bounds import Closure
from tamis.bounded.conjunctive.minimise import covered, without
from tamis.bounded.conjunctive.normal_form import Conjunction
from tamis.bounded.timeless.translate import Branch, Translation, translate
from tamis.query.model import Catalog, Query


@dataclass(frozen=True)
class Minimal:
    """An alternative. `representatives` names, for each source that was removed, the source whose tuple
    stands for its own.
    """

    conjunction: Conjunction
    closure: Closure
    representatives: Mapping[str, str]
    branch: Branch


def decided_translation(query: Query, catalog: Catalog) -> Translation:
    """The translation by which a query without aggregates is decided and evaluated: without CHECKs that are
    more than limits of columns, unless only these make the query bounded. Each alternative of a CHECK is
    evaluated on its own.
    """
    plain = translate(query, catalog)
    if not _fails(plain):
        return plain
    checked = translate(query, catalog, checks=True)
    return plain if _fails(checked) else checked


def _fails(translation: Translation) -> bool:
    return any(True for one in minimal(translation) for _ in violations(one.conjunction, one.closure))


def minimal(translation: Translation) -> Iterator[Minimal]:
    """Every alternative that doesn't contradict itself."""
    for branch in translation.branches:
        query = branch.conjunction
        closure: Closure | None = branch.closure
        representatives: dict[str, str] = {}
        while closure is not None:
            pair = covered(query, closure) if _alike(translation, query) else None
            if pair is None:
                yield Minimal(with_self_join_caveat(translation, query), closure, representatives, branch)
                break
            gone, kept = (query.aliases[i] for i in pair)
            representatives = {alias: kept if to == gone else to for alias, to in representatives.items()} | {
                gone: kept
            }
            query, _ = without(query, closure, *pair)
            closure = query.closure()


def with_self_join_caveat(translation: Translation, query: Conjunction) -> Conjunction:
    """An alternative, with a caveat if an example's tuples may also join by another alternative: two
    occurrences of one stream can't have different tuples.
    """
    if not query.self_joined or not (query.ranges or len(translation.branches) > 1):
        return query
    caveat = "a stream is joined with itself, and Tamis decides the alternatives of the condition one by one"
    return replace(query, caveats=(*query.caveats, caveat))


def _alike(translation: Translation, query: Conjunction) -> bool:
    """True if the differences alone describe the query, which joins a stream with itself."""
    return query.self_joined and not query.caveats and not translation.joins
