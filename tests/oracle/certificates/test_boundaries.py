"""Open, closed and mixed bounds on time: on microsecond ticks a strict bound is the closed one less a tick.

The planner says it, the kernel and the joiner know closed spans alone; here all three against nested loops
that compare times just as the SQL has it.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.omission import retained
from tamis.operators.time_join.temporal_join import Tuples, combinations
from tamis.plan.model import Definition
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts) WITH"
    " (keys = 1, rate = '1/s');"
    for name in "rs"
)


def defined(low: str, lo: int, high: str, hi: int) -> Definition:
    """An alert over r and s with r.ts + lo < (or <=) s.ts < (or <=) r.ts + hi, in microseconds."""
    alert = (
        "CREATE ALERT q AS SELECT r.k FROM r JOIN s ON r.k = s.k AND r.x + s.x > 0"
        f" AND s.ts {low} r.ts {'-' if lo < 0 else '+'} INTERVAL '{abs(lo)} us'"
        f" AND s.ts {high} r.ts {'-' if hi < 0 else '+'} INTERVAL '{abs(hi)} us'"
    )
    return first_plan(catalog_of(STREAMS, alert)).definitions[0]


@pytest.mark.parametrize(
    ("low", "high", "closed"),
    [(">=", "<=", (-3, 5)), (">", "<=", (-2, 5)), (">=", "<", (-3, 4)), (">", "<", (-2, 4))],
)
def test_a_strict_bound_is_the_closed_one_less_a_tick(low: str, high: str, closed: tuple[int, int]) -> None:
    made = defined(low, -3, high, 5)
    (bound,) = made.bounds
    assert (bound.left, bound.right, -(bound.hi or 0), -(bound.lo or 0)) == ("r", "s", *closed)
    assert [source.interval for source in made.inputs] == [closed[1] - closed[0]] * 2


def columns(rows: list[tuple[int, float]]) -> Tuples:
    times = np.array([t for t, _ in rows], np.int64)
    n = len(rows)
    values = {
        "k": Vector(np.zeros(n, np.int64), None),
        "ts": Vector(times, None),
        "x": Vector.from_list([x for _, x in rows], Type.DOUBLE),
    }
    return Tuples(times, np.zeros(n, np.int64), np.ones(n, np.int64), np.ones(n, np.bool_), values)


def test_kernel_and_joiner_agree_with_what_the_sql_says() -> None:
    r = random.Random(f"boundaries {SEED}")
    alarms = omitted = 0
    for case in range(cases(0.005)):
        lo = r.randint(-5, 2)
        low, high = r.choice((">", ">=")), r.choice(("<", "<="))
        # No time lies strictly between two neighbours: such an alert is refused.
        hi = lo + r.randint(2 if (low, high) == (">", "<") else 1, 6)
        made = defined(low, lo, high, hi)

        def near(a: int, b: int, rule: tuple[str, int, str, int] = (low, lo, high, hi)) -> bool:
            return OPERATORS[rule[0]](b, a + rule[1]) and OPERATORS[rule[2]](b, a + rule[3])

        full, kept = [], []
        for source in made.inputs:
            rows = sorted((r.randint(0, 12), float(r.randint(-3, 3))) for _ in range(9))
            keep = retained([t for t, _ in rows], [x for _, x in rows], source.interval, sides="above")
            full.append(rows)
            kept.append([row for row, k in zip(rows, keep, strict=True) if k])
            omitted += len(rows) - len(kept[-1])

        def joined(tuples: list[list[tuple[int, float]]], near: Any = near) -> list[Any]:
            return [(a, b) for a in tuples[0] for b in tuples[1] if near(a[0], b[0]) and a[1] + b[1] > 0]

        wanted, left = joined(full), joined(kept)
        found = [
            (kept[0][i], kept[1][j])
            for block in combinations(made, {"r": columns(kept[0]), "s": columns(kept[1])})
            for i, j in zip(*(rows.tolist() for rows in block), strict=True)
        ]
        assert sorted(found) == sorted(left), (SEED, case, made.bounds)
        spans = [source.interval for source in made.inputs]
        for alarm in wanted:
            alarms += 1
            assert any(
                all(abs(x[0] - y[0]) <= span for x, y, span in zip(alarm, other, spans, strict=True))
                for other in left
            ), (SEED, case, (low, lo, high, hi), full, kept, alarm)
    assert alarms > 100 and omitted > 100


# Section 3.4 of cai-2021: values at times 0 to 4, joined over a span of 3 closed on the left, open on the
# right.
VALUES = [3.0, 1.0, 0.0, 2.0, 4.0]
TICKS = 1_000_000  # of the paper's unit of time


def test_mixed_bounds_have_no_maximal_bracket_where_closed_ones_have() -> None:
    """s_1 and s_3 are above s_2 and lie in one span, but s_1 is the greatest of no span of length 3 that is
    open on the right. Of a closed one that is shorter by less than tuples are apart, it is."""
    times = range(0, 50, 10)  # in tenths

    def greatest(one: int, end: int) -> bool:
        """True if some span [start, start + end] contains this tuple and no greater one."""
        spans = ([i for i in range(5) if start <= times[i] <= start + end] for start in range(-40, 50))
        return any(one in span and all(VALUES[i] <= VALUES[one] for i in span) for span in spans)

    # In whole tenths [start, start + 30) is [start, start + 29].
    assert [greatest(i, 29) for i in range(5)] == [True, False, False, True, True]
    assert times[3] - times[0] > 29  # so no pair of them is around s_2 and in one span
    assert greatest(1, 28) and greatest(3, 28)


def test_the_counter_example_is_decided_by_the_closed_span_less_a_tick() -> None:
    made = defined(">=", -TICKS, "<", 2 * TICKS)
    interval = made.inputs[1].interval
    assert interval == 3 * TICKS - 1
    times = [i * TICKS for i in range(5)]
    keep = retained(times, VALUES, interval, sides="above")
    assert keep.tolist() == [True, True, False, True, True]
    # No partner misses an alarm, at whatever tick it is and whatever its threshold.
    for start in (edge + tick for edge in range(-4 * TICKS, 6 * TICKS, TICKS) for tick in (-1, 0, 1)):
        inside = [i for i in range(5) if start <= times[i] < start + 3 * TICKS]
        assert max((VALUES[i] for i in inside), default=None) == max(
            (VALUES[i] for i in inside if keep[i]), default=None
        )
