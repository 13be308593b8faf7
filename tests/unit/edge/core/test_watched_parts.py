"""The parts of watched streams: the buffer, checkpoints, and the rows that filters can let pass."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tamis.declarations.watches import NamedPattern, Watch
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis_edge.core import watched_readings
from tamis_edge.core.rows import Batch
from tamis_edge.core.watched_readings import Checkpoints, EventOrder, needed_matches

TEMP = Column("", "temp", Type.DOUBLE)
PATTERN = NamedPattern("p", (0.0, 1.0))
WATCHES = tuple(Watch(TEMP, name, (PATTERN,), 0.1) for name in ("p", "q", "r"))


def readings(times: list[int], first: int = 0) -> Batch:
    offsets = np.arange(first, first + len(times))
    return Batch({"n": Vector(offsets)}, np.array(times, np.int64), offsets, np.zeros(len(times), np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_readings_leave_in_the_order_of_time_and_arrival(seed: int) -> None:
    r = random.Random(seed)
    order, waiting, count, watermark = EventOrder(), [], 0, 0
    assert order.release(10**9) is None
    for _ in range(60):
        times = [watermark + r.randint(1, 30) for _ in range(r.randint(0, 9))]
        waiting += [(time, count + i) for i, time in enumerate(times)]
        order.add(readings(times, count))
        count += len(times)
        assert len(order) == len(waiting)
        assert order.oldest == min((time for time, _ in waiting), default=None)
        watermark += r.randint(0, 12)
        expected = sorted(one for one in waiting if one[0] <= watermark)
        waiting = [one for one in waiting if one[0] > watermark]
        found = order.release(watermark)
        if found is None:
            assert not expected
        else:
            assert list(zip(found.times.tolist(), found.offsets.tolist(), strict=True)) == expected
            assert found.columns["n"].to_list() == [offset for _, offset in expected]


@pytest.mark.parametrize("most", [5, 4096])
def test_all_needed_readings_lie_behind_a_checkpoint(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(watched_readings, "MOST", most)
    r = random.Random(most)
    for _ in range(200):
        times = [base + r.randint(0, 20) for base in range(0, 100, 2)]
        known, latest, oldest = Checkpoints(0, -1), -1, (0, -1)
        for offset, time in enumerate(times):
            known.add(offset, latest)
            latest = max(latest, time)
            if r.random() < 0.2:
                # What is needed: everything from `least` on, of `least` itself from `at` on. It never grows.
                oldest = max(oldest, (r.randint(oldest[0], max(oldest[0], latest)), r.choice([-1, offset])))
                least, at = oldest
                floor, first = known.before(least, at)
                needed = [
                    i for i, t in enumerate(times[: offset + 1]) if t > least or (t == least and i >= at)
                ]
                assert all(first <= i for i in needed)
                assert all(t <= floor for t in times[:first])
                assert all(t >= floor for t in (times[i] for i in needed))


def test_the_last_fitting_checkpoint_is_taken() -> None:
    known = Checkpoints(3, 10)
    for offset, latest in ((3, 10), (5, 12), (9, 12), (12, 30)):
        known.add(offset, latest)
    assert known.before(0, 0) == (10, 3)
    assert known.before(12, -1) == (10, 3)
    assert known.before(12, 7) == (12, 5)
    assert known.before(13, -1) == (12, 9)
    assert known.before(13, -1) == (12, 9)
    assert known.before(99, -1) == (30, 12)


def condition(r: random.Random, depth: int = 0) -> Expr:
    kind = r.choice(
        ["and", "or", "null", "present", "compare", "temp"] if depth < 3 else ["null", "present", "compare"]
    )
    watch = r.choice(WATCHES)
    column = r.choice([watch.distance, watch.scale_column])
    match kind:
        case "and" | "or":
            return Call(kind, tuple(condition(r, depth + 1) for _ in range(r.randint(2, 3))), Type.BOOLEAN)
        case "null":
            return Call("is_null", (column,), Type.BOOLEAN)
        case "present":
            return Call("not", (Call("is_null", (column,), Type.BOOLEAN),), Type.BOOLEAN)
        case "compare":
            others: list[Expr] = [Literal(0.5, Type.DOUBLE), TEMP, WATCHES[0].distance]
            sides: list[Expr] = [column, r.choice(others)]
            r.shuffle(sides)
            return Call(r.choice(COMPARISONS), tuple(sides), Type.BOOLEAN)
        case _:
            return Call(">", (TEMP, Literal(0.5, Type.DOUBLE)), Type.BOOLEAN)


def test_a_filter_passes_no_reading_without_one_of_its_needed_matches() -> None:
    r = random.Random(7)
    found = 0
    for _ in range(2000):
        filter_ = condition(r)
        needed = needed_matches(filter_, WATCHES)
        n = 40
        present = np.array([[r.random() < 0.4 for _ in WATCHES] for _ in range(n)])
        values: dict[tuple[str, str], Vector] = {
            ("", "temp"): Vector(np.array([r.random() for _ in range(n)]))
        }
        for place, watch in enumerate(WATCHES):
            for column in (watch.distance, watch.scale_column):
                data: list[Any] = [r.random() if here else None for here in present[:, place]]
                values["", column.name] = Vector.from_list(data, Type.DOUBLE)
        passing = holds(filter_, values, n)
        if needed is not None:
            found += 1
            assert not passing[~present[:, sorted(needed)].any(axis=1)].any(), filter_
    assert found > 500


def test_needed_matches_of_common_filters() -> None:
    p, q, _ = WATCHES
    similar: list[Expr] = [
        Call("not", (Call("is_null", (one.distance,), Type.BOOLEAN),), Type.BOOLEAN) for one in (p, q)
    ]
    hot: Expr = Call(">", (TEMP, Literal(0.5, Type.DOUBLE)), Type.BOOLEAN)
    assert needed_matches(None, WATCHES) is None
    assert needed_matches(hot, WATCHES) is None
    assert needed_matches(Call("and", (hot, similar[1]), Type.BOOLEAN), WATCHES) == frozenset((1,))
    assert needed_matches(Call("or", tuple(similar), Type.BOOLEAN), WATCHES) == frozenset((0, 1))
    assert needed_matches(Call("or", (hot, similar[0]), Type.BOOLEAN), WATCHES) is None
