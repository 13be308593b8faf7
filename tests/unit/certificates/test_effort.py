"""The work on one query is counted and limited, however it is written and however many streams it joins."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tamis.analysis.conjuncts import analyse
from tamis.certificates import scalars
from tamis.certificates.interval_arithmetic import interval_derivatives, subdivision
from tamis.certificates.interval_arithmetic.intervals import Interval
from tamis.expressions.nodes import Expr
from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

COLUMNS = (
    "k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), n BIGINT, WATERMARK FOR ts AS ts"
)
STREAMS = f"CREATE STREAM a ({COLUMNS}); CREATE STREAM b ({COLUMNS});"
PAIR = """CREATE ALERT q AS SELECT a.k FROM a JOIN b ON a.k = b.k
  AND b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND WHERE """


def chain(streams: int) -> str:
    """A query of which every source takes all the work that it gets: a cube is monotone, and is flat where
    both are equal, so that no subdivision ends.
    """
    joins = " ".join(
        f"JOIN a a{i} ON a{i}.k = a0.k AND a{i}.ts BETWEEN a0.ts AND a0.ts + INTERVAL '5' SECOND"
        for i in range(1, streams)
    )
    cubes = []
    for i in range(streams):
        x, y = f"a{i}.x", f"a{(i + 1) % streams}.x"
        cubes.append(f"power({x}, 3) - 3 * power({x}, 2) * {y} + 3 * {x} * power({y}, 2) - power({y}, 3)")
    return f"CREATE ALERT q AS SELECT a0.k FROM a a0 {joins} WHERE {' + '.join(cubes)} > 5;"


def test_all_certificates_of_a_query_share_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    done = 0
    derivatives = interval_derivatives.derivatives

    def counted(expr: Expr, box: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal done
        boxes = max((side.lo.size for side in box.values() if isinstance(side, Interval)), default=1)
        done += boxes * subdivision._operators(expr)
        return derivatives(expr, box, *arguments, **more)

    monkeypatch.setattr(subdivision, "derivatives", counted)
    explain(catalog_of(STREAMS + chain(6)), "q")
    assert 100_000 < done < subdivision.QUERY_WORK + subdivision.TRIALS


def test_scalars_are_looked_for_in_some_values_of_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    substituted = scalars.substituted

    def counted(expr: Expr, old: Expr, new: Expr) -> Expr:
        nonlocal calls
        calls += 1
        return substituted(expr, old, new)

    monkeypatch.setattr(scalars, "substituted", counted)
    condition = " OR ".join(f"a.x * {i + 1} + b.x > {i}" for i in range(500))
    explain(catalog_of(STREAMS + PAIR + f"({condition});"), "q")
    assert 0 < calls <= 2 * scalars.MOST_REPLACED


def test_thousands_of_conjuncts_are_sorted_in_time_that_grows_with_their_number() -> None:
    conditions = " AND ".join(f"a.x > {i}" for i in range(3_000))
    catalog = catalog_of(STREAMS + PAIR + f"a.x + b.x > 3 AND {conditions};")
    began = time.process_time()
    found = analyse(catalog.alerts["q"].query, catalog)
    assert len(found.filters["a"]) == 3_000
    assert time.process_time() - began < 0.2
