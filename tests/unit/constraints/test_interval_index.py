"""Index of tuples: the intervals that meet another one, and large relations with the index."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from tamis.constraints import Relation
from tamis.constraints.interval_index import IndexedTuples, IntervalIndex, ends
from tamis.constraints.theory import Interval


def random_interval(random: Random) -> Interval:
    ends = sorted(Fraction(random.randint(-30, 30), 3) for _ in range(2))
    lower, upper = (None if random.random() < 0.1 else end for end in ends)
    return Interval(lower, True, upper, True)


def meet(one: Interval, other: Interval) -> bool:
    return all(
        a.lower is None or b.upper is None or a.lower <= b.upper for a, b in ((one, other), (other, one))
    )


def test_finds_the_intervals_that_meet_another_one() -> None:
    random = Random(1)
    for count in (0, 1, 2, 100):
        intervals = [random_interval(random) for _ in range(count)]
        index = IntervalIndex(intervals)
        for _ in range(200):
            wanted = random_interval(random)
            expected = {at for at, each in enumerate(intervals) if meet(each, wanted)}
            found = index.meeting(wanted).tolist()
            assert found == sorted(found)
            # Thirds aren't floats: of intervals that touch at a third, no one is missed.
            assert expected == set(found)


def test_ends_are_rounded_outwards() -> None:
    third, huge = Fraction(1, 3), Fraction(10) ** 400
    for lower, upper in [(third, third), (-third, 2 * third), (-huge, huge), (huge, huge), (-huge, -huge)]:
        ((lowest,), (highest,)) = ends([Interval(lower, True, upper, True)])
        assert lowest == -np.inf or Fraction(float(lowest)) <= lower
        assert highest == np.inf or Fraction(float(highest)) >= upper


def boxes(random: Random, count: int, names: str) -> str:
    parts = []
    for _ in range(count):
        corner = [random.randint(0, 2000) for _ in names]
        sides = (f"{name} BETWEEN {at} AND {at + 10}" for name, at in zip(names, corner, strict=True))
        parts.append(f"({' AND '.join(sides)})")
    return " OR ".join(parts)


def test_operations_on_large_relations_look_at_few_pairs() -> None:
    random = Random(2)
    one = Relation.parse(boxes(random, 300, "xy"), ["x", "y"], theory="temporal")
    two = Relation.parse(boxes(random, 300, "yz"), ["y", "z"], theory="temporal")
    tuples = IndexedTuples(one.theory, one.tuples, one.variables)
    assert sum(len(found) for _, found in tuples.meeting(two.tuples)) < 300 * 300 / 50
    joined = set(one.join(two).tuples)
    pairs = {one.theory.conjoin(first, second) for first in one.tuples for second in two.tuples} - {None}
    assert joined <= pairs and len(joined) > 500
    assert all(any(one.theory.implies(lost, each) for each in joined) for lost in pairs - joined)
    assert len(one.select("x < 100").tuples) == sum(
        one.theory.interval(each, "x").lower < 100  # type: ignore[operator]  # all intervals are finite
        for each in one.tuples
    )
    rest = one.difference(Relation.parse(boxes(random, 300, "xy"), ["x", "y"], theory="temporal"))
    assert len(rest.tuples) > 300
    assert rest.implies(one)
