"""Partial aggregates of windows: sums and states are exact, and unused entries are forgotten."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.operators import standing_evaluator

from tamis.errors import RefusedError
from tamis.expressions.exact.sums import SCALE, SPREADS, of_doubles, of_whole, quotient
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import CountsLate, Rows, StandingEvaluator
from tamis.operators.windows.groups import WindowedGroups

STREAM = "CREATE STREAM s (ts TIMESTAMP, k VARCHAR, b BIGINT, x DOUBLE, WATERMARK FOR ts AS ts);"
EDGES = (
    5e-324,
    -5e-324,
    0.0,
    -0.0,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    2.2250738585072014e-308,
    1.0,
)


def _query(select: str, group: str = "window_start") -> StandingEvaluator:
    window = "TUMBLE(s, ts, INTERVAL '10 us')"
    return standing_evaluator(
        f"{STREAM} CREATE ALERT q AS SELECT {select} FROM {window} GROUP BY {group}", "q"
    )


def _take(
    query: StandingEvaluator, ts: list[int], x: list[float | None], b: list[int | None], k: list[str | None]
) -> None:
    kinds = {"ts": Type.TIMESTAMP, "k": Type.VARCHAR, "b": Type.BIGINT, "x": Type.DOUBLE}
    columns: dict[str, Sequence[object]] = {"ts": ts, "k": k, "b": b, "x": x}
    query.take("s", {name: Vector.from_list(columns[name], kind) for name, kind in kinds.items()}, len(ts))


def _rows(rows: Rows) -> list[tuple[object, ...]]:
    return list(zip(*(vector.to_list() for vector in rows.columns.values()), strict=True))


def _number(r: random.Random) -> float:
    return r.choice(EDGES) if r.random() < 0.3 else r.uniform(-1, 1) * 10.0 ** r.randint(-320, 307)


@pytest.mark.parametrize("function", SPREADS)
def test_spreads_are_exact_and_rounded_once(function: str) -> None:
    r = random.Random(4)
    for _ in range(150):
        doubles = r.random() < 0.5
        size = r.choice((1, 2, 3, 9))
        near = r.choice((0.0, 20.0, 1e15))
        values: list[Any] = [
            r.choice((_number(r), near + r.random()))
            if doubles
            else r.choice((r.randint(-3, 3), 2**63 - r.randint(1, 5), -(2**63)))
            for _ in range(size)
        ]
        query = _query(f"{function}({'x' if doubles else 'b'}) AS v")
        none: list[Any] = [None] * size
        _take(query, [1] * size, values if doubles else none, none if doubles else values, none)
        ((found,),) = _rows(query.advance("s", 10))
        mean = Fraction(sum(map(Fraction, values)), size)
        squares = sum(((Fraction(one) - mean) ** 2 for one in values), Fraction(0))
        divisor = size if function.endswith("_pop") else size - 1
        if divisor == 0:
            assert found is None
            continue
        exact = squares / divisor
        assert isinstance(found, float | None)
        if found is None:
            assert exact >= Fraction(2) ** 1023 * (1 if function.startswith("var") else Fraction(2) ** 1000)
        elif function.startswith("var"):
            assert found == exact.numerator / exact.denominator
        else:
            # The nearest DOUBLE: the exact root lies between the middles to both neighbours.
            low, high = (Fraction(found) + Fraction(math.nextafter(found, to)) for to in (-1.0, math.inf))
            assert (max(low, Fraction(0)) / 2) ** 2 <= exact <= (high / 2) ** 2


@pytest.mark.parametrize("function", SPREADS)
def test_spreads_without_time_are_those_of_windows(function: str) -> None:
    r = random.Random(5)
    sql = f"SELECT {function}(x) AS v, {function}(b) AS w FROM t"
    stream = "CREATE STREAM t (b BIGINT, x DOUBLE);"
    for _ in range(60):
        size = r.randint(1, 6)
        x, b = [_number(r) for _ in range(size)], [r.choice((2**63 - 1, -5, 3)) for _ in range(size)]
        single = standing_evaluator(f"{stream} CREATE ALERT q AS {sql}", "q")
        batch = {"b": Vector.from_list(b, Type.BIGINT), "x": Vector.from_list(x, Type.DOUBLE)}
        windowed = _query(f"{function}(x) AS v, {function}(b) AS w")
        _take(windowed, [1] * size, [*x], [*b], [None] * size)
        assert _rows(single.take("t", batch, size))[-1] == _rows(windowed.advance("s", 10))[0]


def test_sums_of_runs_are_exact() -> None:
    r = random.Random(1)
    for _ in range(200):
        n = r.randint(1, 40)
        starts = np.array(sorted({0, *(r.randrange(n) for _ in range(3))}))
        doubles = [_number(r) for _ in range(n)]
        wholes = [r.choice((2**63 - 1, -(2**63), 0, r.randint(-(2**63), 2**63 - 1))) for _ in range(n)]
        of = list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True))
        assert of_whole(np.array(wholes, np.int64), starts).tolist() == [sum(wholes[a:b]) for a, b in of]
        found = of_doubles(np.array(doubles), starts).tolist()
        exact = [sum(map(Fraction, doubles[a:b]), Fraction(0)) for a, b in of]
        assert [Fraction(one, 1 << SCALE) for one in found] == exact
        assert [quotient(one, 1 << SCALE) for one in found] == [_rounded(one) for one in exact]


def _rounded(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def test_sums_beyond_the_type_are_null_and_come_back() -> None:
    query = _query("sum(b) AS b, sum(x) AS x, avg(b) AS m, avg(x) AS n")
    most, largest = 2**63 - 1, 1.7976931348623157e308
    _take(query, [1, 2], [largest, largest], [most, most], ["", ""])
    _take(query, [11, 12], [largest, largest], [most, most], ["", ""])
    _take(query, [13, 14], [-largest, -largest], [-most, None], ["", ""])
    assert _rows(query.advance("s", 100)) == [
        (None, None, float(most), largest),
        (most, 0.0, most / 3, 0.0),
    ]


def test_the_time_of_a_row_is_the_last_moment_of_its_window() -> None:
    query = _query("count(*) AS n")
    assert isinstance(query, CountsLate)
    _take(query, [25, 3, 14], [1.0] * 3, [1] * 3, [""] * 3)
    rows = query.advance("s", 25)
    assert rows.times is not None
    assert rows.times.tolist() == [9, 19]
    assert Rows.concat([rows, rows]).take(np.array([3, 0])).times.tolist() == [19, 9]  # type: ignore[union-attr]
    _take(query, [19, 22], [1.0] * 2, [1] * 2, [""] * 2)
    assert query.late == 1
    assert _rows(query.advance("s", 30)) == [(2,)]


def test_the_middle_of_large_numbers() -> None:
    query = _query("median(b) AS b, median(x) AS x")
    _take(query, [1, 2, 3], [1.7e308, 1.7e308, None], [2**62, 2**62 + 3, None], ["", "", ""])
    _take(query, [21], [None], [None], [""])
    assert _rows(query.advance("s", 100)) == [((2**63 + 3) / 2, 1.7e308), (None, None)]


def test_a_state_goes_on_as_before_and_no_other_query_takes_it() -> None:
    query = _query("k, sum(x) AS x, count(DISTINCT k) AS n, min(k) AS low", "window_start, k")
    _take(query, [1, 2, 12], [1e300, 0.5, 1.0], [None] * 3, ["a", None, "b"])
    query.advance("s", 5)
    again = _query("k, sum(x) AS x, count(DISTINCT k) AS n, min(k) AS low", "window_start, k")
    again.load(query.dump())
    assert again.dump() == query.dump()
    assert again.entries() == query.entries() == 3 + 2
    for one in (query, again):
        _take(one, [3, 13], [-1e300, 2.0], [None] * 2, ["a", "c"])
    assert _rows(query.advance("s", 50)) == _rows(again.advance("s", 50))
    with pytest.raises(RefusedError, match="another query"):
        _query("k, sum(x) AS x", "window_start, k").load(query.dump())


def test_groups_and_texts_of_old_windows_are_forgotten() -> None:
    query = _query("k, count(DISTINCT k) AS n", "window_start, k")
    assert isinstance(query, WindowedGroups)
    for start in range(0, 40_000, 10):
        _take(query, [start, start + 1], [None] * 2, [None] * 2, [f"k{start}", "kept"])
        assert len(query.advance("s", start)) == (2 if start else 0)
    assert query.entries() == 4
    assert len(query.dump()) < 60_000
