"""The omission interval against brute force: random joins of 2 to 4 streams, all of them omitting at once.

The promise: for every combination of the full join that raises an alarm, the retained join has one that
raises an alarm and in which every tuple lies within its own stream's interval of the tuple that it
replaces.
"""

from __future__ import annotations

import itertools
import random

import pytest

from tamis.planning.plan import TimeBound
from tamis.planning.topology import omission_interval

Tuple = tuple[int, int]  # (time, value)


def random_bounds(rng: random.Random, names: list[str]) -> list[TimeBound]:
    """A connected join, and some more bounds."""
    pairs = [(rng.choice(names[:i]), names[i]) for i in range(1, len(names))]
    pairs += [pair for pair in itertools.combinations(names, 2) if pair not in pairs and rng.random() < 0.4]
    out = []
    for left, right in pairs:
        lo = rng.randint(-5, 2)
        hi = lo + rng.choice([0, 1, 2, 3, 5, 7])
        if rng.random() < 0.5:
            lo, hi = -abs(hi), abs(hi)
        out.append(
            TimeBound(left, right, None if rng.random() < 0.1 else lo, None if rng.random() < 0.1 else hi)
        )
    return out


def omit(tuples: list[Tuple], interval: int | None, rng: random.Random) -> list[Tuple]:
    """Some smallest set that has, for every window of the length with a tuple in it, one with its maximum.

    Tuples are dropped in random order as long as that stays true, for windows that begin at any half tick.
    """
    if interval is None or interval <= 0:
        return list(tuples)
    kept = list(tuples)
    times = [t for t, _ in tuples]
    starts = [s / 2 for s in range(2 * (min(times) - interval) - 1, 2 * max(times) + 2)] if times else []

    def safe(rest: list[Tuple]) -> bool:
        for start in starts:
            inside = [v for t, v in tuples if start <= t <= start + interval]
            left = [v for t, v in rest if start <= t <= start + interval]
            if inside and (not left or max(left) < max(inside)):
                return False
        return True

    order = list(range(len(tuples)))
    rng.shuffle(order)
    for i in order:
        rest = list(kept)
        rest.remove(tuples[i])
        if safe(rest):
            kept = rest
    return kept


def joined(combination: dict[str, Tuple], bounds: list[TimeBound]) -> bool:
    for bound in bounds:
        apart = combination[bound.left][0] - combination[bound.right][0]
        if (bound.lo is not None and apart < bound.lo) or (bound.hi is not None and apart > bound.hi):
            return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_no_alarm_is_missed(seed: int) -> None:
    rng = random.Random(seed)
    alarms = omitted = 0
    for case in range(60):
        names = list("abcd"[: rng.choice([2, 2, 3, 3, 4])])
        bounds = random_bounds(rng, names)
        intervals = {name: omission_interval(name, names, bounds) for name in names}
        size = 7 if len(names) < 4 else 4
        full = {name: [(rng.randint(0, 10), rng.randint(0, 3)) for _ in range(size)] for name in names}
        kept = {name: omit(full[name], intervals[name], rng) for name in names}
        omitted += sum(len(full[name]) - len(kept[name]) for name in names)
        level = rng.randint(len(names), 3 * len(names) - 2)

        def combinations(
            streams: dict[str, list[Tuple]],
            names: list[str] = names,
            bounds: list[TimeBound] = bounds,
            level: int = level,
        ) -> list[dict[str, Tuple]]:
            found = (
                dict(zip(names, c, strict=True)) for c in itertools.product(*(streams[n] for n in names))
            )
            return [c for c in found if sum(v for _, v in c.values()) > level and joined(c, bounds)]

        left = combinations(kept)
        for alarm in combinations(full):
            alarms += 1
            near = {name: max(intervals[name] or 0, 0) for name in names}
            assert any(
                all(abs(other[name][0] - alarm[name][0]) <= near[name] for name in names) for other in left
            ), f"seed {seed} case {case}: {alarm} of {full}, kept {kept}, {bounds}, {intervals}"
    assert alarms > 200 and omitted > 100


def test_the_cases_of_the_paper() -> None:
    def within(left: str, right: str, width: int) -> TimeBound:
        return TimeBound(left, right, -width, width)

    def intervals(names: str, bounds: list[TimeBound]) -> list[int | None]:
        return [omission_interval(name, names, bounds) for name in names]

    assert intervals("ab", [within("a", "b", 5)]) == [10, 10]
    clique = [within(*pair, 5) for pair in itertools.combinations("abcd", 2)]
    assert intervals("abcd", clique) == [5, 5, 5, 5]
    # A star: the rim omits, its centre does not. A chain: its ends do.
    assert intervals("abc", [within("a", "b", 5), within("a", "c", 5)]) == [0, 10, 10]
    assert intervals("abcd", [within("a", "b", 5), within("b", "c", 5), within("c", "d", 5)]) == [
        10,
        0,
        0,
        10,
    ]
    # A clique without one pair: the two that are not bound to each other omit, the others don't.
    near = [b for b in clique if (b.left, b.right) != ("a", "b")]
    assert intervals("abcd", near) == [5, 5, 0, 0]
    # Beyond the paper: a centre whose rim is bound more tightly than the spokes are long.
    assert intervals("abc", [within("a", "b", 5), within("a", "c", 5), within("b", "c", 2)]) == [8, 2, 2]


def test_one_sided_bounds_give_no_finite_interval() -> None:
    assert omission_interval("a", "ab", [TimeBound("a", "b", 0, None)]) is None
    assert omission_interval("a", "ab", []) is None
    # Two partners bound it, one from each side, but nothing relates these two.
    bounds = [TimeBound("a", "b", 0, None), TimeBound("a", "c", None, 0)]
    assert omission_interval("a", "abc", bounds) == 0
