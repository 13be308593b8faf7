"""Parts: the partial combinations of tuples that are kept until the missing tuples can come.

Tuples are processed in order of time, so a combination grows tuple by tuple. The conditions on event times
decide which occurrences may already have a tuple while others are still missing. Such a set of occurrences is
a *down-set* of the order of event times: all its tuples may come before the tuples of the other occurrences.

If the times of two occurrences aren't compared, directly or through other occurrences, their tuples join
independently. So a down-set is divided into connected *parts*. Each part is kept separately. A partial
combination of a part is treated like one tuple that has the attributes of all its occurrences. Static
relations are there from the start and belong to no part.

An occurrence of a part has a *span* if a missing tuple must come within a limited time after its tuple. Then
only the tuples of that span are kept.

Of the other occurrences, only those values are kept on which a later tuple can depend (arasu-2004, section
7). This is decided on a small query, `query`: its occurrence 0 has the unlimited attributes of the part, and
its occurrence 1 has those of the missing streams. The event times of these tuples matter only for a time
(`waits`), until every missing tuple comes late enough. During that time, tuples with different times are kept
apart (the synopsis of the current time step in the paper).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from tamis.difference_bounds import Bound, Closure
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.synopses.decide import Violation, reach, reference_violation
from tamis.plan.conjunction import Conjunction, pinned

# A query may join so many streams in application time: it has up to 2^n parts.
MOST_STREAMS = 8


@dataclass(frozen=True)
class Part:
    """One kind of partial combination. Nodes are those of the whole query, except in `query` and `closure`,
    whose node k is `nodes[k]` of the whole query (0 is 0).

    `spans`: the occurrences that have a span, with its length. `waits`: for the other occurrences, how long
    their times matter. `missing`: the streams outside the part. If their times are compared with the part,
    their tuples are still to come, and none can come after `end`.

    `limited`: own nodes whose values are kept as they are, because they are few: nodes of occurrences with a
    span, nodes of keys, and nodes that equal a node of a static relation. `needed`: the limited nodes that
    SELECT shows, or that are used by a condition that isn't a difference. `unlimited`: all other own nodes.
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
    groups = []
    while left:
        group = {left.pop(0)}
        grown = True
        while grown:
            near = {y for y in left for x in group if timed.compared(x, y)}
            grown = bool(near)
            group |= near
            left = [y for y in left if y not in near]
        groups.append(tuple(sorted(group)))
    return tuple(groups)


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
    """The last time at which a tuple can come for which the part waits."""
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
