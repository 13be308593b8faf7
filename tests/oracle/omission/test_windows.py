"""Hopping and tumbling windows against brute force: batch form and stream form."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.omission.brute_force import Bools, Recording, recording, signs
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.omission.window_batch import retained_in_windows
from tamis.omission.window_stream import WindowState

LONG = also_long(40)
END = 2**63 - 1


@dataclass(frozen=True)
class Rule:
    """Windows [offset + k * slide, offset + k * slide + size) for every whole number k."""

    slide: int
    size: int
    sides: str
    offset: int = 0

    def holding(self, time: int) -> list[int]:
        """The starts of the windows that hold a time."""
        near = range(time - self.size - self.slide, time + self.slide + 1)
        starts = [start for start in near if (start - self.offset) % self.slide == 0]
        return [start for start in starts if start <= time < start + self.size]


def rule(r: random.Random) -> Rule:
    slide = r.choice((1, 2, 3, 4, 7, 10))
    size = slide * r.choice((1, 1, 1, 2, 2, 3, 4, 6))
    return Rule(slide, size, r.choice(("above", "below", "both")), r.choice((0, r.randrange(slide))))


def extremes(rows: list[tuple[int, float]], rule: Rule) -> list[set[int]]:
    """For every window that holds a tuple, and every side: the tuples that attain the extreme value."""
    windows: dict[int, set[int]] = {}
    for i, (time, _) in enumerate(rows):
        for start in rule.holding(time):
            windows.setdefault(start, set()).add(i)
    found = []
    for inside in windows.values():
        for sign in signs(rule.sides):
            best = max(sign * rows[i][1] for i in inside)
            found.append({i for i in inside if sign * rows[i][1] == best})
    return found


def missed(rows: list[tuple[int, float]], rule: Rule, keep: set[int]) -> int:
    return sum(not wanted & keep for wanted in extremes(rows, rule))


def fewest(rows: list[tuple[int, float]], rule: Rule) -> int:
    """The least number of tuples that no window misses, by trying all sets."""
    wanted = np.array(sorted({sum(1 << i for i in some) for some in extremes(rows, rule)}), np.int64)
    sets = np.arange(1 << len(rows))
    hits = np.ones(len(sets), np.bool_)
    for some in wanted:
        hits &= (sets & some) != 0
    return min(int(s).bit_count() for s in sets[hits])


def batch(record: Recording, rule: Rule, max_delay: int | None = None) -> Bools:
    keys = np.zeros(len(record.times), np.int64)
    return retained_in_windows(
        keys,
        *record.arrays,
        rule.slide,
        rule.size,
        sides=rule.sides,  # type: ignore[arg-type]
        max_delay=max_delay,
        offset=rule.offset,
    )


def pairs(record: Recording) -> list[tuple[int, float]]:
    return list(zip(record.times, record.values, strict=True))


@pytest.mark.parametrize("times", LONG)
def test_no_window_lacks_its_extremes_and_no_smaller_set_will_do(times: int) -> None:
    r = random.Random(f"windows fewest {SEED}")
    for case in range(cases(0.06) * times):
        record, windows = recording(r, 9), rule(r)
        keep = batch(record, windows)
        chosen = set(np.flatnonzero(keep).tolist())
        assert not missed(pairs(record), windows, chosen), (SEED, case, record, windows, keep)
        assert len(chosen) == fewest(pairs(record), windows), (SEED, case, record, windows, keep)


@pytest.mark.parametrize("times", LONG)
def test_every_tuple_has_its_stand_in_before_its_deadline(times: int) -> None:
    r = random.Random(f"windows deadline {SEED}")
    for case in range(cases(0.03) * times):
        record, windows, delay = recording(r, r.choice((12, 30))), rule(r), r.randint(1, 15)
        keep = batch(record, windows, delay)
        rows = pairs(record)
        assert not missed(rows, windows, set(np.flatnonzero(keep).tolist())), (SEED, case, record, windows)
        for i, (time, value) in enumerate(rows):
            for start in windows.holding(time):
                for sign in signs(windows.sides):
                    assert any(
                        keep[j]
                        and start <= t < start + windows.size
                        and sign * v >= sign * value
                        and t <= time + delay
                        for j, (t, v) in enumerate(rows)
                    ), (SEED, case, record, windows, delay, i)


def test_keys_do_not_touch_each_other_and_order_does_not_matter() -> None:
    r = random.Random(f"windows keys {SEED}")
    for case in range(cases(0.03)):
        windows = rule(r)
        records = {code: recording(r) for code in r.sample((-(2**63), -7, 0, 1, 2**63 - 1), r.randint(1, 4))}
        rows = [(code, t, v) for code, x in records.items() for t, v in pairs(x)]
        r.shuffle(rows)
        delay = r.choice((None, r.randint(1, 12)))
        got = retained_in_windows(
            np.array([c for c, _, _ in rows], np.int64),
            np.array([t for _, t, _ in rows], np.int64),
            [v for _, _, v in rows],
            windows.slide,
            windows.size,
            sides=windows.sides,  # type: ignore[arg-type]
            max_delay=delay,
            offset=windows.offset,
        )
        for code, record in records.items():
            kept = sorted(v + 0.0 for (c, _, v), k in zip(rows, got, strict=True) if c == code and k)
            alone = batch(record, windows, delay)
            if delay is None:
                expected = sorted(v + 0.0 for v, k in zip(record.values, alone, strict=True) if k)
                assert kept == expected, (SEED, case, rows, windows)


@dataclass
class Play:
    """Runs a state over arrivals (key, time, value) and checks, at every step, what can be checked then."""

    arrivals: list[tuple[int, int, float]]
    rule: Rule
    max_delay: int | None = None
    disorder: int = 0
    at: dict[int, int] = field(default_factory=dict)  # when each handle arrived,
    published: dict[int, int] = field(default_factory=dict)  # when it was published,
    dropped: set[int] = field(default_factory=set)  # or that it wasn't

    def __post_init__(self) -> None:
        rule = self.rule
        sides, offset = rule.sides, rule.offset
        self.state = WindowState(rule.slide, rule.size, sides, self.max_delay, offset)  # type: ignore[arg-type]
        self.watermark, self.seen, self.now = -(2**63), [], 0  # type: ignore[var-annotated]

    def step(self, ids: list[int], now: int) -> None:
        """Offer these arrivals at time `now`, after the deadlines that come before it."""
        while (due := self.state.next_deadline()) is not None and due < now:
            assert due >= self.now, "a deadline lies in the past"
            self.decide(due)
        rows = [self.arrivals[i] for i in ids]
        self.state.offer([k for k, _, _ in rows], [t for _, t, _ in rows], [v for _, _, v in rows], ids, now)
        self.seen += ids
        self.at.update(dict.fromkeys(ids, now))
        if rows:
            self.watermark = max(self.watermark, max(t for _, t, _ in rows) - self.disorder)
        self.decide(now)

    def decide(self, now: int) -> None:
        self.now = now
        decided = self.state.decide(self.watermark, now)
        for i in decided.published.tolist():
            assert i not in self.published and i not in self.dropped
            self.published[i] = now
        assert self.dropped.isdisjoint(decided.dropped.tolist())
        self.dropped.update(i for i in decided.dropped.tolist() if i not in self.published)
        held = sorted(set(self.seen) - self.published.keys() - self.dropped)
        assert self.state.held_ids().tolist() == held
        ids, times = self.state.held()
        assert {i: self.arrivals[i][1] for i in held} == dict(zip(ids.tolist(), times.tolist(), strict=True))
        # The watermark is less than a window past whatever is held.
        assert all(self.watermark - self.arrivals[i][1] < self.rule.size for i in held)
        recent = [i for i in self.published if self.watermark - self.arrivals[i][1] <= 2 * self.rule.size]
        assert self.state.size() <= 2 * (len(held) + len(recent))
        due = self.state.next_deadline()
        assert due is None or due > now

    def other_entry_publishes(self, i: int) -> None:
        self.state.note_published([i, 10**9])
        if i not in self.dropped:
            self.published.setdefault(i, self.now)

    def check(self) -> int:
        """At the end: all is decided, no window misses its extremes, nothing came too late. How many more
        were published than the batch form retains."""
        self.watermark = END
        while (due := self.state.next_deadline()) is not None:
            self.decide(due)
        self.decide(self.now)
        assert len(self.published) + len(self.dropped) == len(self.arrivals) and self.state.size() == 0
        surplus = len(self.published)
        for key in {k for k, _, _ in self.arrivals}:
            mine = [i for i, (k, _, _) in enumerate(self.arrivals) if k == key]
            rows = [self.arrivals[i][1:] for i in mine]
            kept = {n for n, i in enumerate(mine) if i in self.published}
            assert not missed(rows, self.rule, kept)
            record = Recording([t for t, _ in rows], [v for _, v in rows], 1, self.rule.sides)
            surplus -= int(batch(record, self.rule).sum())
            if self.max_delay is not None:
                self.check_delays(mine)
        return surplus

    def check_delays(self, mine: list[int]) -> None:
        """In each window with a tuple there is one as extreme that was published by the tuple's deadline."""
        for i in mine:
            _, time, value = self.arrivals[i]
            due = self.at[i] + (self.max_delay or 0)
            for start in self.rule.holding(time):
                for s in signs(self.rule.sides):
                    assert any(
                        start <= self.arrivals[j][1] < start + self.rule.size
                        and s * self.arrivals[j][2] >= s * value
                        and self.published.get(j, END) <= due
                        for j in mine
                    ), (i, s, due)


