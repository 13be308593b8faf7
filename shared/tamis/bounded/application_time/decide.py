"""The verdict on a query in application time: one criterion for theorems 1 and 2 of schiff-2020.

A query is bounded if every part is (see `parts`): the unlimited attributes of the part satisfy the conditions
of theorem 5.6 of arasu-2004, or 5.10 with DISTINCT, towards the missing streams, as if the part were one
stream; and with DISTINCT all attributes of SELECT have few values. That is sufficient, since `synopses` keeps
no more. Without DISTINCT it is the criterion that replaces theorem 1 (equality joins limited, no reference,
SELECT limited except for the stream that is strictly last), with finite streams and offsets. With DISTINCT it
covers what theorem 2 rightly accepts: with three streams, or where no times, or no attributes, are compared,
a part has no two references that C3 excludes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.application_time.partial_combinations import Part, failing, parts
from tamis.bounded.conjunctive.decide import Reference, Violation
from tamis.bounded.conjunctive.key_limits import pinned

PRESERVING = "theorem 1 of schiff-2020, corrected"
ELIMINATING = "theorem 2 of schiff-2020, corrected"


@dataclass(frozen=True)
class Failure:
    """A condition that fails, in nodes of the whole query. `part` is None if the rows that DISTINCT remembers
    are unlimited.
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
