"""Parts: the partial combinations of tuples that are kept until the missing tuples can come.

Tuples are taken in order of time, so a combination grows tuple by tuple. The occurrences that it has so far
form a down-set of the order that the comparisons of event times imply, offsets included: their tuples may all
precede those of the other occurrences. Occurrences whose times aren't compared, directly or by way of others,
join independently. So a down-set is split where no times are compared, and each connected *part* is kept
separately, as one tuple of a stream with all its attributes. Static relations are there from the start and
belong to no part.

In a part, an occurrence has a *span* if some missing tuple must come within that time: then only the tuples
of that span matter. Of the other occurrences, only what a later tuple can depend on is kept (arasu-2004,
section 7): `query` has the unlimited attributes of the part as occurrence 0 and those of the missing streams
as occurrence 1. Their own times no longer matter once every tuple that may still come is late enough; until
then (`waits`) they are distinguished by time, which is the paper's synopsis of this time step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.conjunctive.decide import Violation, reference_violation
from tamis.bounded.conjunctive.difference_bounds import Bound, Closure
from tamis.bounded.conjunctive.key_limits import pinned
from tamis.bounded.conjunctive.max_min_references import reach
from tamis.bounded.conjunctive.normal_form import Conjunction

# A query may join so many streams in application time: it has up to 2^n parts.
MOST_STREAMS = 8


@dataclass(frozen=True)
class Part:
    """One kind of partial combination. Nodes are those of the whole query, except in `query` and `closure`,
    whose node k is `nodes[k]` of the whole query (0 is 0).

    `spans`: the occurrences of which only the tuples of a time span matter, with that span. `waits`: for the
    other occurrences, how long their times matter. `missing`: the other streams; those whose times are
    compared are still to come, and after `end` none can come. `limited`: own nodes with few values, which are
    kept as they are: those of occurrences with a span, of keys, and those that equal a node of a static
    relation. `needed` of them are shown, or used by a condition that is no difference. `unlimited`: all other
    own nodes.
    """

    members: tuple[int, ...]
    missing: tuple[int, ...]
    end: Bound
    spans: Mapping[int, Bound]
    waits: Mapping[int, Bound]
    limited: tuple[int, ...]
    unlimited: tuple[int, ...]
    needed: tuple[int, ...]
    query: Conjunction
    closure: Closure
    nodes: tuple[int, ...]


def parts(timed: TimedQuery) -> tuple[Part, ...]:
    """All parts that may be kept for later tuples, smaller ones first."""
    streams = timed.streams
    found = []
    for count in range(1, len(streams)):
        for members in combinations(streams, count):
            missing = tuple(i for i in streams if i not in members)
            if len(components(timed, members)) == 1 and all(
                timed.lead(y, x) >= 0 for x in members for y in missing
            ):
                part = _part(timed, members, missing, False)
                # Where a stream ends, the parts that wait for it, or contain it, are finite in any case.
                ends = failing(part) is not None
                found.append(_part(timed, members, missing, True) if ends else part)
    return tuple(found)


def failing(part: Part) -> Violation | None:
    """The condition by which a part needs unlimited memory, in its own nodes; None if there is none."""
    for node in part.query.needed:
        if not part.closure.bounded(node):
            return Violation("C1", 0, node)
    return reference_violation(part.query, part.closure, reach(part.closure), 0)


def components(timed: TimedQuery, occurrences: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Occurrences grouped so that times are only compared within a group."""
    left = list(occurrences)
    found = []
    while left:
        group = {left.pop(0)}
        grown = True
        while grown:
            near = {y for y in left for x in group if timed.compared(x, y)}
            grown = bool(near)
            group |= near
            left = [y for y in left if y not in near]
        found.append(tuple(sorted(group)))
    return tuple(found)


def _part(timed: TimedQuery, members: tuple[int, ...], missing: tuple[int, ...], ends: bool) -> Part:
    query, closure = timed.query, timed.closure
    end = _end(timed, members, missing)
    spans: dict[int, Bound] = {}
    waits: dict[int, Bound] = {}
    for x in members:
        span = _span(timed, x, missing, min(end, timed.end(x)) if ends else math.inf)
        if span is None:
            later = [-timed.lead(x, y) for y in missing if timed.lead(x, y) < 0]
            waits[x] = max(later, default=0)
        else:
            spans[x] = span
    own = [node for x in members for node in query.own(x)]
    apart = pinned(query, closure)
    limited = tuple(
        node
        for node in own
        if node not in timed.times
        and (
            query.occurrence(node) in spans
            or node in apart
            or any(closure.fixed(node, other) for other in timed.values)
        )
    )
    tied = {node for node in own for other in limited if closure.fixed(node, other)}
    kept_nodes = timed.kept_nodes
    needed = tuple(node for node in own if node in kept_nodes)
    # A time that is shown counts as any other attribute, unless its occurrence has a span.
    shown = [node for node in needed if node in timed.times and query.occurrence(node) not in spans]
    plain = [node for node in own if node not in timed.times and node not in tied and node not in limited]
    unlimited = tuple((*plain, *shown))
    outer = tuple(node for y in missing for node in query.own(y) if node not in timed.times)
    nodes = (0, *unlimited, *outer)
    return Part(
        members,
        missing,
        end,
        spans,
        waits,
        limited,
        unlimited,
        tuple(node for node in needed if node not in unlimited),
        _collapsed(query, nodes, len(unlimited), [node for node in needed if node in unlimited]),
        Closure([[closure.between(a, b) for b in nodes] for a in nodes]),
        nodes,
    )


def _end(timed: TimedQuery, members: tuple[int, ...], missing: tuple[int, ...]) -> Bound:
    """The last time at which a tuple can come that the part waits for."""
    needed = [timed.end(y) for y in missing if any(timed.compared(x, y) for x in members)]
    return min([max(timed.end(y) for y in missing), *needed])


def _span(timed: TimedQuery, occurrence: int, missing: tuple[int, ...], end: Bound) -> Bound | None:
    """The span of time with all tuples of an occurrence that still wait, none of them after `end`; None if it
    is unlimited.
    """
    time = timed.arrivals[occurrence].time
    if not time:
        return None
    spans = [timed.lead(y, occurrence) for y in missing]
    finite = [one for one in spans if one != math.inf]
    if end != math.inf:
        finite.append(end - timed.closure.lower(time))
    return min(finite, default=None)


def _collapsed(query: Conjunction, nodes: tuple[int, ...], unlimited: int, needed: list[int]) -> Conjunction:
    number = {node: place for place, node in enumerate(nodes)}
    return Conjunction(
        ("the part", "the rest"),
        ("the part", "the rest"),
        tuple(
            replace(query.nodes[node - 1], occurrence=int(place >= unlimited))
            for place, node in enumerate(nodes[1:])
        ),
        (),
        tuple(number[node] for node in needed),
        query.distinct,
    )
