"""The corrected conditions of schiff-2020's theorems against the decision by parts.

The conditions are stated over whole queries and tried on all derived LTO queries. Without DISTINCT both give
the same verdict; with DISTINCT the decision accepts all that the conditions accept.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.oracle.bounded.timed_queries import case
from tests.oracle.bounded.totally_ordered import violation_by_derivation
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.application_time.decide import failures
from tamis.difference_bounds import Closure
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.plan.conjunction import Conjunction, Difference


@pytest.mark.parametrize("times", also_long(50))
def test_the_decision_by_parts_is_that_of_the_corrected_theorems(times: int) -> None:
    r = random.Random(SEED)
    seen: Counter[object] = Counter()
    for number in range(cases(0.1) * times):
        one = case(r)
        if one is None or one.timed.statics:
            continue
        timed = one.timed
        if any(timed.end(i) != math.inf for i in timed.streams) or set(timed.query.projected) & timed.times:
            continue
        bounded = not failures(timed)
        said = _eliminating(timed) if timed.query.distinct else _preserving(timed)
        assert bounded == said or (timed.query.distinct and bounded), (SEED, number, one)
        seen[timed.query.distinct, said] += 1
    assert len(seen) == 4


def _preserving(timed: TimedQuery) -> bool:
    """Theorem 1: equality joins limited, no reference, what is shown without a limit is of what is last."""
    groups = _together(timed, math.inf)
    if len(set(groups)) == 1:
        return True
    query = timed.query
    for node in query.projected:
        own = query.occurrence(node)
        others = [i for i in timed.streams if groups[i] != groups[own]]
        if not timed.closure.bounded(node) and any(timed.lead(i, own) == math.inf for i in others):
            return False
    hidden = replace(timed, query=replace(query, projected=()))
    return violation_by_derivation(*_without_times(hidden, groups)) is None


def _eliminating(timed: TimedQuery) -> bool:
    """Theorem 2: what is shown and equality joins limited, one reference for each stream; of three streams at
    most, or where nothing compares times.
    """
    groups = _together(timed, 0)
    compared = any(timed.compared(i, j) for i, j in itertools.combinations(timed.streams, 2))
    if len(set(groups)) > 3 and compared:
        return False
    return violation_by_derivation(*_without_times(timed, groups)) is None


def _together(timed: TimedQuery, apart: float) -> list[int]:
    """Step 2: streams that are at most so far apart in time are one."""
    groups = list(range(len(timed.query.streams)))
    for i in timed.streams:
        for j in timed.streams:
            leads = (timed.lead(i, j), timed.lead(j, i))
            if i < j and max(leads) <= apart and max(leads) != math.inf:
                groups = [groups[j] if x == groups[i] else x for x in groups]
    return groups


def _without_times(timed: TimedQuery, groups: list[int]) -> tuple[Conjunction, Closure]:
    query = timed.query
    plain = [node for node in range(1, query.size) if node not in timed.times]
    number = {0: 0, **{node: place for place, node in enumerate(plain, 1)}}
    order = sorted(set(groups))
    found = Conjunction(
        tuple(f"S{group}" for group in order),
        tuple(f"s{group}" for group in order),
        tuple(
            replace(query.nodes[node - 1], occurrence=order.index(groups[query.occurrence(node)]))
            for node in plain
        ),
        tuple(
            Difference(number[one.left], number[one.right], one.bound)
            for one in query.differences
            if one.left in number and one.right in number
        ),
        tuple(number[node] for node in query.projected),
        query.distinct,
    )
    closure = found.closure()
    assert closure is not None
    return found, closure
