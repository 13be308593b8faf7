"""The verdict on a query in application time: one criterion in place of theorems 1 and 2 of schiff-2020.

A query is bounded if each of its parts is bounded (see `partial_combinations`). A part is treated as a single
stream that joins the missing streams. It is bounded if its unlimited attributes satisfy the conditions of
theorem 5.6 of arasu-2004, or of theorem 5.10 if the query has DISTINCT (see `conjunctive.decide`). With
DISTINCT, all attributes of SELECT must also have a limited number of values, because their rows are
remembered. The criterion is sufficient, because `synopses` keeps nothing else.

Theorem 1 (without DISTINCT) has errors; this criterion replaces it. It demands that attributes in equality
joins are limited, that no comparison between streams needs memory, and that the attributes of SELECT are
limited except those of the stream that comes strictly last. It also covers finite streams and offsets.

Theorem 2 (with DISTINCT) accepts too much. It is right for queries over at most three streams, and for
queries in which no times, or no attributes, are compared. There, this criterion accepts what theorem 2
accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tamis.bounded.application_time.static_relations import QueryInputs
from tamis.bounded.application_time.translate import alternatives, translated
from tamis.bounded.timeless.translate import Translation
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.partial_combinations import MOST_STREAMS, Part, failing, parts
from tamis.operators.synopses.decide import Reference, Violation
from tamis.plan.conjunction import pinned
from tamis.query.model import Query

PRESERVING = "theorem 1 of schiff-2020, corrected"
ELIMINATING = "theorem 2 of schiff-2020, corrected"


@dataclass(frozen=True)
class Failure:
    """A condition that fails. Its nodes are those of the whole query. `part` is None if the reason is the
    unlimited number of rows that DISTINCT remembers.
    """

    violation: Violation
    part: Part | None


def theorem(timed: TimedQuery) -> str:
    """The theorem that decides a query."""
    return ELIMINATING if timed.query.distinct else PRESERVING


def failures(timed: TimedQuery) -> tuple[Failure, ...]:
    """The conditions that fail, those of smaller parts first; none if the query is bounded."""
    found = []
    if timed.query.distinct:
        for node in timed.query.projected:
            if not settled(timed, node):
                found.append(Failure(Violation("C1", timed.query.occurrence(node), node), None))
    for part in parts(timed):
        broken = failing(part)
        if broken is not None:
            found.append(Failure(_whole(timed, part, broken), part))
    return tuple(found)


def decided_translation(query: Query, inputs: QueryInputs) -> Translation:
    """The translation by which a query is decided and evaluated: without CHECKs that are more than limits of
    columns, unless only these make the query bounded.
    """
    plain = translated(query, inputs)
    if len(query.sources) > MOST_STREAMS or not _fails(plain, inputs):
        return plain
    checked = translated(query, inputs, checks=True)
    return plain if _fails(checked, inputs) else checked


def _fails(translation: Translation, inputs: QueryInputs) -> bool:
    return any(failures(one.timed) for one in alternatives(translation, inputs))


def settled(timed: TimedQuery, node: int) -> bool:
    """True if a node has a limited number of values."""
    occurrence = timed.query.occurrence(node)
    return (
        timed.closure.bounded(node)
        or timed.arrivals[occurrence].rows is not None
        or timed.end(occurrence) < float("inf")
        or node in pinned(timed.query, timed.closure)
        or any(timed.closure.fixed(node, other) for other in timed.values)
    )


def _whole(timed: TimedQuery, part: Part, broken: Violation) -> Violation:
    """A violation of a part in nodes of the whole query."""
    nodes = part.nodes
    references = tuple(Reference(nodes[r.tail], nodes[r.head], r.side) for r in broken.references)
    named = (
        [nodes[broken.node]] if broken.node is not None else [n for r in references for n in (r.tail, r.head)]
    )
    inner = next(node for node in named if node in part.unlimited)
    return replace(
        broken,
        occurrence=timed.query.occurrence(inner),
        node=None if broken.node is None else nodes[broken.node],
        references=references,
    )
