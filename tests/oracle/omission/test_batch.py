"""The batch form against brute force: no window loses an extreme, and no tuple is retained without need."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.omission.brute_force import (
    Bools,
    Recording,
    fewest,
    missed,
    recording,
    signs,
)
from tests.oracle.omission.minimum_retention import ROWS, RULES, compare
from tests.oracle.omission.random_recordings import Recordings, lacking_in_time, recordings
from tests.oracle.omission.random_recordings import missed as all_missed
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.omission import retained, retained_by_key

LONG = also_long(20)


def kept(record: Recordings, **rule: object) -> Bools:
    keep = retained_by_key(*record.columns, record.interval, sides=record.sides, **rule)  # type: ignore[arg-type]
    return record.masked(keep)


@pytest.mark.parametrize("times", LONG)
def test_no_window_lacks_its_extremes(times: int) -> None:
    r = np.random.default_rng((SEED, 1))
    for case in range(-(-cases(1.0) * times // ROWS)):
        record = recordings(r, ROWS, int(r.choice((6, 12, 30))))
        delay = None if r.random() < 0.6 else int(r.integers(1, 13))
        for ties in ("fewest", "strict"):
            wrong = all_missed(record, kept(record, ties=ties, max_delay=delay))
            assert not wrong.any(), (SEED, case, ties, delay, record.row(int(wrong.argmax())))


@pytest.mark.parametrize("times", LONG)
def test_no_smaller_set_hits_every_window(times: int) -> None:
    """An integer program finds none smaller, of the batch form or of the stream form in order."""
    for rule, sides, found in compare(cases(0.12) * times, SEED):
        if rule in ("batch form", "stream form, in order"):
            assert found.larger == 0, (SEED, rule, sides, found)
        else:
            assert rule in RULES and found.larger < found.cases


def test_no_smaller_set_hits_every_window_of_a_few_tuples() -> None:
    """Nor does the trial of all sets, which needs no program."""
    r = random.Random(f"fewest {SEED}")
    for case in range(cases(0.03)):
        record = recording(r, 9)
        keep = retained(*record.arrays, record.interval, sides=record.sides)  # type: ignore[arg-type]
        assert not missed(record, keep) and keep.sum() == fewest(record), (SEED, case, record, keep)


def left_by_algorithm_1(record: Recordings) -> Bools:
    """Tuples that aren't bracketed on every side by strictly more extreme ones; of exact duplicates the
    first."""
    t, there = record.times, record.there[:, None, :]
    left = np.zeros(t.shape, np.bool_)
    before, after = t[:, None, :] <= t[:, :, None], t[:, None, :] >= t[:, :, None]
    for sign in signs(record.sides):
        more = there & (sign * record.values[:, None, :] > sign * record.values[:, :, None])
        last = np.where(more & before, t[:, None, :], -(10**9)).max(axis=2)
        first = np.where(more & after, t[:, None, :], 10**9).min(axis=2)
        left |= first - last > record.interval
    same = (t[:, None, :] == t[:, :, None]) & (record.values[:, None, :] == record.values[:, :, None])
    first_of_same = ~np.tril(same & there, -1).any(axis=2)
    answer: Bools = left & record.there & first_of_same
    return answer


@pytest.mark.parametrize("times", LONG)
def test_strict_is_algorithm_1(times: int) -> None:
    r = np.random.default_rng((SEED, 2))
    for case in range(-(-cases(0.3) * times // ROWS)):
        record = recordings(r, ROWS, int(r.choice((6, 20))))
        expected, got = left_by_algorithm_1(record), kept(record, ties="strict")
        for i in np.flatnonzero((got != expected).any(axis=1)):
            # Of exact duplicates another one may be left.
            pairs = [
                sorted(zip(record.times[i][k], record.values[i][k], strict=True))
                for k in (got[i], expected[i])
            ]
            assert pairs[0] == pairs[1], (SEED, case, record.row(int(i)), got[i])


@pytest.mark.parametrize("times", LONG)
def test_every_tuple_has_its_stand_in_before_its_deadline(times: int) -> None:
    """In each window with a tuple there is a retained one as extreme, which came by the tuple's deadline."""
    r = np.random.default_rng((SEED, 3))
    for case in range(-(-cases(0.3) * times // ROWS)):
        record, delay = recordings(r, ROWS, 14), int(r.integers(1, 9))
        for ties in ("fewest", "strict"):
            keep = kept(record, ties=ties, max_delay=delay)
            published = np.where(keep, record.times, 10**9)
            wrong = (lacking_in_time(record, record.times, published, delay) & ~keep).any(axis=1)
            assert not wrong.any(), (SEED, case, ties, delay, record.row(int(wrong.argmax())))


def test_max_delay_as_long_as_the_interval_changes_nothing() -> None:
    r = np.random.default_rng((SEED, 4))
    for case in range(-(-cases(0.1) // ROWS)):
        record = recordings(r, ROWS, 20)
        for ties in ("fewest", "strict"):
            got = kept(record, ties=ties, max_delay=record.interval + int(r.integers(0, 4)))
            assert (got == kept(record, ties=ties)).all(), (SEED, case, ties, record)


def long_recording(
    r: np.random.Generator,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Keys, times and values of thousands of tuples: more than are looked at together; ramps that pile up."""
    n = int(r.choice((600, 2_500, 30_000)))
    gaps = np.where(r.random(n) < 0.01, 5_000, 1)
    steps = (r.integers(1, 4, n), r.integers(0, 3, n), gaps)[r.integers(3)]
    times = np.cumsum(steps) * int(r.choice((1, 1, 10**9))) + int(r.choice((0, -(2**63), 2**62)))
    if r.random() < 0.1:
        times[n // 2 :] = 2**63 - n + np.arange(n - n // 2)
    walk, levels = np.cumsum(r.normal(size=n)), np.floor(r.random(n) * r.choice((2, 9, 1_000)))
    ramp = np.arange(n) * float(r.choice((-1, 1)))
    values = np.stack([r.random(n), walk, np.rint(walk), levels, ramp, ramp + levels])[r.integers(6)]
    keys = np.sort(r.integers(0, int(r.choice((1, 3, 40))), n))
    some = r.permutation(n) if r.random() < 0.5 else np.arange(n)
    return keys[some], times[some], values[some]


def test_long_recordings_are_sifted_right() -> None:
    """As with a delay of the interval, which lets nothing be sifted before the whole rule is applied."""
    r = np.random.default_rng((SEED, 5))
    for case in range(cases(0.005)):
        columns = long_recording(r)
        interval = int(r.choice((1, 7, 100, 3_000, 10**10, 2**64)))
        for sides in ("above", "below", "both"):
            for ties in ("fewest", "strict"):
                rule = {"sides": sides, "ties": ties}
                got = retained_by_key(*columns, interval, **rule)  # type: ignore[arg-type]
                whole = retained_by_key(*columns, interval, max_delay=interval, **rule)  # type: ignore[arg-type]
                assert (got == whole).all(), (SEED, case, interval, rule)


def test_keys_do_not_touch_each_other_and_order_does_not_matter() -> None:
    r = random.Random(f"keys {SEED}")
    for case in range(cases(0.03)):
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
            ours = sorted((rows[i][1], rows[i][2] + 0.0) for i in mine if got[i])
            alone = retained(*record.arrays, record.interval, sides=record.sides, **rule)  # type: ignore[arg-type]
            expected = sorted(
                (t, v + 0.0) for t, v, k in zip(record.times, record.values, alone, strict=True) if k
            )
            assert ours == expected, (SEED, case, rows, rule)


tuples = st.lists(st.tuples(st.integers(0, 20), st.integers(-2, 2)), max_size=9)


@settings(max_examples=500, deadline=None)
@given(tuples, st.integers(1, 25), st.sampled_from(("above", "below", "both")))
def test_hypothesis_finds_no_window_missed_and_no_tuple_too_many(
    rows: list[tuple[int, int]], interval: int, sides: str
) -> None:
    rows = sorted(rows)
    record = Recording([t for t, _ in rows], [float(v) for _, v in rows], interval, sides)
    keep = retained(*record.arrays, record.interval, sides=record.sides)  # type: ignore[arg-type]
    assert not missed(record, keep)
    assert keep.sum() == fewest(record)
