"""Runs of the stream form over arrivals of many keys, checked by brute force at every step and at the end.

Shares no code with the kernels. A handle is a tuple's position in the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from tests.oracle.omission.brute_force import Bools, signs
from tests.oracle.omission.random_recordings import (
    Floats,
    Ints,
    Recordings,
    lacking_in_time,
    missed,
)

from tamis.omission import OmissionState

END = 2**63 - 1
NEVER = np.int64(END)


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Rule:
    """What a state is told, and how many ticks out of order its tuples come."""

    interval: int
    sides: str
    max_delay: int | None = None
    disorder: int = 0


class StreamRun:
    """A state, what it was offered, and what it has said of it so far.

    `keys`, `times`, `values`: of each tuple in the order of arrival. A tuple that comes more than `disorder`
    behind the latest time isn't in the play. `arrived` and `published` are on the caller's clock, END for
    not (yet).
    """

    def __init__(self, keys: Ints, times: Ints, values: Floats, rule: Rule) -> None:
        latest = np.maximum.accumulate(np.append(-(10**9), times))[:-1]
        on_time = times >= latest - rule.disorder
        self.keys, self.times, self.values = keys[on_time], times[on_time], values[on_time]
        self.rule = rule
        self.state = OmissionState(rule.interval, rule.sides, rule.max_delay)  # type: ignore[arg-type]
        n = len(self.times)
        self.arrived, self.published = np.full(n, NEVER), np.full(n, NEVER)
        self.dropped = np.zeros(n, np.bool_)
        self.seen, self.now, self.watermark, self.progress = 0, 0, -END - 1, -END - 1
        # Handles in rows by key and in order of time, -1 behind a row's end.
        order = np.lexsort((self.times, self.keys))
        ends = np.flatnonzero(np.diff(self.keys[order])) + 1
        rows = np.split(order, ends) if n else []
        self.grid = np.full((len(rows), max((len(row) for row in rows), default=0)), -1)
        for row, handles in zip(self.grid, rows, strict=True):
            row[: len(handles)] = handles
        self.row = np.empty(n, np.int64)
        for i, handles in enumerate(rows):
            self.row[handles] = i
        self.t, self.v = self.rows(self.times), self.rows(self.values)

    def rows(self, column: npt.NDArray[T]) -> npt.NDArray[T]:
        """A column by handle as rows; what it has behind a row's end means nothing."""
        return column[self.grid] if len(column) else np.zeros(self.grid.shape, column.dtype)

    @property
    def record(self) -> Recordings:
        """The tuples as recordings."""
        return Recordings(self.t, self.v, self.grid >= 0, self.rule.interval, self.rule.sides)

    def __repr__(self) -> str:
        rows = list(zip(self.keys, self.times, self.values, strict=True))
        return f"{rows} {self.rule} at {self.seen}"

    def step(self, count: int, now: int) -> None:
        """Offer the next `count` arrivals at time `now`, after the deadlines that come before it."""
        while (due := self.state.next_deadline()) is not None and due < now:
            assert due > self.now, "a deadline lies in the past"
            self.decide(due)
        begin, self.seen = self.seen, min(self.seen + count, len(self.times))
        part = slice(begin, self.seen)
        ids = np.arange(begin, self.seen)
        self.state.offer(self.keys[part], self.times[part], self.values[part], ids, now)
        self.arrived[part] = now
        self.watermark = max(self.watermark, int(self.times[part].max(initial=-END)) - self.rule.disorder)
        self.decide(now)
        late = self.leave_at_once()[part] & (self.published[part] == END)
        assert not late.any(), ("an extreme is held", begin + int(late.argmax()))

    def leave_at_once(self) -> Bools:
        """Tuples that no tuple seen within the interval before them, on some side, exceeds or, published by
        now, equals.
        """
        t, v, seen = self.t, self.v, (self.grid >= 0) & (self.grid < self.seen)
        mine, other = slice(None), np.newaxis
        gap = t[:, mine, other] - t[:, other, mine]
        there = seen[:, other, mine] & (self.grid[:, other, mine] != self.grid[:, mine, other])
        equal = v[:, other, mine] == v[:, mine, other]
        within = there & (gap >= 0) & (gap <= self.rule.interval)
        taken = equal & (self.rows(self.published) < END)[:, other, mine]
        extreme = np.zeros(t.shape, np.bool_)
        for sign in signs(self.rule.sides):
            more = sign * v[:, other, mine] > sign * v[:, mine, other]
            extreme |= ~(within & (more | taken)).any(axis=2)
        # Of exact duplicates any one may go.
        extreme &= ~(there & equal & (gap == 0)).any(axis=2)
        answer = np.zeros(len(self.times), np.bool_)
        answer[self.grid[seen]] = extreme[seen]
        return answer

    def decide(self, now: int) -> None:
        """Let the state decide, and check what it says and holds."""
        self.now = now
        decided = self.state.decide(self.watermark, now)
        for ids in decided:
            assert (np.diff(ids) > 0).all() and ids.max(initial=-1) < self.seen
            assert (self.published[ids] == END).all() and not self.dropped[ids].any(), "decided twice"
        assert not np.isin(decided.published, decided.dropped).any()
        assert (self.times[decided.published] >= self.progress).all(), "less than progress was published"
        self.published[decided.published] = now
        self.dropped[decided.dropped] = True
        held = np.flatnonzero((self.published == END) & ~self.dropped)
        held = held[held < self.seen]
        ids, times = self.state.held()
        assert np.sort(ids).tolist() == held.tolist() == self.state.held_ids().tolist()
        assert (times == self.times[ids]).all()
        oldest = min(self.state.held()[1].tolist(), default=None)
        assert oldest == (self.times[held].min() if len(held) else None)
        progress = self.watermark if oldest is None else min(self.watermark, oldest)
        assert progress >= self.progress, "progress went back"
        self.progress = progress
        assert self.state.size() <= len(held) + self.can_bracket(), "more is kept than can bracket"
        due = self.state.next_deadline()
        assert due is None or due > now, "a deadline lies in the past"

    def can_bracket(self) -> int:
        """How many published tuples may still bracket one that comes or is held.

        Such a tuple is ahead of the watermark; or it is at most the interval behind it, and no tuple
        between it and the watermark that wasn't dropped is more extreme on each side: that one is nearer to
        all that may come.
        """
        if self.watermark == END:
            return 0
        seen = (self.grid >= 0) & (self.grid < self.seen)
        live = seen & ~self.rows(self.dropped)
        reaches = self.watermark - self.t <= self.rule.interval
        behind = live & (self.t < self.watermark)
        later = behind[:, None, :] & (self.t[:, None, :] >= self.t[:, :, None])
        nearest = np.zeros(self.t.shape, np.bool_)
        for sign in signs(self.rule.sides):
            more = sign * self.v[:, None, :] > sign * self.v[:, :, None]
            nearest |= ~(later & more).any(axis=2)
        out = live & (self.rows(self.published) < END)
        return int((out & ((self.t >= self.watermark) | (reaches & nearest))).sum())

    def other_entry_publishes(self, ids: Ints) -> None:
        """Another entry publishes these, of those seen; one more is of no concern here."""
        self.state.note_published(np.append(ids, 10**9))
        ids = ids[~self.dropped[ids] & (self.published[ids] == END)]
        self.published[ids] = self.now

    def run(self, random: np.random.Generator, most: int, *, others: bool = False) -> None:
        """StreamRun all arrivals in steps of up to `most` tuples."""
        now = 0
        while self.seen < len(self.times):
            now += int(random.choice((0, 1, 1, 3, 10)))
            self.step(int(random.integers(0, most + 1)), now)
            if others and self.seen:
                self.other_entry_publishes(np.unique(random.integers(0, self.seen, 3)))
        self.end()

    def end(self) -> None:
        """Nothing more comes: all is decided, no window lacks its extremes, and nothing came too late."""
        self.watermark = END
        while (due := self.state.next_deadline()) is not None:
            self.decide(due)
        self.decide(self.now)
        assert ((self.published < END) ^ self.dropped).all() and self.state.size() == 0
        wrong = missed(self.record, self.rows(self.published) < END)
        assert not wrong.any(), ("a window lacks its extreme", self.record.row(int(wrong.argmax())))
        if self.rule.max_delay is not None and len(self.times):
            arrived, published = self.rows(self.arrived), self.rows(self.published)
            late = lacking_in_time(self.record, arrived, published, self.rule.max_delay).any(axis=1)
            assert not late.any(), ("an alarm comes too late", self.record.row(int(late.argmax())))


def arrivals(random: np.random.Generator, record: Recordings, disorder: int) -> tuple[Ints, Ints, Floats]:
    """The columns of a recording as they come, out of order by up to `disorder` ticks."""
    keys, times, values = record.columns
    order = np.argsort(times + random.uniform(0, disorder, len(times)), kind="stable")
    return keys[order], times[order], values[order]
