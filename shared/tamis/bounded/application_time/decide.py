"""Is a query in application time bounded? (schiff-2020, theorems 1 and 2, replaced by one criterion)

A query is bounded if every part (see `parts`) is: its cold attributes keep the conditions of theorem 5.6 of
arasu-2004, or 5.10 with DISTINCT, towards the streams that are missing, as if the part were one stream; and
with DISTINCT all attributes of SELECT have few values. That is sufficient, since `evaluate` keeps no more.
Without DISTINCT it is the criterion that replaces theorem 1 (equality joins limited, no reference, SELECT
limited but for what is strictly last), with finite streams and offsets; with DISTINCT it covers what
theorem 2 rightly accepts: of three streams, or where nothing compares times, or no attributes, a part sees
no two references that C3 excludes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.application_time.parts import Part, failing, parts
from tamis.bounded.decide import Reference, Violation
from tamis.bounded.keyed import pinned

PRESERVING = "schiff-2020, theorem 1, its conditions corrected"
ELIMINATING = "schiff-2020, theorem 2, its conditions corrected"


@dataclass(frozen=True)
class Failure:
    """A condition that fails, in nodes of the whole query; `part` is None where DISTINCT itself has too much
    to remember.
    """

    violation: Violation
    part: Part | None


def theorem(timed: Timed) -> str:
    """The theorem that decides a query."""
    return ELIMINATING if timed.query.distinct else PRESERVING


def failures(timed: Timed) -> tuple[Failure, ...]:
    """The conditions that fail, in smaller parts first; none where the query is bounded."""
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


def settled(timed: Timed, node: int) -> bool:
    """Has a node a limited number of values?"""
    occurrence = timed.query.occurrence(node)
    return (
        timed.closure.bounded(node)
        or timed.arrivals[occurrence].rows is not None
        or timed.end(occurrence) < float("inf")
        or node in pinned(timed.query, timed.closure)
        or any(timed.closure.fixed(node, other) for other in timed.values)
    )


def _whole(timed: Timed, part: Part, broken: Violation) -> Violation:
    """A violation of a part in nodes of the whole query."""
    nodes = part.nodes
    references = tuple(Reference(nodes[r.tail], nodes[r.head], r.side) for r in broken.references)
    named = (
        [nodes[broken.node]] if broken.node is not None else [n for r in references for n in (r.tail, r.head)]
    )
    inner = next(node for node in named if node in part.cold)
    return replace(
        broken,
        occurrence=timed.query.occurrence(inner),
        node=None if broken.node is None else nodes[broken.node],
        references=references,
    )
