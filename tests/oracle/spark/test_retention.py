"""Retention of a group of keys, batch by batch, against `tamis.omit` and against every window."""

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

import tamis
from tamis.declarations.definitions import Rate
from tamis.omission.columns import Sides
from tamis.spark.group_processor import block, rows_of
from tamis.spark.retaining import Retention

pytestmark = pytest.mark.filterwarnings("ignore:frame. all times lie before 2000")


def rule_of(r: np.random.Generator, given: list[Reading]) -> Retention:
    """A random rule, with the rate that the readings have."""
    sides: Sides = r.choice(["above", "below", "both"])
    per = int(r.integers(1, 20))
    rate = Rate(greatest_count(given, per), per * SECOND)
    return Retention(int(r.integers(0, 12)) * SECOND, "v", "ts", ("k",), sides, rate=rate)


def stored(held: Any) -> Any:
    """The rows as they come back from a checkpoint."""
    return {side: rows_of([block(rows)]) for side, rows in held.items()}


def shown(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows without their number: of readings that are equal, any may be retained."""
    return sorted((one["k"], one["ts"], one["v"]) for one in rows.to_pylist())


def omitted(given: list[Reading], rule: Retention) -> list[tuple[Any, ...]]:
    """The readings that `tamis.omit` retains."""
    interval = f"{rule.interval}us"
    return shown(tamis.omit(table(given), interval, value="v", key="k", sides=rule.sides))


def every_window_has_its_extremes(given: list[Reading], rows: pa.Table, rule: Retention) -> bool:
    """Brute force: the windows that begin and those that end at a reading."""
    kept = {one["n"] for one in rows.to_pylist()}
    length = rule.interval // SECOND
    for one in given:
        for start in (one.time, one.time - length):
            inside = [x for x in given if x.key == one.key and start <= x.time <= start + length]
            for side, best in (("above", max), ("below", min)):
                extreme = best(x.value for x in inside)
                if rule.sides in (side, "both") and not any(
                    x.number in kept and x.value == extreme for x in inside
                ):
                    return False
    return True


@pytest.mark.parametrize("times", also_long(20))
def test_batches_and_restarts_do_not_change_what_is_retained(times: int) -> None:
    r = np.random.default_rng((SEED, 61))
    for case in range(cases(0.015) * times):
        given = readings(r, 60)
        rule, disorder = rule_of(r, given), int(r.choice([0, 3, 20]))
        out: list[pa.Table] = []
        held: Any = {}
        arrived = arrivals(r, given, disorder)
        for batch, before, watermark in batches(r, arrived, disorder):
            found = rule.run(held, {0: table(batch)} if batch else {}, before, watermark)
            held = stored(found.held)
            counts = found.counts
            assert counts.taken == len(batch) and counts.late == counts.unusable == 0
            assert counts.bound is not None and counts.held <= counts.bound, (SEED, case)
            assert counts.held == sum(map(len, held.values()))
            if found.given is not None:
                out.append(found.given)
        rows = pa.concat_tables(out)
        assert shown(rows) == omitted(given, rule), (SEED, case)
        assert shown(rule.retained(table(given))) == omitted(given, rule), (SEED, case)
        assert every_window_has_its_extremes(given, rows, rule), (SEED, case)
        assert not any(map(len, held.values()))


def test_late_readings_are_retained_and_take_no_part() -> None:
    r = np.random.default_rng((SEED, 62))
    many = 0
    for case in range(cases(0.01)):
        given = readings(r, 60)
        rule = rule_of(r, given)
        out: list[pa.Table] = []
        held: Any = {}
        late: list[Reading] = []
        arrived = arrivals(r, given, 20)
        for batch, before, watermark in batches(r, arrived, 2):
            found = rule.run(held, {0: table(batch)} if batch else {}, before, watermark)
            behind = [one for one in batch if one.time * SECOND < before]
            assert found.counts.late == len(behind), (SEED, case)
            late += behind
            held = found.held
            if found.given is not None:
                out.append(found.given)
        in_time = [one for one in given if one not in late]
        expected = sorted(shown(table(late)) + (omitted(in_time, rule) if in_time else []))
        assert shown(pa.concat_tables(out)) == expected, (SEED, case)
        many += len(late)
    assert many > 100


def test_readings_that_cannot_be_compared_are_retained() -> None:
    rows = pa.table(
        {
            "k": ["a", "a", "a", None, None, None],
            "ts": pa.array([0, 1, None, 0, 1, 2], pa.timestamp("s")).cast(pa.timestamp("us")),
            "v": [float("nan"), None, 1.0, 2.0, 1.0, 2.0],
            "n": list(range(6)),
        }
    )
    rule = Retention(10 * SECOND, "v", "ts", ("k",), "above")
    kept = [0, 1, 2, 3, 5]  # NULL is a key
    assert rule.retained(rows)["n"].to_pylist() == kept
    found = rule.run({}, {0: rows}, -(2**63), 100 * SECOND)
    assert found.given is not None and found.given.num_rows == len(kept) and found.counts.unusable == 3
    large = rows.set_column(2, "v", pa.array([2**53 + 1, 2**53 + 2, 0, 1, 0, 1]))
    assert rule.retained(large).num_rows == len(kept)


def test_rows_may_be_behind_the_watermark_by_a_lag() -> None:
    rule = Retention(SECOND, "v", "ts", ("k",), "above")
    reading = table([Reading("a", 5, 1.0, 0)])
    assert rule.run({}, {0: reading}, 6 * SECOND, 6 * SECOND).counts.late == 1
    assert replace(rule, lag=SECOND).run({}, {0: reading}, 6 * SECOND, 6 * SECOND).counts.late == 0
