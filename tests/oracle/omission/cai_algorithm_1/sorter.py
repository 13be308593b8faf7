"""Threshold sorter of cai-2021, section 6.1: takes tuples in disorder and emits retained ones in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
from tests.oracle.omission.cai_algorithm_1.greedy import greedy
from tests.oracle.omission.cai_algorithm_1.store import NONE, S, Store

from tamis.errors import InputError
from tamis.omission.columns import Int64s, finite_order, int64s, same_length

# Within these bounds no sum or difference that Algorithm 1 computes leaves int64.
_LATEST = 2**60
_LONGEST = 2**61


class ThresholdSorter(Generic[S]):
    """Algorithm 1 with punctuations.

    A punctuation promises that no earlier tuple will arrive any more; "one can simply drop all tuples left of
    the punctuation" (section 6.3). The paper doesn't consider that such a tuple may still be a left bracket
    of a later one, or lack its own right bracket. So here tuples are emitted when they are more than
    `interval` before the punctuation, since they can't be part of a bracket any more. The emitted tuples are
    exactly those that Algorithm 1 retains of the whole stream, in whatever order the tuples arrived.

    `interval`: ticks, at least 1. `room`: initial capacity in tuples; it grows.
    """

    def __init__(self, store: Store[S], interval: int, room: int = 1024) -> None:
        if not 1 <= interval <= _LONGEST:
            raise InputError(f"the omission interval is {interval}", hint="give 1 to 2^61 ticks")
        self._store, self._interval, self._room = store, interval, room
        self._tuples = store.new(room)
        self._punctuation = -_LATEST

    def offer(self, times: npt.ArrayLike, values: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Take tuples in any order of time, none before the last punctuation; columns of shape (n,).

        `times`: ticks within ±2^60; `values`: not NaN; `ids`: the caller's handles. Raises `InputError`.
        """
        at, value, handles = int64s("times", times), finite_order("values", values), int64s("ids", ids)
        same_length(times=at, values=value, ids=handles)
        wrong = (at < self._punctuation) | (at > _LATEST)
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"time {at[row]} is not between {self._punctuation} (the last punctuation) and 2^60",
                where=f"times[{row}]",
                hint="punctuate only after all earlier tuples have arrived",
            )
        self._make_room(len(at))
        greedy(self._store)(self._tuples, at, value, handles, self._interval)

    def punctuate(self, time: int) -> Int64s:
        """Take the promise that no tuple before `time` will arrive; returns the handles of the emitted
        tuples, in order of time and value.
        """
        self._punctuation = max(self._punctuation, time)
        out = np.empty(self.size(), np.int64)
        left = _leave(self._store)(self._tuples, self._punctuation - self._interval, out)
        return out[:left]

    def finish(self) -> Int64s:
        """End the stream; returns the handles of all tuples that weren't emitted, in order of time and
        value.
        """
        out = np.empty(self.size(), np.int64)
        _read(self._store)(self._tuples, out)
        self._tuples = self._store.new(self._room)
        return out

    def size(self) -> int:
        """The number of tuples in the store."""
        return int(self._tuples.size[0])  # type: ignore[attr-defined]

    def _make_room(self, rows: int) -> None:
        if self.size() + rows > self._room:
            # Twice the needed size, so that all moves together cost no more than taking in the tuples.
            self._room = 2 * (self.size() + rows)
            to = self._store.new(self._room)
            _move(self._store)(self._tuples, to)
            self._tuples = to


@cache
def _leave(store: Store[S]) -> Callable[[S, int, Int64s], int]:
    succ, remove = store.succ, store.remove

    def leave(ts: Any, before: int, out: Int64s) -> int:
        number = 0
        row = succ(ts, NONE)
        while row != NONE and ts.nodes[row]["time"] < before:
            out[number] = ts.nodes[row]["id"]
            number += 1
            after = succ(ts, row)
            remove(ts, row)
            row = after
        return number

    compiled: Callable[[S, int, Int64s], int] = store.compiled(leave)
    return compiled


@cache
def _read(store: Store[S]) -> Callable[[S, Int64s], None]:
    succ = store.succ

    def read(ts: Any, out: Int64s) -> None:
        row = succ(ts, NONE)
        for number in range(len(out)):
            out[number] = ts.nodes[row]["id"]
            row = succ(ts, row)

    compiled: Callable[[S, Int64s], None] = store.compiled(read)
    return compiled


@cache
def _move(store: Store[S]) -> Callable[[S, S], None]:
    succ, insert = store.succ, store.insert

    def move(ts: Any, to: Any) -> None:
        row = succ(ts, NONE)
        while row != NONE:
            tuple_ = ts.nodes[row]
            copy = to.nodes[insert(to, tuple_["time"], tuple_["value"])]
            copy["la"], copy["lb"], copy["ra"], copy["rb"] = (
                tuple_["la"],
                tuple_["lb"],
                tuple_["ra"],
                tuple_["rb"],
            )
            copy["id"] = tuple_["id"]
            row = succ(ts, row)

    compiled: Callable[[S, S], None] = store.compiled(move)
    return compiled
