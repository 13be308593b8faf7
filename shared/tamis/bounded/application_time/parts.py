"""Which partial combinations of tuples are kept: the down-sets of the time order, cut in connected parts.

Tuples are taken in order of time. A combination grows tuple by tuple, so what has come of it is a set of
occurrences whose tuples may all precede those of the others: a down-set of the order that the comparisons
of event times imply, offsets included. Occurrences whose times aren't compared, directly or by way of
others, join independently: so a down-set is cut where nothing compares times, and each connected *part* is
kept by itself, as one tuple of a stream that has all its attributes. Static relations are there from the
start and in no part.

In a part, an occurrence is *hot* where a tuple that is still missing must come within some span of it: then
there are only as many of its tuples as come in that span. Of the others, the *cold* ones, only what a later
tuple can ask is kept (arasu-2004, section 7): `query` has the cold attributes of the part as occurrence 0
and those of the missing streams as occurrence 1. Their time no longer matters once all that may come is
later than what they ask: until then (`warm`) they are told apart by it, which is the paper's synopsis of
this time step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.closure import Bound, Closure
from tamis.bounded.decide import Violation, referred
from tamis.bounded.keyed import pinned
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.references import reach

# As many streams may a query join in application time: it has up to 2^n parts.
MOST_STREAMS = 8


@dataclass(frozen=True)
class Part:
    """One kind of partial combination. Nodes are those of the whole query but in `query` and `closure`, whose
    node k is `nodes[k]` of the whole query (0 is 0).

    `hot`: the spans of hot occurrences; `warm`: how long the times of cold ones matter; `missing`: the
    other streams, of which those whose times are compared are still to come; after `end` none can. `few`
    are own nodes with few values, of hot tuples, of keys, and those that equal a static relation's: they
    are kept as they are; `needed` of them are shown, or asked by a condition that is no difference.
    """

    members: tuple[int, ...]
    missing: tuple[int, ...]
    end: Bound
    hot: Mapping[int, Bound]
    warm: Mapping[int, Bound]
    few: tuple[int, ...]
    cold: tuple[int, ...]
    needed: tuple[int, ...]
    query: Conjunction
    closure: Closure
    nodes: tuple[int, ...]


def parts(timed: Timed) -> tuple[Part, ...]:
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
                # Where a stream ends, what waits for it, or is made from it, is finite in any case.
                ends = failing(part) is not None
                found.append(_part(timed, members, missing, True) if ends else part)
    return tuple(found)


def failing(part: Part) -> Violation | None:
    """The condition by which a part needs more than any number of entries, in its own nodes."""
    for node in part.query.needed:
        if not part.closure.bounded(node):
            return Violation("C1", 0, node)
    return referred(part.query, part.closure, reach(part.closure), 0)


def components(timed: Timed, occurrences: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Occurrences cut where no comparison of times holds them together."""
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


def _part(timed: Timed, members: tuple[int, ...], missing: tuple[int, ...], ends: bool) -> Part:
    query, closure = timed.query, timed.closure
    end = _end(timed, members, missing)
    hot: dict[int, Bound] = {}
    warm: dict[int, Bound] = {}
    for x in members:
        span = _span(timed, x, missing, min(end, timed.end(x)) if ends else math.inf)
        if span is None:
            waits = [-timed.lead(x, y) for y in missing if timed.lead(x, y) < 0]
            warm[x] = max(waits, default=0)
        else:
            hot[x] = span
    own = [node for x in members for node in query.own(x)]
    apart = pinned(query, closure)
    few = tuple(
        node
        for node in own
        if node not in timed.times
        and (
            query.occurrence(node) in hot
            or node in apart
            or any(closure.fixed(node, other) for other in timed.values)
        )
    )
    tied = {node for node in own for other in few if closure.fixed(node, other)}
    told = timed.told
    needed = tuple(node for node in own if node in told)
    # A time that is shown is an attribute like others, unless it is that of a hot tuple.
    shown = [node for node in needed if node in timed.times and query.occurrence(node) not in hot]
    plain = [node for node in own if node not in timed.times and node not in tied and node not in few]
    cold = tuple((*plain, *shown))
    outer = tuple(node for y in missing for node in query.own(y) if node not in timed.times)
    nodes = (0, *cold, *outer)
    return Part(
        members,
        missing,
        end,
        hot,
        warm,
        few,
        cold,
        tuple(node for node in needed if node not in cold),
        _collapsed(query, nodes, len(cold), [node for node in needed if node in cold]),
        Closure([[closure.between(a, b) for b in nodes] for a in nodes]),
        nodes,
    )


def _end(timed: Timed, members: tuple[int, ...], missing: tuple[int, ...]) -> Bound:
    """The last time at which a tuple can come that a part waits for."""
    needed = [timed.end(y) for y in missing if any(timed.compared(x, y) for x in members)]
    return min([max(timed.end(y) for y in missing), *needed])


def _span(timed: Timed, occurrence: int, missing: tuple[int, ...], end: Bound) -> Bound | None:
    """In what span of time all tuples of an occurrence lie that still wait, none of them after `end`; None
    where it has no limit.
    """
    time = timed.arrivals[occurrence].time
    if not time:
        return None
    spans = [timed.lead(y, occurrence) for y in missing]
    finite = [one for one in spans if one != math.inf]
    if end != math.inf:
        finite.append(end - timed.closure.lower(time))
    return min(finite, default=None)


def _collapsed(query: Conjunction, nodes: tuple[int, ...], cold: int, needed: list[int]) -> Conjunction:
    number = {node: place for place, node in enumerate(nodes)}
    return Conjunction(
        ("the part", "the rest"),
        ("the part", "the rest"),
        tuple(
            replace(query.nodes[node - 1], occurrence=int(place >= cold))
            for place, node in enumerate(nodes[1:])
        ),
        (),
        tuple(number[node] for node in needed),
        query.distinct,
    )
