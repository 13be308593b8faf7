"""Bounded evaluators against the plain join, after every tuple.

The evaluator has given the rows of the plain join over the tuples so far, and has no more entries than the
bound. Without DISTINCT, batches in columns give the same rows in the same order.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.oracle.bounded.bounded_queries import query
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.difference_bounds import Closure
from tamis.operators.synopses.bound import entries
from tamis.operators.synopses.columns import Column
from tamis.operators.synopses.counting import CountingSynopses, OccurrenceRows
from tamis.operators.synopses.decide import violation
from tamis.operators.synopses.evaluator import Evaluator, Filter
from tamis.plan.conjunction import Conjunction, Difference, Unequal

Tuples = list[list[int]]
Event = tuple[int, int, list[int]]  # step, occurrence, values
Row = tuple[int, tuple[int, ...], int]  # step, projected values, how many


@pytest.mark.parametrize("times", also_long(28))
@pytest.mark.parametrize("offset", [0, 2])
def test_every_prefix_has_the_rows_of_the_plain_join(offset: int, times: int) -> None:
    r = random.Random(SEED + offset)
    productive = 0
    for asked, closure in itertools.islice(_bounded(r, offset), cases(0.0525) * times):
        bound = entries(asked, closure)
        assert bound < math.inf, (SEED, asked)
        productive += _play(r, asked, closure, int(bound))
    assert productive


def _bounded(r: random.Random, offset: int) -> Iterator[tuple[Conjunction, Closure]]:
    """Bounded queries that compare streams, a quarter of them with self-joins."""
    while True:
        asked = query(r, largest_offset=offset, self_joins=r.random() < 0.25, unequal=0.1)
        closure = asked.closure()
        cross = any(
            d.left and d.right and asked.occurrence(d.left) != asked.occurrence(d.right)
            for d in asked.differences
        )
        if cross and closure is not None and violation(asked, closure) is None:
            yield asked, closure


def _play(r: random.Random, asked: Conjunction, closure: Closure, bound: int) -> bool:
    """Random tuples of random streams; whether any row arose."""
    evaluator = Evaluator(asked, closure)
    filters = [Filter(asked, closure, i) for i in range(len(asked.streams))]
    events: list[Event] = []  # what passes all conditions on an occurrence
    in_order: list[Row] = []
    tuples: list[Tuples] = [[] for _ in asked.streams]
    given: Counter[tuple[int, ...]] = Counter()
    wanted: Counter[tuple[int, ...]] = Counter()
    spread = r.choice((3, 6, 12, 40))
    for step in range(r.choice((8, 16, 24))):
        stream = r.choice(asked.streams)
        occurrences = [i for i, name in enumerate(asked.streams) if name == stream]
        width = max(len(asked.own(i)) for i in occurrences)
        fresh = [r.randint(-spread, spread) for _ in range(width)]
        before = [list(some) for some in tuples]
        joins = []  # the occurrences at which the tuple fits by itself
        for i in occurrences:
            values = [0] * asked.size
            for node, value in zip(asked.own(i), fresh, strict=False):
                values[node] = value
            for payloads, count in evaluator.push(i, values, values):
                row = tuple(payloads[asked.occurrence(k)][k] for k in asked.projected)  # type: ignore[index]
                given[row] += count
                in_order.append((step, row, count))
            own = (0, *asked.own(i))
            alone = [one for one in asked.differences if {one.left, one.right} <= set(own)]
            if _hold(alone, [one for one in asked.unequal if one.left in own], values):
                tuples[i].append(values)
                joins.append(i)
            if filters[i].passes(values):
                events.append((step, i, values))
        kept = evaluator.entries + (len(given) if asked.distinct else 0)
        assert kept <= bound, (SEED, asked, kept, bound)
        for i in joins:  # the first that has the new tuple
            wanted += _plain(asked, [*before[:i], tuples[i][-1:], *tuples[i + 1 :]])
        same = set(given) == set(wanted) if asked.distinct else given == wanted
        assert same, (SEED, asked, step, given, wanted)
    if not asked.distinct and len(asked.streams) > 1 and r.random() < 0.25:
        counted = CountingSynopses(asked, closure)
        assert list(_in_columns(r, asked, counted, events)) == in_order, (SEED, asked, events)
        assert counted.entries == evaluator.entries, (SEED, asked, events)
    return bool(given)


def _in_columns(
    r: random.Random, asked: Conjunction, counted: CountingSynopses, events: list[Event]
) -> Iterator[Row]:
    """Every combination in random batches: its step, row and count."""
    firsts: list[list[list[int]]] = [[] for _ in asked.streams]
    start = 0
    while start < len(events):
        some = events[start : start + r.choice((1, 2, 5, 50))]
        start += len(some)
        parts = []
        own = [[one for one in some if one[1] == i] for i in range(len(asked.streams))]
        for i, tuples in enumerate(own):
            columns = {
                node: Column(np.array([values[node] for _, _, values in tuples], np.int64))
                for node in counted.nodes(i)
            }
            parts.append(OccurrenceRows(i, np.array([step for step, _, _ in tuples], np.int64), columns))
        taken = counted.take(parts)
        for i, new in enumerate(taken.new):
            firsts[i] += [own[i][row][2] for row in new.tolist()]
        for event, buckets, counts in zip(
            *(one.tolist() for one in (taken.found.event, taken.found.bucket, taken.found.counts)),
            strict=True,
        ):
            at, row = taken.occurrences[event], taken.rows[event]
            chosen = [own[at][row][2] if i == at else firsts[i][one] for i, one in enumerate(buckets)]
            shown = tuple(chosen[asked.occurrence(k)][k] for k in asked.projected)
            yield int(taken.places[event]), shown, math.prod(counts)


def _plain(asked: Conjunction, tuples: list[Tuples]) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for combination in itertools.product(*tuples):
        values = [sum(column) for column in zip(*combination, strict=True)]
        if _hold(asked.differences, asked.unequal, values):
            found[tuple(values[node] for node in asked.projected)] += 1
    return found


def _hold(differences: Sequence[Difference], unequal: Sequence[Unequal], values: list[int]) -> bool:
    return all(values[one.left] - values[one.right] <= one.bound for one in differences) and all(
        values[one.left] - values[one.right] != one.offset for one in unequal
    )
