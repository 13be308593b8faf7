"""Contract tests of tuple stores and of Algorithm 1 over them: one suite of checks for every store."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.oracle.omission.brute_force import Recording, missed, recording, strict_rule
from tests.oracle.omission.cai_algorithm_1 import NONE, Store, ThresholdSorter
from tests.oracle.random_cases import SEED, cases

from tamis.errors import InputError
from tamis.omission import retained

Check = Callable[[Store[Any]], None]
Key = tuple[int, float]


def checks() -> Iterator[Check]:
    """The suite."""
    yield an_empty_store_has_no_rows
    yield order_is_by_time_then_value
    yield search_leads_to_the_first_at_that_time_or_the_last_before
    yield a_row_stays_its_tuples_own
    yield algorithm_1_retains_what_no_bracket_lets_go
    yield exact_duplicates_are_kept_once
    yield what_leaves_at_punctuations_is_in_order_and_the_same
    yield bad_input_is_refused


def an_empty_store_has_no_rows(store: Store[Any]) -> None:
    ts = store.new(4)
    assert store.succ(ts, NONE) == store.prev(ts, NONE) == store.search(ts, 0) == NONE
    row = store.insert(ts, 5, 1.0)
    store.remove(ts, row)
    assert store.succ(ts, NONE) == store.prev(ts, NONE) == store.search(ts, 9) == NONE and ts.size[0] == 0


class Tried:
    """A store beside a sorted list of Python, through random insertions and removals."""

    def __init__(self, store: Store[Any], room: int) -> None:
        self.store, self.room, self.ts = store, room, store.new(room)
        self.expected: list[Key] = []
        self.rows: dict[Key, int] = {}

    def change(self, r: random.Random) -> None:
        """Insert a new tuple, or remove one: growing and shrinking by turns."""
        key = (r.randint(-30, 30), float(r.randint(-3, 3)))
        if self.expected and (len(self.expected) == self.room or r.random() < r.choice((0.2, 0.8))):
            gone = self.expected.pop(r.randrange(len(self.expected)))
            self.store.remove(self.ts, self.rows.pop(gone))
        elif key not in self.rows:
            insort(self.expected, key)
            row = self.rows[key] = self.store.insert(self.ts, *key)
            self.ts.nodes[row]["id"] = row
        assert self.ts.size[0] == len(self.expected)

    def walk(self, step: Callable[[Any, int], int]) -> list[Key]:
        """(time, value) of the rows that `step` leads to, one after the other."""
        found, row = [], step(self.ts, NONE)
        while row != NONE:
            found.append((int(self.ts.nodes[row]["time"]), float(self.ts.nodes[row]["value"])))
            row = step(self.ts, row)
        return found


def tries(store: Store[Any]) -> Iterator[tuple[random.Random, Tried]]:
    r = random.Random(f"store {SEED}")
    for _ in range(cases(0.002)):
        tried = Tried(store, r.choice((1, 5, 40, 200)))
        for _ in range(r.randint(1, 300)):
            tried.change(r)
        yield r, tried


def order_is_by_time_then_value(store: Store[Any]) -> None:
    for _, tried in tries(store):
        assert tried.walk(store.succ) == tried.expected
        assert tried.walk(store.prev) == tried.expected[::-1]


def search_leads_to_the_first_at_that_time_or_the_last_before(store: Store[Any]) -> None:
    for _, tried in tries(store):
        for time in range(-32, 33):
            at = bisect_left(tried.expected, (time, -np.inf))
            if at == len(tried.expected) or tried.expected[at][0] != time:
                at -= 1
            expected = NONE if at < 0 else tried.rows[tried.expected[at]]
            assert store.search(tried.ts, time) == expected, (SEED, time, tried.expected)


def a_row_stays_its_tuples_own(store: Store[Any]) -> None:
    for r, tried in tries(store):
        for _ in range(50):
            tried.change(r)
        assert len(set(tried.rows.values())) == len(tried.rows)
        for (time, value), row in tried.rows.items():
            node = tried.ts.nodes[row]
            assert (node["time"], node["value"], node["id"]) == (time, value, row)


def pairs(record: Recording, ids: Any) -> set[Key]:
    """(time, value) of the given tuples; 0.0 and -0.0 are equal."""
    return {(record.times[i], record.values[i] + 0.0) for i in ids}


def doubly(r: random.Random, most: int) -> Recording:
    """A random recording, for both sides."""
    record = recording(r, most)
    return Recording(record.times, record.values, record.interval, "both")


def algorithm_1_retains_what_no_bracket_lets_go(store: Store[Any]) -> None:
    """In any order of arrival the same: as the brute force counts, and as the kernel decides."""
    r = random.Random(f"algorithm 1 {SEED}")
    for case in range(cases(0.02)):
        record = doubly(r, r.choice((6, 12, 30)))
        times, values = record.arrays
        arrival = list(range(len(times)))
        if r.random() < 0.7:
            r.shuffle(arrival)
        sorter = ThresholdSorter(store, record.interval, room=1)
        sorter.offer(times[arrival], values[arrival], arrival)
        kept = sorter.finish()
        told = (SEED, case, record, arrival, kept)
        keep = np.isin(np.arange(len(times)), kept)
        assert len(kept) == strict_rule(record) and not missed(record, keep), told
        kernel = np.flatnonzero(retained(times, values, record.interval, ties="strict"))
        assert pairs(record, kept) == pairs(record, kernel), told


def exact_duplicates_are_kept_once(store: Store[Any]) -> None:
    sorter = ThresholdSorter(store, 5)
    sorter.offer([3, 3, 3, 3], [1.0, 1.0, 2.0, 1.0], [0, 1, 2, 3])
    assert sorter.finish().tolist() == [0, 2]
    assert sorter.size() == 0


def what_leaves_at_punctuations_is_in_order_and_the_same(store: Store[Any]) -> None:
    r = random.Random(f"punctuations {SEED}")
    for case in range(cases(0.02)):
        record, disorder = doubly(r, 40), r.choice((0, 1, 5, 20))
        times, values = record.arrays
        arrival = sorted(range(len(times)), key=lambda i: times[i] + r.randint(0, disorder))
        sorter = ThresholdSorter(store, record.interval, room=1)
        left: list[int] = []
        while arrival:
            size = r.randint(1, 8)
            part, arrival = arrival[:size], arrival[size:]
            sorter.offer(times[part], values[part], part)
            punctuation = min((int(times[i]) for i in arrival), default=0)
            left += sorter.punctuate(punctuation).tolist()
            held = sorter.size()
            assert not held or sorter.punctuate(punctuation - 1).size == 0
        left += sorter.finish().tolist()
        assert left == sorted(left, key=lambda i: (times[i], values[i])), (SEED, case, record, left)
        expected = np.flatnonzero(retained(times, values, record.interval, ties="strict"))
        assert pairs(record, left) == pairs(record, expected), (SEED, case, record, left)
        assert len(left) == len(expected)


def bad_input_is_refused(store: Store[Any]) -> None:
    for interval in (-1, 0, 2**61 + 1):
        with pytest.raises(InputError, match="omission interval"):
            ThresholdSorter(store, interval)
    sorter = ThresholdSorter(store, 5)
    with pytest.raises(InputError, match="NaN"):
        sorter.offer([1], [np.nan], [0])
    with pytest.raises(InputError, match="length"):
        sorter.offer([1, 2], [1.0], [0])
    with pytest.raises(InputError, match="last punctuation"):
        sorter.offer([2**60 + 1], [1.0], [0])
    sorter.punctuate(10)
    with pytest.raises(InputError, match=r"times\[1\]"):
        sorter.offer([10, 9], [1.0, 1.0], [0, 1])
    assert sorter.size() == 0
