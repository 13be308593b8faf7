"""The stream form against brute force, with random orders of arrival, batches, watermarks and deadlines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.omission.brute_force import Bools
from tests.oracle.omission.random_recordings import Ints, recordings
from tests.oracle.omission.stream_runs import Rule, StreamRun, arrivals
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.omission import retained_by_key

LONG = also_long(20)
ROWS = 100


def play(r: np.random.Generator, rows: int = ROWS) -> StreamRun:
    """Arrivals of this many keys in random order, and a random rule."""
    record = recordings(r, rows, int(r.choice((6, 12))))
    disorder = int(r.choice((0, 0, 1, 3, 10, 100)))
    delay = None if r.random() < 0.6 else int(r.integers(0, 13))
    return StreamRun(*arrivals(r, record, disorder), Rule(record.interval, record.sides, delay, disorder))


@pytest.mark.parametrize("times", LONG)
def test_no_window_lacks_its_extremes_and_nothing_comes_too_late(times: int) -> None:
    r = np.random.default_rng((SEED, 11))
    for case in range(-(-cases(0.4) * times // ROWS)):
        p = play(r)
        try:
            p.run(r, int(r.choice((20, 50, 400))), others=r.random() < 0.2)
        except AssertionError as e:
            raise AssertionError((SEED, case, p)) from e


@pytest.mark.parametrize("times", LONG)
def test_of_one_key_tuple_by_tuple(times: int) -> None:
    r = np.random.default_rng((SEED, 12))
    for case in range(cases(0.01) * times):
        p = play(r, 1)
        try:
            p.run(r, int(r.choice((1, 2, 5))), others=r.random() < 0.2)
        except AssertionError as e:
            raise AssertionError((SEED, case, p)) from e


@pytest.mark.parametrize("times", LONG)
def test_in_order_it_retains_as_few_as_the_batch_form(times: int) -> None:
    r = np.random.default_rng((SEED, 13))
    for case in range(-(-cases(0.2) * times // ROWS)):
        record = recordings(r, ROWS, 30)
        columns = arrivals(r, record, 0)
        p = StreamRun(*columns, Rule(record.interval, record.sides))
        # What comes at one time is decided at once, or the first of it leaves too early.
        ends = np.flatnonzero(np.diff(p.times)) + 1
        for end in r.permutation(ends)[: int(r.integers(1, 40))] if len(ends) else ():
            p.step(max(0, int(end) - p.seen), 0)
        p.step(len(p.times), 0)
        p.end()
        batch = retained_by_key(*columns, record.interval, sides=record.sides)  # type: ignore[arg-type]
        wanted = np.bincount(columns[0][batch], minlength=ROWS)
        got = np.bincount(columns[0][p.published < 2**63 - 1], minlength=ROWS)
        assert (got == wanted).all(), (SEED, case, record.row(int((got != wanted).argmax())))


def alarms(a: StreamRun, b: StreamRun, limits: Ints, lag: int, taken: tuple[Bools, Bools]) -> Bools:
    """Of each key, which pairs of the first and second stream's tuples join and raise an alarm.

    They join where the second comes 0 to `interval` ticks after the first, less `lag`; the condition is a sum
    above a limit, below it, or a square above it, as the sides ask.
    """
    gap = b.t[:, None, :] - a.t[:, :, None] + lag
    total = a.v[:, :, None] + b.v[:, None, :]
    limit = limits[:, None, None]
    raised = {"above": total > limit, "below": total < limit, "both": total**2 > limit**2}[a.rule.sides]
    pairs = taken[0][:, :, None] & taken[1][:, None, :]
    return pairs & (gap >= 0) & (gap <= a.rule.interval) & raised


@pytest.mark.parametrize("times", LONG)
def test_no_alarm_of_the_full_join_is_missed_or_comes_later_than_max_delay(times: int) -> None:
    """Two streams that both omit: each alarm has one of tuples within the interval of its own, in time."""
    r = np.random.default_rng((SEED, 14))
    checked = 0
    for case in range(-(-cases(0.2) * times // ROWS)):
        first = recordings(r, ROWS, 8, finite=True)
        second = recordings(r, ROWS, 8, finite=True)
        # Both begin at the same time, or few would join.
        second = replace(second, times=second.times + (first.times - second.times)[:, :1])
        disorder, delay = int(r.choice((0, 3, 30))), int(r.integers(0, 13))
        rule = Rule(first.interval, first.sides, delay, disorder)
        a, b = (StreamRun(*arrivals(r, record, disorder), rule) for record in (first, second))
        for p in (a, b):
            p.run(r, int(r.choice((20, 60, 400))))
        both = np.intersect1d(a.keys, b.keys)
        a_rows, b_rows = (np.searchsorted(np.unique(p.keys), both) for p in (a, b))
        for p, rows in ((a, a_rows), (b, b_rows)):
            p.grid, p.t, p.v = p.grid[rows], p.t[rows], p.v[rows]
        limits, lag = r.integers(-5, 12, len(both)), int(r.integers(0, first.interval + 1))
        full = alarms(a, b, limits, lag, (a.grid >= 0, b.grid >= 0))
        out = a.rows(a.published), b.rows(b.published)
        kept = ((a.grid >= 0) & (out[0] < 2**63 - 1), (b.grid >= 0) & (out[1] < 2**63 - 1))
        found = alarms(a, b, limits, lag, kept)
        came = np.maximum(a.rows(a.arrived)[:, :, None], b.rows(b.arrived)[:, None, :])
        raised = np.maximum(out[0][:, :, None], out[1][:, None, :])
        checked += int(full.sum())
        for key, i, j in zip(*np.nonzero(full), strict=True):
            near = (abs(a.t[key] - a.t[key, i]) <= rule.interval)[:, None] & (
                abs(b.t[key] - b.t[key, j]) <= rule.interval
            )
            stands_in = found[key] & near & (raised[key] <= came[key, i, j] + delay)
            assert stands_in.any(), (
                SEED,
                case,
                a.record.row(key),
                b.record.row(key),
                delay,
                limits[key],
                lag,
            )
    assert checked > cases(0.2), "too few alarms to say anything"


rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(-2, 2), st.booleans()), max_size=10
)


@settings(max_examples=500, deadline=None)
@given(rows, st.integers(1, 20), st.sampled_from(("above", "below", "both")), st.none() | st.integers(0, 9))
def test_hypothesis_finds_no_order_of_arrival_that_misses_a_window(
    rows: list[tuple[int, int, int, bool]], interval: int, sides: str, max_delay: int | None
) -> None:
    keys, times = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    values = np.array([row[2] for row in rows], np.float64)
    p = StreamRun(keys, times, values, Rule(interval, sides, max_delay, disorder=100))
    begin = 0
    for i, row in enumerate(rows):
        if row[3]:
            p.step(i + 1 - begin, i)
            begin = i + 1
    p.step(len(rows), len(rows))
    p.end()


def test_an_entry_that_ends_hands_back_all_that_it_holds() -> None:
    r = np.random.default_rng((SEED, 15))
    for case in range(cases(0.02)):
        p = play(r, 3)
        p.step(int(r.integers(0, 20)), 0)
        n = len(p.times)
        p.state.offer([0], [10**6], [0.0], [n], 0)
        held = np.flatnonzero((p.published[: p.seen] == 2**63 - 1) & ~p.dropped[: p.seen])
        assert p.state.flush().tolist() == [*held, n], (SEED, case, p)
        assert p.state.size() == 0 and p.state.held_ids().size == 0 and p.state.next_deadline() is None
