"""Queries in application time, against all combinations tried.

After every tuple the rows are those of the combinations, and the entries are never more than the bound. Every
query with the verdict unbounded has inputs for which each evaluator must distinguish all subsets.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from tests.oracle.bounded.timed_queries import Case, case
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.application_time.decide import failures
from tamis.bounded.application_time.witness import tells_apart, witnesses
from tamis.operators.application_time.bound import terms
from tamis.operators.application_time.evaluator import Evaluator


@pytest.mark.parametrize("times", also_long(50))
def test_rows_and_entries_after_every_tuple(times: int) -> None:
    r = random.Random(SEED)
    kinds: Counter[object] = Counter()
    for number in range(cases(0.02) * times):
        one = case(r)
        if one is None:
            continue
        bounded = not failures(one.timed)
        bound = sum(term.count for term in terms(one.timed)) if bounded else math.inf
        assert not bounded or math.isfinite(bound), (SEED, number, one)
        _check(one, bound, (SEED, number))
        kinds[bounded, one.timed.query.distinct, len(one.timed.streams)] += 1
    assert min(kinds[True, distinct, n] for distinct in (True, False) for n in (2, 3)) > 3


def _check(one: Case, bound: float, named: tuple[int, int]) -> None:
    query = one.timed.query
    evaluator = Evaluator(one.timed)
    for occurrence, values in one.relations:
        evaluator.add_relation_row(occurrence, list(values), tuple(values))
    got: Counter[tuple[int, ...]] = Counter()
    for place, (occurrence, values) in enumerate(one.events, 1):
        time = one.timed.arrivals[occurrence].time
        if time:
            evaluator.advance(values[time])
        own = query.own(occurrence)
        taken: list[int | float | None] = [
            values[node] if node in own else None for node in range(query.size)
        ]
        for shown, count in evaluator.push(occurrence, taken, tuple(values)):
            chosen = [one_shown or () for one_shown in shown]
            row = tuple(int(str(chosen[query.occurrence(n)][n])) for n in query.projected)
            got[row] += count
        want = one.rows(place)
        assert set(got) == set(want) if query.distinct else got == want, (named, place, one)
        kept = evaluator.entries + (len(got) if query.distinct else 0)
        assert kept <= bound, (named, place, kept, bound, one)


@pytest.mark.parametrize("times", also_long(50))
def test_what_fails_without_distinct_has_a_witness(times: int) -> None:
    """With DISTINCT the criterion is sufficient only; of streams that end it is, too."""
    r = random.Random(SEED)
    found = 0
    for number in range(cases(0.02) * times):
        one = case(r)
        if one is None or one.timed.query.distinct:
            continue
        if any(one.timed.end(i) != math.inf for i in one.timed.streams):
            continue
        broken = failures(one.timed)
        if not broken or not _compatible(one):
            continue
        size = 5 if len(one.timed.streams) < 3 else 3
        told = [
            tells_apart(one.timed, witness)
            for failure in broken
            for witness in witnesses(one.timed, failure, _rows(one), size)
        ]
        assert True in told or None in told, (SEED, number, one, broken)
        found += True in told
    assert found > cases(0.001) * times


def _compatible(one: Case) -> bool:
    """True if rows of the static relations can be in one result together."""
    for chosen in itertools.product(*_rows(one).values()):
        closure = one.timed.closure.copy()
        if all(closure.fix(node, value) for row in chosen for node, value in row.items()):
            return True
    return False


def _rows(one: Case) -> Mapping[int, Sequence[Mapping[int, int]]]:
    query = one.timed.query
    return {
        i: [{n: values[n] for n in query.own(i)} for of, values in one.relations if of == i]
        for i in one.timed.statics
    }
