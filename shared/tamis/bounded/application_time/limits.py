"""What the tuples of a part ask of static relations, and of the times of the streams that are missing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tamis.bounded.application_time.arrivals import Timed
from tamis.bounded.application_time.parts import Part
from tamis.bounded.coordinates import Coordinate, limit

Times = tuple[tuple[int, int], ...]  # own time node, offset


def static_limits(timed: Timed, part: Part) -> Iterator[tuple[Coordinate, tuple[int, ...]]]:
    """The limits that own attributes set for attributes of static relations, with the values that these
    have: a limit between two of them is as good as the one nearer by.
    """
    own = _plain(timed, part)
    for node, values in timed.values.items():
        for sign in (1, -1):
            one = limit(timed.closure, own, node, sign)
            if one is not None:
                yield one, values


def few_limits(timed: Timed, part: Part) -> Iterator[Coordinate]:
    """The limits that the own nodes with few values set for attributes of missing streams."""
    own = tuple(node for node in _plain(timed, part) if node not in part.cold)
    for occurrence in part.missing:
        for node in timed.query.own(occurrence):
            if node in timed.times:
                continue
            for sign in (1, -1):
                one = limit(timed.closure, own, node, sign)
                if one is not None:
                    yield one


def least_times(timed: Timed, part: Part) -> tuple[tuple[int, Times], ...]:
    """For each missing stream whose tuple must be later than own ones: than which, and by how much."""
    found = []
    for y in part.missing:
        waits = [(timed.arrivals[x].time, -timed.lead(x, y)) for x in part.members]
        later = tuple((time, int(wait)) for time, wait in waits if wait > 0)
        if later:
            found.append((y, later))
    return tuple(found)


def greatest_times(timed: Timed, part: Part) -> tuple[tuple[int, Times], ...]:
    """For each missing stream whose tuple must come within some time of own ones: of which, and the time."""
    found = []
    for y in part.missing:
        leads = [(timed.arrivals[x].time, timed.lead(y, x)) for x in part.members]
        within = tuple((time, int(lead)) for time, lead in leads if lead != math.inf)
        if within:
            found.append((y, within))
    return tuple(found)


def _plain(timed: Timed, part: Part) -> tuple[int, ...]:
    own = [node for x in part.members for node in timed.query.own(x)]
    return tuple(node for node in own if node not in timed.times)
