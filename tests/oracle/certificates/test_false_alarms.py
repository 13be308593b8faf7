"""Alarms over wide domains: the condition of a raised alarm is false by at most the error of its row.

Where terms cancel, it may also be false by a billionth of the threshold.

Values lie within a few thousand units in the last place of the threshold. Their errors are tiny beside those
that the declared domains admit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.vectors import Vector
from tamis.operators.time_join.replay import replay
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

Exact = Callable[[Fraction, Fraction, Fraction], Fraction]
UNIT = Fraction(1, 2**52)  # twice the error of an operation, which is what a row's error counts as


@dataclass(frozen=True)
class Form:
    """A value of one stream in SQL and in fractions. `operations`: those that are rounded, an operation in a
    power as often as its error counts; `library`: functions of the C library, which count four times.
    `cancels`: terms of the value may cancel.
    """

    sql: str
    exact: Exact
    operations: int
    library: int = 0
    cancels: bool = False


FORMS = (
    Form("a.v * a.w * a.v * a.v", lambda v, w, _: v * w * v * v, 3),
    Form("a.v * a.w * a.z", lambda v, w, z: v * w * z, 2),
    Form("a.v * a.w", lambda v, w, _: v * w, 1),
    Form("a.v * (a.w * a.z)", lambda v, w, z: v * w * z, 2),
    Form("-(a.v * a.w * a.z) * a.v", lambda v, w, z: -v * w * z * v, 3),
    Form("abs(a.v * a.w * a.v)", lambda v, w, _: abs(v * w * v), 2),
    Form("a.v * a.w * a.v / a.z", lambda v, w, z: v * w * v / z, 3),
    Form("a.v / a.z * a.w * a.w", lambda v, w, z: v / z * w * w, 3),
    Form("power(a.v * a.w, 2) * a.v", lambda v, w, _: (v * w) ** 2 * v, 4, 1),
    Form("a.v * a.w + a.z * a.z", lambda v, w, z: v * w + z * z, 2, cancels=True),
    Form("(a.v - 2 * a.w) * a.z", lambda v, w, z: (v - 2 * w) * z, 3, cancels=True),
    Form("a.v * a.w * a.v * 0.3", lambda v, w, _: v * w * v * Fraction(0.3), 3),
)
SQL = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, v DOUBLE NOT NULL CHECK (v BETWEEN -{most} AND {most}),
  w DOUBLE NOT NULL CHECK (w BETWEEN -{most} AND {most}), z DOUBLE NOT NULL CHECK (z BETWEEN 0.5 AND {most}),
  WATERMARK FOR ts AS ts);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, v DOUBLE NOT NULL CHECK (v BETWEEN -{most} AND {most}),
  WATERMARK FOR ts AS ts);
CREATE ALERT q AS SELECT a.k FROM a JOIN b ON a.k = b.k
  AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND
WHERE {form} - b.v {op} {threshold!r};
"""


@pytest.mark.parametrize("times", also_long(200))
def test_a_raised_alarm_is_false_by_at_most_its_own_error(times: int) -> None:
    r = random.Random(f"{SEED} false alarms")
    seen: Counter[str] = Counter()
    for number in range(cases(1 / 400) * times):
        form, op = r.choice(FORMS), r.choice((">=", ">", "<"))
        size = 10.0 ** r.choice((0, 1, 3))
        most = size * 10.0 ** r.choice((0, 3, 9, 14)) * 2
        rows = [_near(r, size) for _ in range(200)]
        threshold = float(form.exact(*map(Fraction, rows[0])))
        sql = SQL.format(most=most, form=form.sql, op=op, threshold=threshold)
        catalog = catalog_of(sql)
        plan = first_plan(catalog)
        (definition,) = plan.definitions
        found = replay(definition, plan.streams, _recordings(catalog, rows))
        raised = found.rows["a"].tolist()
        for row in raised:
            value = form.exact(*map(Fraction, rows[row]))
            short = (Fraction(threshold) - value) * (-1 if op == "<" else 1)
            # The last difference is rounded, too; the joiner's own bounds are a little wider.
            error = (form.operations + 4 * form.library + 1) * UNIT * abs(value) * Fraction(101, 100)
            if form.cancels:
                error = 4 * error + abs(Fraction(threshold)) / 10**9
            assert short <= error, (SEED, number, sql, rows[row], float(short / error))
            seen["false"] += short > 0
        seen["raised"] += len(raised)
        seen["margins"] += bool(definition.margins)
    assert min(seen[one] for one in ("false", "raised", "margins")) > 0, seen


def _near(r: random.Random, size: float) -> tuple[float, float, float]:
    """Values whose products differ in the last digits."""

    def moved() -> float:
        return size * (1.25 + r.randint(0, r.choice((1, 10, 1000))) * 2.0**-52)

    return moved() * r.choice((1, 1, -1)), moved(), moved()


def _recordings(catalog: object, rows: list[tuple[float, float, float]]) -> dict[str, Recording]:
    """A tuple of `a` for each row, with a key of its own, and a tuple of `b` with 0 for each key."""
    streams = catalog.streams  # type: ignore[attr-defined]
    keys, times = np.arange(len(rows), dtype=np.int64), np.full(len(rows), 1_700_000_000_000_000)
    late = np.zeros(len(rows), np.bool_)
    own = {
        name: Vector(np.array(values)) for name, values in zip("vwz", zip(*rows, strict=True), strict=True)
    }
    both = {"k": Vector(keys), "ts": Vector(times)}
    return {
        "a": Recording(streams["a"], {**both, **own}, late, {}, 0),
        "b": Recording(streams["b"], {**both, "v": Vector(np.zeros(len(rows)))}, late, {}, 0),
    }
