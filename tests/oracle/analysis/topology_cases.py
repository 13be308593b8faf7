"""Random cases of omission in a join, with the planner's or longer intervals, compared by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tests.oracle.analysis.random_joins import (
    DISTANCE,
    FREE,
    SPREAD,
    WEIGHED,
    Bools,
    Int64s,
    Join,
    least_span,
    missed,
    omit,
    random_join,
    value_of,
)

from tamis.analysis.topology import omission_interval
from tamis.omission import retained
from tamis.omission.columns import Sides

# Tuples a stream by the number of streams: so many that windows fill, so few that all combinations can be
# tried.
SIZES = {2: 9, 3: 7, 4: 5, 5: 4}
CASES = 6  # of each join


@dataclass(frozen=True)
class Case:
    """The outcome of a case. Columns are of shape (streams, tuples)."""

    join: Join
    intervals: list[int]
    times: Int64s
    values: Int64s
    keep: Bools
    alarms: int
    missed: int

    @property
    def omitted(self) -> int:
        """Tuples of all streams that were dropped."""
        return int((~self.keep).sum())


def everything_omits(random: np.random.Generator, count: int, longer: int) -> Iterator[Case]:
    """Random joins, all of whose streams omit by intervals that are `longer` ticks longer than planned:
    `count` cases, some of them of each join.
    """
    for _ in range(-(-count // CASES)):
        join = random_join(random)
        bounds = join.bounds
        planned = [omission_interval(name, join.names, bounds) for name in join.names]
        # No end to the span in which a stream joins: nothing is claimed of such a stream.
        intervals = [0 if span is None else max(span, 0) + longer for span in planned]
        for _ in range(CASES):
            yield _random_tuples(join, intervals, random)


def _random_tuples(join: Join, intervals: list[int], random: np.random.Generator) -> Case:
    """Half of the time what the product's kernel keeps, else some other set that it might have kept."""
    n = len(join.upper)
    shape = (n, SIZES[n])
    times = np.sort(random.integers(0, int(random.choice([6, 11, 16])), shape), axis=1)
    values = random.integers(0, int(random.choice([2, 4, 9])), shape)
    kind = int(random.choice([WEIGHED, DISTANCE, SPREAD]))
    signs = random.choice([-1, 1], n)
    some = values[np.arange(n), random.integers(0, shape[1], n)]
    level = value_of(kind, signs, some) - 1
    keep = np.ones(shape, np.bool_)
    kernel = random.random() < 0.5
    for i, interval in enumerate(intervals):
        above, below = kind != WEIGHED or signs[i] > 0, kind != WEIGHED or signs[i] < 0
        if kernel and interval > 0:
            sides: Sides = "both" if above and below else "above" if above else "below"
            keep[i] = retained(times[i], values[i], interval, sides=sides)
        else:
            keep[i] = omit(times[i], values[i], interval, above, below, random.permutation(shape[1]))
    reach = np.array(intervals)
    alarms, lost = missed(join.upper, times, values, keep, reach, kind, signs, level)
    return Case(join, intervals, times, values, keep, alarms, lost)


def one_tight_stream(join: Join, s: int, longer: int) -> Case | None:
    """The worst moment for stream `s`: it joins for as short as it can, has its alarming tuple there and a
    higher one just before and just behind. Of the others there is one tuple each, and only s omits.

    None where the join is never satisfied, or where the span in which s joins has no end.
    """
    least, where = least_span(join.upper, s)
    if least < 0 or least == FREE:
        return None
    n = len(join.upper)
    planned = omission_interval(join.names[s], join.names, join.bounds)
    assert planned is not None
    intervals = [0] * n
    intervals[s] = max(planned, 0) + longer
    times = np.repeat(where[:n, None], 3, axis=1)
    times[s] = [where[s] - 1, where[s], where[n] + 1]
    # Of the others only the first is real: the rest can't be part of an alarm.
    values = np.full((n, 3), -100)
    values[:, 0] = 1
    values[s] = [2, 1, 2]
    keep = np.ones((n, 3), np.bool_)
    keep[s] = retained(times[s], values[s], intervals[s], sides="above")
    signs, reach = np.ones(n, np.int64), np.array(intervals)
    alarms, lost = missed(join.upper, times, values, keep, reach, WEIGHED, signs, n - 1)
    return Case(join, intervals, times, values, keep, alarms, lost)
