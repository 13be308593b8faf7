"""The memory bound of a query in application time: entries of parts as a formula, with rates as a number.

The evaluator needs tuples in order of event time. So a tuple of a stream S waits until the watermark of every
stream p has passed it. The watermark of p is at most `delay(p) + max_stall(p)` behind the present (see
`tamis.planning.join_bounds`), and the tuple is at most `max_ahead(S)` ahead of the present. The number of
waiting tuples follows from this span and from the declared rate. If S has no `max_ahead`, there is no number.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from tamis.declarations.streams import StreamDef
from tamis.difference_bounds import Bound
from tamis.durations import seconds
from tamis.operators.application_time.arrivals import Arrival, TimedQuery, rate_of
from tamis.operators.application_time.partial_combinations import Part, parts
from tamis.operators.synopses.bound import Factor, Term, factors
from tamis.operators.synopses.bucket_coordinates import Coordinate, cells, limit
from tamis.plan.conjunction import pinned, spread

Times = tuple[tuple[int, int], ...]  # own time node, offset


def terms(timed: TimedQuery) -> tuple[Term, ...]:
    """The summands: entries of parts, rows of static relations, and rows that DISTINCT remembers. A count is
    infinite if it depends on a declaration that is missing.
    """
    query = timed.query
    summands = [Term(query.aliases[i], (Factor(timed.arrivals[i].rows or 0, "rows"),)) for i in timed.statics]
    for part in parts(timed):
        name = " with ".join(query.aliases[i] for i in part.members)
        many = tuple(_many(timed, part))
        summands += [Term(name, (*many, *one)) for one in _unlimited(part)]
    if query.distinct:
        summands.append(Term(None, tuple(_given(timed))))
    return tuple(summands)


def _unlimited(part: Part) -> Iterator[tuple[Factor, ...]]:
    for cell in cells(part.query, part.closure, 0):
        yield factors(part.query, cell, part.query.needed)


def _many(timed: TimedQuery, part: Part) -> Iterator[Factor]:
    query = timed.query
    for occurrence, span in part.spans.items():
        yield Factor(
            timed.arrivals[occurrence].most_tuples(span), f"tuples of {query.aliases[occurrence]} {_in(span)}"
        )
    for occurrence, wait in part.waits.items():
        if wait > 0:
            count = timed.arrivals[occurrence].most_tuples(wait - 1)
            yield Factor(count + 1, f"tuples of {query.aliases[occurrence]} {_in(wait - 1)}, plus one older")
    yield from _limited(timed, part)
    for one, values in static_limits(timed, part):
        if not all(node in part.limited or query.occurrence(node) in part.spans for node, _ in one.terms):
            low, high = one.floor, one.cap
            count = _distinct(values, low, high) if one.sign == 1 else _distinct(values, -high, -low)
            yield Factor(count + 1, f"limits of {query.name(one.node)}")


def _distinct(values: tuple[int, ...], low: Bound, high: Bound) -> int:
    return max(0, bisect_right(values, high) - bisect_left(values, low))


def _in(span: Bound) -> str:
    if span == 0:
        return "at one time"
    return "until the end" if span == math.inf else f"within {seconds(int(span))}"


def _limited(timed: TimedQuery, part: Part) -> Iterator[Factor]:
    """Own nodes with few values that are not of hot tuples."""
    query = timed.query
    left = [node for node in part.limited if query.occurrence(node) not in part.spans]
    yield from _valued(timed, left)


def _valued(timed: TimedQuery, nodes: list[int]) -> Iterator[Factor]:
    """The number of values of nodes with few values. Nodes of a key are counted together, nodes at a fixed
    distance once.
    """
    query, closure = timed.query, timed.closure
    apart = pinned(query, closure)
    groups = set[int]()
    counted: list[int] = []
    for node in nodes:
        if any(closure.fixed(node, other) for other in counted):
            continue
        counted.append(node)
        if node in apart and all(not closure.fixed(node, other) for other in timed.values):
            number, group = next((i, g) for i, g in enumerate(query.key_limits) if apart[node] in g.nodes)
            wide = spread(closure, node, apart[node])
            if wide > 1:
                yield Factor(wide, f"values of {query.name(node)} for each key")
            if number not in groups:
                groups.add(number)
                yield Factor(group.keys, f"keys of {query.alias(node)}")
            continue
        count = _values(timed, node) + query.nodes[node - 1].null_values
        if count > 1:
            yield Factor(count, f"values of {query.name(node)}")


def _values(timed: TimedQuery, node: int) -> Bound:
    """The number of values of a node, without NULL."""
    fixed = [len(values) for other, values in timed.values.items() if timed.closure.fixed(node, other)]
    rows = timed.arrivals[timed.query.occurrence(node)].rows
    return min(timed.closure.values(node), *fixed, *([] if rows is None else [rows]), math.inf)


def _given(timed: TimedQuery) -> Iterator[Factor]:
    """The rows that DISTINCT remembers: the values of SELECT; where these are unlimited, the number of tuples
    of the finite stream.
    """
    query = timed.query
    apart = pinned(query, timed.closure)
    left = list(query.projected)
    for occurrence in timed.streams:
        own = [node for node in left if query.occurrence(node) == occurrence]
        if any(node not in apart and _values(timed, node) == math.inf for node in own):
            left = [node for node in left if node not in own]
            arrival, end = timed.arrivals[occurrence], timed.end(occurrence)
            count = arrival.most_tuples(end - timed.closure.lower(arrival.time))
            yield Factor(count, f"tuples of {query.aliases[occurrence]} until its end")
    yield from _valued(timed, left)


def reorder_buffer_terms(streams: Iterable[StreamDef]) -> tuple[Term, ...]:
    """A summand of the bound for each stream with event time."""
    timed = [stream for stream in streams if stream.time is not None]
    wait = max((stream.delay + stream.max_stall for stream in timed), default=0)
    summands = []
    for stream in timed:
        if stream.max_ahead is None:
            count, within = math.inf, f"{seconds(wait)} + max_ahead({stream.name})"
        else:
            span = wait + stream.max_ahead
            count, within = Arrival(1, rate=rate_of(stream)).most_tuples(span), seconds(span)
        summands.append(
            Term(f"{stream.name} that wait for watermarks", (Factor(count, f"tuples within {within}"),))
        )
    return tuple(summands)


def static_limits(timed: TimedQuery, part: Part) -> Iterator[tuple[Coordinate, tuple[int, ...]]]:
    """The limits that own attributes set for attributes of static relations, with the values of those
    attributes.

    All limits between two neighbouring values are equal.
    """
    own = _plain(timed, part)
    for node, values in timed.values.items():
        for sign in (1, -1):
            one = limit(timed.closure, own, node, sign)
            if one is not None:
                yield one, values


def limits_by_limited_nodes(timed: TimedQuery, part: Part) -> Iterator[Coordinate]:
    """The limits that own nodes with few values set for attributes of missing streams."""
    own = tuple(node for node in _plain(timed, part) if node not in part.unlimited)
    for occurrence in part.missing:
        for node in timed.query.own(occurrence):
            if node in timed.times:
                continue
            for sign in (1, -1):
                one = limit(timed.closure, own, node, sign)
                if one is not None:
                    yield one


def least_times(timed: TimedQuery, part: Part) -> tuple[tuple[int, Times], ...]:
    """For each missing stream whose tuple must be later than own tuples: the own time nodes, and by how much
    it must be later.
    """
    found = []
    for y in part.missing:
        waits = [(timed.arrivals[x].time, -timed.lead(x, y)) for x in part.members]
        later = tuple((time, int(wait)) for time, wait in waits if wait > 0)
        if later:
            found.append((y, later))
    return tuple(found)


def greatest_times(timed: TimedQuery, part: Part) -> tuple[tuple[int, Times], ...]:
    """For each missing stream whose tuple must come within some time after own tuples: the own time nodes,
    and that time.
    """
    found = []
    for y in part.missing:
        leads = [(timed.arrivals[x].time, timed.lead(y, x)) for x in part.members]
        within = tuple((time, int(lead)) for time, lead in leads if lead != math.inf)
        if within:
            found.append((y, within))
    return tuple(found)


def _plain(timed: TimedQuery, part: Part) -> tuple[int, ...]:
    own = [node for x in part.members for node in timed.query.own(x)]
    return tuple(node for node in own if node not in timed.times)