def play(r: random.Random, most: int) -> Play:
    disorder = r.choice((0, 0, 1, 3, 10, 100))
    arrivals = []
    codes = (-(2**63), *range(30), 2**63 - 1)
    for key in r.sample(codes, r.choice((1, 1, 2, 3, 20))):
        arrivals += [(key, t, v) for t, v in pairs(recording(r, most))]
    arrivals.sort(key=lambda x: x[1] + r.uniform(0, disorder))
    latest, on_time = -(10**9), []
    for x in arrivals:
        if x[1] >= latest - disorder:
            on_time.append(x)
        latest = max(latest, x[1])
    return Play(on_time, rule(r), r.choice((None, None, r.randint(0, 12))), disorder)


@pytest.mark.parametrize("times", LONG)
def test_the_stream_form_misses_no_window_is_never_late_and_keeps_the_fewest(times: int) -> None:
    r = random.Random(f"windows stream {SEED}")
    case = 0
    while case < cases(0.02) * times:
        p, now, others = play(r, 14), 0, r.random() < 0.2
        keys = len({key for key, _, _ in p.arrivals})
        case += max(1, keys)
        size = r.choice((1, 2, 5, 40)) * max(1, keys // 2)
        try:
            i = 0
            while i < len(p.arrivals):
                n, now = r.randint(0, size), now + r.choice((0, 1, 1, 3, 10))
                p.step(list(range(i, min(i + n, len(p.arrivals)))), now)
                i += n
                if others and p.seen:
                    p.other_entry_publishes(r.choice(p.seen))
            surplus = p.check()
            assert surplus >= 0
            # Whatever the order of arrival.
            assert others or p.max_delay is not None or surplus == 0
        except AssertionError as e:
            raise AssertionError((SEED, case, p)) from e


tuples = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-8, 12), st.integers(-2, 2), st.booleans()), max_size=9
)
rules = st.builds(
    lambda slide, n, sides: Rule(slide, slide * n, sides),
    st.integers(1, 8),
    st.integers(1, 5),
    st.sampled_from(("above", "below", "both")),
)


@settings(max_examples=200, deadline=None)
@given(tuples, rules, st.none() | st.integers(0, 9))
def test_hypothesis_finds_no_window_missed(
    rows: list[tuple[int, int, int, bool]], rule: Rule, max_delay: int | None
) -> None:
    p = Play([(k, t, float(v)) for k, t, v, _ in rows], rule, max_delay, disorder=100)
    waiting: list[int] = []
    for i, row in enumerate(rows):
        waiting.append(i)
        if row[3]:
            p.step(waiting, i)
            waiting = []
    p.step(waiting, len(rows))
    surplus = p.check()
    assert surplus == 0 or max_delay is not None


def test_an_entry_that_ends_hands_back_all_that_it_holds() -> None:
    r = random.Random(f"windows flush {SEED}")
    for case in range(cases(0.01)):
        p = play(r, 12)
        p.step(list(range(len(p.arrivals))), 0)
        p.state.offer([0], [10**6], [0.0], [len(p.arrivals)], 0)
        held = sorted(set(p.seen) - p.published.keys() - p.dropped)
        assert p.state.flush().tolist() == [*held, len(p.arrivals)], (SEED, case, p)
        assert p.state.size() == 0 and p.state.held_ids().size == 0 and p.state.next_deadline() is None
