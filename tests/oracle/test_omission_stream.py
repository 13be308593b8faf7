"""The stream form against brute force: any order of arrival, batches, watermarks, deadlines, other
entries."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.brackets import SEED, Recording, cases, missed, recording, signs

from tamis.omission import OmissionState, retained

LONG = [pytest.param(1), pytest.param(40, marks=[pytest.mark.soundness, pytest.mark.timeout(0)])]
END = 2**63 - 1


@dataclass
class Arrival:
    """A tuple in the order of arrival."""

    key: int
    time: int
    value: float


@dataclass
class Play:
    """Runs a state over arrivals and checks, at every step, what can be checked then."""

    arrivals: list[Arrival]
    interval: int
    sides: str
    max_delay: int | None = None
    disorder: int = 0
    at: dict[int, int] = field(default_factory=dict)  # when each handle arrived,
    published: dict[int, int] = field(default_factory=dict)  # when it was published,
    dropped: set[int] = field(default_factory=set)  # or that it wasn't

    def __post_init__(self) -> None:
        self.state = OmissionState(self.interval, self.sides, self.max_delay)  # type: ignore[arg-type]
        self.watermark, self.seen, self.now = -(2**63), [], 0  # type: ignore[var-annotated]

    def step(self, ids: list[int], now: int) -> None:
        """Offer these arrivals at time `now`, after the deadlines that come before it."""
        while (due := self.state.next_deadline()) is not None and due < now:
            assert due >= self.now, "a deadline lies in the past"
            self.decide(due)
        rows = [self.arrivals[i] for i in ids]
        keys, times, values = [x.key for x in rows], [x.time for x in rows], [x.value for x in rows]
        self.state.offer(keys, times, values, ids, now)
        self.seen += ids
        self.at.update(dict.fromkeys(ids, now))
        if rows:
            self.watermark = max(self.watermark, max(times) - self.disorder)
        self.decide(now)
        for i in ids:
            assert i in self.published or not self.leaves_at_once(i), i

    def leaves_at_once(self, i: int) -> bool:
        """On some side no tuple seen within the interval before it is more extreme, nor equal and
        published."""
        x = self.arrivals[i]
        mine = [(j, self.arrivals[j]) for j in self.seen if j != i and self.arrivals[j].key == x.key]
        before = [(j, y) for j, y in mine if 0 <= x.time - y.time <= self.interval]
        if any(y.time == x.time and y.value == x.value for _, y in mine):
            return False
        return any(
            not any(
                s * y.value > s * x.value or (y.value == x.value and j in self.published) for j, y in before
            )
            for s in signs(self.sides)
        )

    def decide(self, now: int) -> None:
        self.now = now
        decided = self.state.decide(self.watermark, now)
        for i in decided.published.tolist():
            assert i not in self.published and i not in self.dropped
            self.published[i] = now
        assert self.dropped.isdisjoint(decided.dropped.tolist()) and not self.published.keys() & set(
            decided.dropped.tolist()
        )
        self.dropped.update(decided.dropped.tolist())
        held = sorted(set(self.seen) - self.published.keys() - self.dropped)
        assert self.state.held_ids().tolist() == held
        assert self.state.oldest_held_time() == min((self.arrivals[i].time for i in held), default=None)
        recent = [i for i in self.published if self.watermark - self.arrivals[i].time <= self.interval]
        assert self.state.size() <= 2 * (len(held) + len(recent))
        due = self.state.next_deadline()
        assert due is None or due > now

    def other_entry_publishes(self, i: int) -> None:
        self.state.note_published([i, 10**9])
        if i not in self.dropped:
            self.published.setdefault(i, self.now)

    def check(self) -> None:
        """At the end: all is decided, no window misses its extremes, and nothing came too late."""
        self.watermark = END
        while (due := self.state.next_deadline()) is not None:
            self.decide(due)
        self.decide(self.now)
        assert len(self.published) + len(self.dropped) == len(self.arrivals) and self.state.size() == 0
        for key in {x.key for x in self.arrivals}:
            mine = sorted(
                (i for i, x in enumerate(self.arrivals) if x.key == key), key=lambda i: self.arrivals[i].time
            )
            rows = [self.arrivals[i] for i in mine]
            record = Recording([x.time for x in rows], [x.value for x in rows], self.interval, self.sides)
            assert not missed(record, np.array([i in self.published for i in mine]))
            if self.max_delay is not None:
                self.check_delays(mine)

    def check_delays(self, mine: list[int]) -> None:
        """Every window with a tuple holds one as extreme that was published by the tuple's deadline."""
        for i in mine:
            x, due = self.arrivals[i], self.at[i] + (self.max_delay or 0)
            for s in signs(self.sides):
                on_time = [
                    self.arrivals[j].time
                    for j in mine
                    if s * self.arrivals[j].value >= s * x.value and self.published.get(j, END) <= due
                ]
                before = max((t for t in on_time if t <= x.time), default=-(10**9))
                after = min((t for t in on_time if t >= x.time), default=10**9)
                assert after - before <= self.interval or x.time in (before, after), (i, s, due)


