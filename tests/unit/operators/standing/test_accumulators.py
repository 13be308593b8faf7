"""Running counts, sums, extremes and medians: exact, rounded once, and of any size."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import orjson
import pytest
from tests.operators import standing_evaluator

from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector
from tamis.operators.aggregates import accumulators
from tamis.operators.aggregates.accumulators import Extremes, PartialAggregates, Sums, times
from tamis.operators.aggregates.values import Percentile, Values
from tamis.operators.contract import StandingEvaluator

ALL = "count(*) AS n, count({0}) AS c, sum({0}) AS s, avg({0}) AS a, min({0}) AS l, max({0}) AS g"
MEDIAN = Percentile(Fraction(1, 2))
STREAMS = "CREATE STREAM s (k INT, b BIGINT, x DOUBLE, v VARCHAR); CREATE STREAM t (j INT, c BIGINT);"


def _query(sql: str) -> StandingEvaluator:
    return standing_evaluator(f"{STREAMS} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")


def _last(query: StandingEvaluator, stream: str, **columns: tuple[Type, Sequence[Any]]) -> dict[str, Any]:
    """The last row that tuples give."""
    batch = {name: Vector.from_list(list(values), kind) for name, (kind, values) in columns.items()}
    found = query.take(stream, batch, len(next(iter(batch.values()))))
    return {name: vector.to_list()[-1] for name, vector in found.columns.items()}


def test_sums_of_doubles_are_rounded_once() -> None:
    query = _query(f"SELECT {ALL.format('x')}, median(x) AS m FROM s WHERE x = x")
    row = _last(query, "s", x=(Type.DOUBLE, (1e20, 0.1, 0.2, -1e20)))
    assert row == {
        "n": 4,
        "c": 4,
        "s": 0.30000000000000004,
        "a": 0.07500000000000001,
        "l": -1e20,
        "g": 1e20,
        "m": 0.15000000000000002,
    }


def test_null_is_left_out_and_alone_gives_null() -> None:
    query = _query(f"SELECT {ALL.format('b')}, median(b) AS m FROM s")
    nothing = _last(query, "s", b=(Type.BIGINT, (None,)))
    assert nothing == {"n": 1, "c": 0, "s": None, "a": None, "l": None, "g": None, "m": None}
    row = _last(query, "s", b=(Type.BIGINT, (None, 4, None)))
    assert row == {"n": 4, "c": 1, "s": 4, "a": 4.0, "l": 4, "g": 4, "m": 4.0}


def test_a_sum_beyond_64_bits_is_null_and_its_mean_is_not() -> None:
    query = _query("SELECT sum(b) AS s, avg(b) AS a, median(b) AS m FROM s")
    assert _last(query, "s", b=(Type.BIGINT, (2**62, 2**62))) == {"s": None, "a": 2.0**62, "m": 2.0**62}
    again = _query("SELECT sum(b) AS s, avg(b) AS a, median(b) AS m FROM s")
    again.load(query.dump())
    assert _last(again, "s", b=(Type.BIGINT, (-(2**62),))) == {"s": 2**62, "a": 2**62 / 3, "m": 2.0**62}


def test_the_least_text_and_truth_value() -> None:
    query = standing_evaluator(
        "CREATE STREAM s (v VARCHAR, f BOOLEAN); CREATE ALERT q AS SELECT min(v) AS v, max(v) AS w,"
        " min(f) AS f, max(f) AS g FROM s;",
        "q",
    )
    row = _last(
        query, "s", v=(Type.VARCHAR, (None, "b", "a", None)), f=(Type.BOOLEAN, (None, True, None, True))
    )
    assert row == {"v": "a", "w": "b", "f": True, "g": True}


def test_counts_of_combinations_may_have_more_than_64_bits() -> None:
    sql = (
        "SELECT count(*) AS n, count(s.b) AS c, sum(s.b) AS s, avg(s.b) AS a, max(s.b) AS g, median(s.k) AS m"
        " FROM s, t, t u WHERE s.k BETWEEN 0 AND 9"
    )
    query = _query(sql)
    query.take("t", {"j": Vector.from_list([1], Type.INT), "c": Vector.from_list([2], Type.BIGINT)}, 1)
    state = orjson.loads(query.dump())
    for occurrence in state["kept"][0][0]:
        occurrence[1] = [2**40 for _ in occurrence[1]]
    query = _query(sql)
    query.load(orjson.dumps(state))
    row = _last(query, "s", k=(Type.INT, (3, 5, 5)), b=(Type.BIGINT, (None, 7, -1)))
    assert row == {"n": None, "c": None, "s": None, "a": 3.0, "g": 7, "m": 5.0}
    again = _query(sql)
    again.load(query.dump())
    assert again.dump() == query.dump()
    assert _last(again, "s", k=(Type.INT, (3, 3)), b=(Type.BIGINT, (-6, 0)))["a"] == 0.0


def test_numbers_of_64_bits_and_larger_ones_run_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(1)
    for _ in range(30):
        rows, things = r.randint(0, 30), r.randint(1, 4)
        at = np.array([r.randrange(things) for _ in range(rows)], np.int64)
        new = np.array([r.choice((-1, 1)) * r.getrandbits(r.choice((4, 60))) for _ in range(rows)], np.int64)
        wanted, state = [], [0] * things
        for thing, number in zip(at.tolist(), new.tolist(), strict=True):
            state[thing] += number
            wanted.append(state[thing])
        for safe in (2.0**62, -1.0):
            monkeypatch.setattr(accumulators, "_SAFE", safe)
            sums = Sums()
            sums.grow(things)
            half = rows // 2
            after = [*sums.add(at[:half], new[:half]).tolist(), *sums.add(at[half:], new[half:]).tolist()]
            assert after == wanted
            assert times(new, np.abs(new)).tolist() == [one * abs(one) for one in new.tolist()]


@pytest.mark.parametrize("kind", [Type.BIGINT, Type.DOUBLE, Type.VARCHAR])
def test_extremes_after_each_row(kind: Type) -> None:
    r = random.Random(2)
    for greatest in (False, True):
        extremes = Extremes(kind, greatest=greatest)
        extremes.grow(3)
        kept: list[list[Any]] = [[], [], []]
        for _ in range(10):
            at = np.array([r.randrange(3) for _ in range(r.randint(0, 9))], np.int64)
            values = [r.choice((None, -1, 3, 8, 2)) for _ in at]
            made = [f"{one}" if kind is Type.VARCHAR and one is not None else one for one in values]
            vector = Vector.from_list(made, kind)
            some = np.array([one is not None for one in made], np.bool_)
            after = extremes.add(at, vector.data, some).tolist()
            for thing, value, found in zip(at.tolist(), made, after, strict=True):
                kept[thing] += [] if value is None else [value]
                if kept[thing]:
                    assert found == (max if greatest else min)(kept[thing])


PERCENTILES = (
    MEDIAN,
    *(
        Percentile(Fraction(p), continuous)
        for p in ("0", "0.29", "0.5", "0.75", "0.999999999", "1")
        for continuous in (True, False)
    ),
)


def _percentile(asked: Percentile, values: list[Fraction]) -> float | None:
    """By the definition of SQL, exactly."""
    if not values:
        return None
    known = sorted(values)
    if not asked.continuous:
        return float(next(v for i, v in enumerate(known, 1) if i >= asked.fraction * len(known)))
    rank = (len(known) - 1) * asked.fraction
    low, high = known[math.floor(rank)], known[math.ceil(rank)]
    return float(low + (high - low) * (rank - math.floor(rank)))


@pytest.mark.parametrize("kind", [Type.INT, Type.DOUBLE])
def test_percentiles_after_each_row(kind: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(3)
    for number in range(60):
        monkeypatch.setattr(accumulators, "_SAFE", -1.0 if number % 3 == 0 else 2.0**62)
        column = Column("s", "x", kind)
        values = Values(column, PERCENTILES)
        values.grow(2)
        kept: list[list[Fraction]] = [[], []]
        for _ in range(r.randint(1, 6)):
            group = [r.randrange(2) for _ in range(r.randint(0, 8))]
            given = [None if r.random() < 0.1 else r.choice((-9, 0, 1, 2, 7, 30)) for _ in group]
            weights = [r.randint(1, 4) for _ in group]
            told = values.add(np.array(group, np.int64), Vector.from_list(given, kind), np.array(weights))
            found = {one: values.percentile(one, told).to_list() for one in PERCENTILES}
            for row, (own, value, weight, count) in enumerate(
                zip(group, given, weights, told.count.tolist(), strict=True)
            ):
                kept[own] += [] if value is None else [Fraction(value)] * weight
                for one, after in found.items():
                    assert after[row] == _percentile(one, kept[own]), (one, kept[own])
                if kept[own]:
                    assert found[MEDIAN][row] == float(statistics.median(kept[own]))
                assert count == len(set(kept[own]))
            again = Values(column, PERCENTILES)
            again.grow(2)
            again.restore(values.dumped())
            assert again.dumped() == values.dumped()
            values = again


def test_a_tally_counts_as_often_as_it_is_taken() -> None:
    single = PartialAggregates.of(Vector.from_list([3, None], Type.INT), ("count", "total", "least"))
    often = single.times(np.array([4, 5]))
    assert [often.measures[one].tolist() for one in ("count", "total")] == [[4, 0], [12, 0]]
