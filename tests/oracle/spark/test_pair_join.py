"""Pairs of a group of keys, batch by batch, against nested loops over all readings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.oracle.random_cases import SEED, also_long, cases
from tests.oracle.spark.random_streams import (
    SECOND,
    Reading,
    arrivals,
    batches,
    greatest_count,
    readings,
    table,
)
from tests.oracle.spark.test_retention import stored

from tamis.declarations.definitions import Rate
from tamis.expressions.nodes import Type
from tamis.spark.joining import condition_of, definition_of
from tamis.spark.pair_join import JoinedInput, PairJoin
from tamis.spark.retaining import Retention

Pairs = list[tuple[Any, Any]]


def pair_join(span: int, rates: tuple[Rate, Rate] | None = None, least: int = 1) -> PairJoin:
    """The join of readings whose value on the left is greater by at least `least` than that on the right."""
    types = [(("x", Type.DOUBLE),), (("y", Type.DOUBLE),)]
    names = (("k", "k"), ("ts", "left_ts"), ("x", "x"), ("n", "left_n"))
    others = (("ts", "right_ts"), ("y", "y"), ("n", "right_n"))
    inputs = [
        JoinedInput("ts", pairs, kinds, None if rates is None else rates[i])
        for i, (pairs, kinds) in enumerate(zip((names, others), types, strict=True))
    ]
    definition = definition_of(span * SECOND, ("k",), ("ts", "ts"), condition_of(f"x >= y + {least}", types))
    return PairJoin(definition, ("k",), (inputs[0], inputs[1]))


def nested_loops(left: list[Reading], right: list[Reading], span: int, least: int = 1) -> Pairs:
    """The numbers of the readings of all pairs."""
    return sorted(
        (x.number, y.number)
        for x in left
        for y in right
        if x.key is not None
        and x.key == y.key
        and abs(x.time - y.time) <= span
        and x.value >= y.value + least
    )


def numbers(rows: pa.Table | None) -> Pairs:
    """The numbers of the readings of the pairs of a result."""
    if rows is None:
        return []
    return list(zip(rows["left_n"].to_pylist(), rows["right_n"].to_pylist(), strict=True))


def some_null(r: np.random.Generator, given: list[Reading]) -> list[Reading]:
    """The readings, some without a key."""
    return [replace(one, key=None) if r.random() < 0.05 else one for one in given]


@pytest.mark.parametrize("times", also_long(20))
def test_each_pair_is_given_once(times: int) -> None:
    r = np.random.default_rng((SEED, 71))
    for case in range(cases(0.015) * times):
        left, right = some_null(r, readings(r, 50)), some_null(r, readings(r, 50))
        span, per, disorder = int(r.integers(0, 10)), int(r.integers(1, 20)), int(r.choice([0, 3, 20]))
        most = [Rate(greatest_count(one, per), per * SECOND) for one in (left, right)]
        join = pair_join(span, (most[0], most[1]))
        wanted = nested_loops(left, right, span)
        assert sorted(numbers(join.joined(table(left, "x"), table(right, "y")))) == wanted, (SEED, case)
        # Both sides in one order of arrival; readings of the right have negative numbers on the way.
        mixed = sorted(
            [*left, *(replace(one, number=-1 - one.number) for one in right)], key=lambda one: one.time
        )
        found: Pairs = []
        held: Any = {}
        for batch, before, watermark in batches(r, arrivals(r, mixed, disorder), disorder):
            sides = {
                0: [one for one in batch if one.number >= 0],
                1: [replace(one, number=-1 - one.number) for one in batch if one.number < 0],
            }
            came = {side: table(rows, "xy"[side]) for side, rows in sides.items() if rows}
            outcome = join.run(held, came, before, watermark)
            found += numbers(outcome.given)
            held = stored(outcome.held)
            counts = outcome.counts
            assert counts.late == 0 and counts.held == sum(map(len, held.values()))
            assert counts.bound is not None and counts.held <= counts.bound, (SEED, case)
            for rows in held.values():  # none is kept that no reading can join any more
                for one in rows["ts"].cast(pa.int64()).to_pylist():
                    assert one + span * SECOND >= watermark, (SEED, case)
        assert sorted(found) == wanted, (SEED, case)
        assert not any(map(len, held.values()))


def test_retained_readings_give_an_alarm_close_to_each_alarm() -> None:
    """The promise of omission: an alarm of retained readings stands for each alarm of all readings."""
    r = np.random.default_rng((SEED, 72))
    alarms = 0
    for case in range(cases(0.01)):
        left, right = readings(r, 50), readings(r, 50)
        span = int(r.integers(0, 8))
        kept = []
        for given, sides in ((left, "above"), (right, "below")):
            rule = Retention(2 * span * SECOND, "v", "ts", ("k",), sides)  # type: ignore[arg-type]
            of = rule.retained(table(given))["n"].to_pylist()
            kept.append([one for one in given if one.number in of])
        tables = table(kept[0], "x"), table(kept[1], "y")
        raised = sorted(numbers(pair_join(span).joined(*tables)))
        assert raised == nested_loops(kept[0], kept[1], span), (SEED, case)
        for x, y in nested_loops(left, right, span):
            near = (
                left[x].key == left[a].key
                and abs(left[x].time - left[a].time) <= 2 * span
                and abs(right[y].time - right[b].time) <= 2 * span
                for a, b in raised
            )
            assert any(near), (SEED, case, x, y)
            alarms += 1
    assert alarms > 1_000


def test_a_late_reading_joins_those_that_are_kept() -> None:
    join = pair_join(2)
    first = join.run({}, {0: table([Reading("a", 10, 5.0, 0)], "x")}, -(2**63), 9 * SECOND)
    late = {1: table([Reading("a", 8, 0.0, 7)], "y")}
    found = join.run(first.held, late, 9 * SECOND, 9 * SECOND)
    assert numbers(found.given) == [(0, 7)] and found.counts.late == 1
    gone = join.run(first.held, {}, 9 * SECOND, 13 * SECOND)
    assert numbers(join.run(gone.held, late, 13 * SECOND, 13 * SECOND).given) == []


def test_numbers_that_are_not_finite_are_null() -> None:
    nan = table([Reading("a", 0, float("nan"), 0), Reading("a", 0, float("inf"), 1)], "x")
    assert pair_join(5).joined(nan, table([Reading("a", 0, 0.0, 0)], "y")).num_rows == 0