def play(r: random.Random, most: int) -> Play:
    first = recording(r, most)
    disorder = r.choice((0, 0, 1, 3, 10, 100))
    arrivals = []
    for key in r.sample((-(2**63), 0, 1, 5, 2**63 - 1), r.choice((1, 1, 2, 3))):
        record = recording(r, most)
        arrivals += [Arrival(key, t, v) for t, v in zip(record.times, record.values, strict=True)]
    arrivals.sort(key=lambda x: x.time + r.uniform(0, disorder))
    latest, on_time = -(10**9), []
    for x in arrivals:
        if x.time >= latest - disorder:
            on_time.append(x)
        latest = max(latest, x.time)
    delay = r.choice((None, None, r.randint(0, 12)))
    return Play(on_time, first.interval, first.sides, delay, disorder)


@pytest.mark.parametrize("times", LONG)
def test_no_window_lacks_its_extremes_and_nothing_comes_too_late(times: int) -> None:
    r = random.Random(f"stream {SEED}")
    for case in range(cases(0.2) * times):
        p, now, others = play(r, 12), 0, r.random() < 0.2
        size = r.choice((1, 2, 5, 40))
        try:
            i = 0
            while i < len(p.arrivals):
                n, now = r.randint(0, size), now + r.choice((0, 1, 1, 3, 10))
                p.step(list(range(i, min(i + n, len(p.arrivals)))), now)
                i += n
                if others and p.seen:
                    p.other_entry_publishes(r.choice(p.seen))
            p.check()
        except AssertionError as e:
            raise AssertionError((SEED, case, p)) from e


@pytest.mark.parametrize("times", LONG)
def test_in_order_it_retains_what_the_batch_form_retains(times: int) -> None:
    r = random.Random(f"in order {SEED}")
    for case in range(cases(0.15) * times):
        record = recording(r, 30)
        p = Play(
            [Arrival(0, t, v) for t, v in zip(record.times, record.values, strict=True)],
            record.interval,
            record.sides,
        )
        i = 0
        while i < len(p.arrivals):
            j = min(i + r.randint(1, 9), len(p.arrivals))
            while j < len(p.arrivals) and p.arrivals[j].time == p.arrivals[j - 1].time:
                j += 1  # what comes at one time is decided at once, or the first of it leaves too early
            p.step(list(range(i, j)), 0)
            i = j
        p.check()
        batch = retained(*record.arrays, record.interval, sides=record.sides)  # type: ignore[arg-type]
        assert len(p.published) == batch.sum(), (SEED, case, record, batch, sorted(p.published))


rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(-2, 2), st.booleans()), max_size=10
)


@settings(max_examples=1000, deadline=None)
@given(rows, st.integers(1, 20), st.sampled_from(("above", "below", "both")), st.none() | st.integers(0, 9))
def test_hypothesis_finds_no_order_of_arrival_that_misses_a_window(
    rows: list[tuple[int, int, int, bool]], interval: int, sides: str, max_delay: int | None
) -> None:
    p = Play([Arrival(k, t, float(v)) for k, t, v, _ in rows], interval, sides, max_delay, disorder=100)
    batch: list[int] = []
    for i, row in enumerate(rows):
        batch.append(i)
        if row[3]:
            p.step(batch, i)
            batch = []
    p.step(batch, len(rows))
    p.check()


def test_an_entry_that_ends_hands_back_all_that_it_holds() -> None:
    r = random.Random(f"flush {SEED}")
    for case in range(cases(0.02)):
        p = play(r, 12)
        p.step(list(range(len(p.arrivals))), 0)
        p.state.offer([0], [10**6], [0.0], [len(p.arrivals)], 0)
        held = sorted(set(p.seen) - p.published.keys() - p.dropped)
        assert p.state.flush().tolist() == [*held, len(p.arrivals)], (SEED, case, p)
        assert p.state.size() == 0 and p.state.held_ids().size == 0 and p.state.next_deadline() is None
