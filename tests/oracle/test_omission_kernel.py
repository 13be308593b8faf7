"""The batch form against brute force: no window without its extremes, and no tuple more than needed."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.brackets import SEED, Bools, Recording, cases, fewest, missed, recording, signs, strict_rule

from tamis.omission import retained, retained_by_key

LONG = [pytest.param(1), pytest.param(40, marks=[pytest.mark.soundness, pytest.mark.timeout(0)])]


def keep(record: Recording, **rule: object) -> Bools:
    return retained(*record.arrays, record.interval, sides=record.sides, **rule)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", LONG)
def test_no_window_lacks_its_extremes(times: int) -> None:
    r = random.Random(f"windows {SEED}")
    for case in range(cases(0.3) * times):
        record = recording(r, r.choice((6, 12, 30)))
        rule = {"ties": r.choice(("fewest", "strict")), "max_delay": r.choice((None, None, r.randint(1, 12)))}
        got = keep(record, **rule)
        assert not missed(record, got), (SEED, case, record, rule, got)


@pytest.mark.parametrize("times", LONG)
def test_no_smaller_set_hits_every_window(times: int) -> None:
    r = random.Random(f"fewest {SEED}")
    for case in range(cases(0.15) * times):
        record = recording(r, 9)
        got = keep(record)
        assert not missed(record, got) and got.sum() == fewest(record), (SEED, case, record, got)


@pytest.mark.parametrize("times", LONG)
def test_strict_is_algorithm_1(times: int) -> None:
    r = random.Random(f"strict {SEED}")
    for case in range(cases(0.1) * times):
        record = recording(r)
        got = keep(record, ties="strict")
        assert got.sum() == strict_rule(record), (SEED, case, record, got)


def test_keys_do_not_touch_each_other_and_order_does_not_matter() -> None:
    r = random.Random(f"keys {SEED}")
    for case in range(cases(0.05)):
        first = recording(r)
        codes = r.sample((-(2**63), -7, 0, 1, 2, 3, 2**40, 2**63 - 1), r.randint(1, 4))
        records = {code: replace(recording(r), interval=first.interval, sides=first.sides) for code in codes}
        rows = [(code, t, v) for code, x in records.items() for t, v in zip(x.times, x.values, strict=True)]
        r.shuffle(rows)
        columns = (
            np.array([c for c, _, _ in rows], np.int64),
            [t for _, t, _ in rows],
            [v for _, _, v in rows],
        )
        rule = {"ties": r.choice(("fewest", "strict")), "max_delay": r.choice((None, r.randint(1, 12)))}
        got = retained_by_key(*columns, first.interval, sides=first.sides, **rule)  # type: ignore[arg-type]
        for code, record in records.items():
            mine = [i for i, row in enumerate(rows) if row[0] == code]
            kept = sorted((rows[i][1], rows[i][2] + 0.0) for i in mine if got[i])
            alone = keep(record, **rule)
            expected = sorted(
                (t, v + 0.0) for t, v, k in zip(record.times, record.values, alone, strict=True) if k
            )
            assert kept == expected, (SEED, case, rows, rule)


def test_max_delay_as_long_as_the_interval_changes_nothing() -> None:
    r = random.Random(f"delay {SEED}")
    for case in range(cases(0.05)):
        record = recording(r, 20)
        for ties in ("fewest", "strict"):
            got = keep(record, ties=ties, max_delay=record.interval + r.randint(0, 3))
            assert (got == keep(record, ties=ties)).all(), (SEED, case, record, got)


@pytest.mark.parametrize("times", LONG)
def test_every_tuple_has_its_stand_in_before_its_deadline(times: int) -> None:
    """In each window with a tuple there is a retained one as extreme, which came by the tuple's deadline."""
    r = random.Random(f"deadline {SEED}")
    for case in range(cases(0.1) * times):
        record, delay = recording(r, 14), r.randint(1, 8)
        got = keep(record, max_delay=delay)
        t, v = record.arrays
        for sign in signs(record.sides):
            for i in np.flatnonzero(~got):
                stand_in = got & (sign * v >= sign * v[i]) & (t <= t[i] + delay)
                # Among the windows with the tuple, one lacks a stand-in if two neighbouring ones leave
                # enough room.
                before = t[stand_in & (t <= t[i])].max(initial=-(10**6))
                after = t[stand_in & (t >= t[i])].min(initial=10**6)
                assert after - before <= record.interval or t[i] in (before, after), (
                    SEED,
                    case,
                    record,
                    delay,
                    i,
                )


tuples = st.lists(st.tuples(st.integers(0, 20), st.integers(-2, 2)), max_size=9)


@settings(max_examples=1000, deadline=None)
@given(tuples, st.integers(1, 25), st.sampled_from(("above", "below", "both")))
def test_hypothesis_finds_no_window_missed_and_no_tuple_too_many(
    rows: list[tuple[int, int]], interval: int, sides: str
) -> None:
    rows = sorted(rows)
    record = Recording([t for t, _ in rows], [float(v) for _, v in rows], interval, sides)
    got = keep(record)
    assert not missed(record, got)
    assert got.sum() == fewest(record)
