"""Limits that the tuples of a part set for static relations and for the times of missing streams."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tamis.bounded.application_time.arrivals import TimedQuery
from tamis.bounded.application_time.partial_combinations import Part
from tamis.bounded.conjunctive.bucket_coordinates import Coordinate, limit

Times = tuple[tuple[int, int], ...]  # own time node, offset


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
