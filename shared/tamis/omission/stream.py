"""Stream form of bracket omission: one entry's decisions over many keys, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.omission.columns import (
    NEVER,
    Flags,
    Floats,
    Int64s,
    Sides,
    as_delay,
    as_span,
    check_rule,
    finite_order,
    int64s,
    same_length,
)
from tamis.omission.slot_pool import (
    ABOVE,
    BELOW,
    RETAINED,
    SIDES,
    Keys,
    NewTuples,
    empty_pool,
    held_slots,
    no_keys,
    with_keys,
    with_room,
    with_tuples,
)
from tamis.omission.stream_kernel import advance
from tamis.row_order import by_key_and_time


class Decided(NamedTuple):
    """Handles of the tuples decided now, ascending: those to publish, and those that this entry doesn't
    need."""

    published: Int64s
    dropped: Int64s


class Live(NamedTuple):
    """All tuples that a state keeps: their handles, ascending, and `needs`, which says for which sides each
    tuple is needed and whether it is published already. `OmissionState.resume` takes both again.
    """

    ids: Int64s
    needs: Flags


class _Offer(NamedTuple):
    """Columns of tuples for the next decision: those of `NewTuples`, without their order."""

    codes: Int64s
    ids: Int64s
    times: Int64s
    values: Floats
    due: Int64s
    needs: Flags


def offered(
    key_codes: npt.ArrayLike, times: npt.ArrayLike, values: npt.ArrayLike, ids: npt.ArrayLike
) -> tuple[Int64s, Int64s, Floats, Int64s]:
    """Check the columns of an offer, and convert them for the kernels. Raises `InputError`."""
    codes, at, handles = int64s("key_codes", key_codes), int64s("times", times), int64s("ids", ids)
    value = finite_order("values", values)
    same_length(key_codes=codes, times=at, values=value, ids=handles)
    return codes, at, value, handles


def due_at(now: int, delay: np.int64) -> np.int64:
    """The deadline of a tuple that arrives now; `NEVER` if it doesn't fit in int64."""
    return NEVER if now > NEVER - delay else np.int64(now + delay)


_NO_IDS = np.empty(0, np.int64)
_NOTHING = _Offer(_NO_IDS, _NO_IDS, _NO_IDS, np.empty(0, np.float64), _NO_IDS, np.empty(0, np.uint8))


def _joined(offers: list[_Offer]) -> _Offer:
    if not offers:
        return _NOTHING
    if len(offers) == 1:
        return offers[0]
    return _Offer._make(np.concatenate(column) for column in zip(*offers, strict=True))


class OmissionState:
    """State of one entry (filter, omission key, value, interval, sides) for one shard.

    `interval`: ticks of event time; 0 publishes all. `max_delay`: the longest time that a tuple waits, in
    ticks of the caller's clock; 0 publishes all; None: no limit, the tuple waits until the watermark decides.
    Every window of length `interval` gets a published tuple with its extreme value, as by `retained`, for
    every order of arrival and all batches and watermarks. If tuples arrive in order, as many are published as
    by `retained`. Equal values are treated as with `fewest`; for `strict` the stream form is Algorithm 1
    itself (`tests.oracle.omission.cai_algorithm_1`).

    >>> state = OmissionState(10, "above")
    >>> state.offer([7, 7, 7], [0, 2, 4], [5.0, 1.0, 3.0], [0, 1, 2], now=0)
    >>> state.decide(watermark=4, now=0)  # 1.0 lies between greater values, 3.0 may still get a right bracket
    Decided(published=array([0]), dropped=array([1]))
    >>> state.decide(watermark=11, now=0)
    Decided(published=array([2]), dropped=array([], dtype=int64))
    """

    def __init__(self, interval: int, sides: Sides = "both", max_delay: int | None = None) -> None:
        check_rule(interval, sides, max_delay)
        self._filters = interval > 0 and max_delay != 0
        self._interval, self._delay = as_span(interval), as_delay(max_delay)
        self._needs = {"above": ABOVE, "below": BELOW, "both": SIDES}[sides]
        self._watermark = np.int64(-(2**63))
        self._clear()

    def _clear(self) -> None:
        self._keys, self._pool = no_keys(), empty_pool()
        self._places, self._used = np.empty(0, np.int64), 0
        self._offered: list[_Offer] = []
        self._noted = False  # since the last decision

    def offer(
        self,
        key_codes: npt.ArrayLike,
        times: npt.ArrayLike,
        values: npt.ArrayLike,
        ids: npt.ArrayLike,
        now: int,
    ) -> None:
        """Take tuples that passed the entry's filter and aren't late; all columns of shape (n,).

        `key_codes`: the omission key; `times`: event time; `values`: not NaN; `ids`: the caller's handles,
        ascending, and unique for a key; `now`: the caller's clock at their arrival. Late tuples (behind the
        watermark of the last decision) are published and forgotten by the next decision. Raises `InputError`.
        """
        codes, at, value, handles = offered(key_codes, times, values, ids)
        n = len(handles)
        if n:
            due = due_at(now, self._delay)
            self._offered.append(_Offer(codes, handles, at, value, np.full(n, due), np.full(n, self._needs)))

    def resume(
        self,
        key_codes: npt.ArrayLike,
        times: npt.ArrayLike,
        values: npt.ArrayLike,
        live: Live,
    ) -> None:
        """Take the tuples that `live` gave of an earlier state, before any others; columns as of `offer`, in
        the order of `live`.

        The decisions then are those of the earlier state, if it had no `max_delay` and no tuple ahead of its
        watermark. Key codes may be others. Raises `InputError`.
        """
        codes, at, value, handles = offered(key_codes, times, values, live.ids)
        if len(handles):
            due = np.full(len(handles), due_at(0, self._delay))
            self._offered.append(_Offer(codes, handles, at, value, due, live.needs))

    def live(self) -> Live:
        """The tuples that are kept, without those offered since the last decision."""
        slots = np.flatnonzero(self._pool.needs & SIDES)
        slots = slots[np.argsort(self._pool.ids[slots], kind="stable")]
        return Live(self._pool.ids[slots], self._pool.needs[slots])

    def decide(self, watermark: int, now: int) -> Decided:
        """Decide the tuples that can be decided.

        `watermark`: an event time; all tuples before it have arrived, except late ones. `now`: the caller's
        clock.
        """
        if not self._may_decide(watermark, now):
            return Decided(_NO_IDS, _NO_IDS)
        fresh = _joined(self._offered)
        self._offered, self._noted = [], False
        if not self._filters:
            return Decided(np.sort(fresh.ids[fresh.needs < RETAINED]), np.empty(0, np.int64))
        late = np.empty(0, np.int64)
        behind = fresh.times < self._watermark
        if self._watermark == NEVER or behind.any():
            behind |= self._watermark == NEVER
            late = fresh.ids[behind & (fresh.needs < RETAINED)]
            fresh = _Offer._make(column[~behind] for column in fresh)
        self._watermark = max(self._watermark, np.int64(watermark))
        order = by_key_and_time(fresh.codes, fresh.times)
        if order is None:
            order = np.arange(len(fresh.ids))
        self._keys = with_keys(self._keys, fresh.codes, order)
        self._pool = with_room(self._pool, len(order), self._delay != NEVER)
        self._places, self._used, published, dropped = advance(
            self._keys,
            self._pool,
            self._places,
            self._used,
            NewTuples(*fresh, order),
            self._interval,
            self._watermark,
            # A deadline at the end of time never comes.
            np.int64(min(now, int(NEVER) - 1)),
        )
        # Empty keys are removed once they are half of all: so removing costs no more than adding them did.
        if 2 * np.count_nonzero(with_tuples(self._keys)) < len(self._keys.codes):
            self._keys = Keys(*(column[with_tuples(self._keys)] for column in self._keys))
        return Decided(np.sort(np.concatenate([late, published])), np.sort(dropped))

    def _may_decide(self, watermark: int, now: int) -> bool:
        """True if something has changed since the last decision. Callers ask far more often than something
        changes.
        """
        if self._offered or self._noted or watermark > self._watermark:
            return True
        deadline = self.next_deadline() if self._delay != NEVER else None
        return deadline is not None and deadline <= now

    def note_published(self, ids: npt.ArrayLike) -> None:
        """Note that another entry has published tuples: they are no longer held here, and count as retained.
        Handles that aren't held here are ignored.
        """
        handles = int64s("ids", ids)
        if len(handles):
            self._noted = True
            slots = held_slots(self._pool)
            self._pool.needs[slots[np.isin(self._pool.ids[slots], handles)]] |= RETAINED
            for fresh in self._offered:
                fresh.needs[np.isin(fresh.ids, handles)] |= RETAINED

    def held(self) -> tuple[Int64s, Int64s]:
        """Handles and event times of all undecided tuples, in any order."""
        slots, fresh = held_slots(self._pool), _joined(self._offered)
        undecided = fresh.needs < RETAINED
        return (
            np.concatenate([self._pool.ids[slots], fresh.ids[undecided]]),
            np.concatenate([self._pool.times[slots], fresh.times[undecided]]),
        )

    def key_codes(self) -> Int64s:
        """Codes of all keys that have tuples here, in any order. These codes must not be given to
        other keys.
        """
        return np.concatenate([self._keys.codes, *(fresh.codes for fresh in self._offered)])

    def held_ids(self) -> Int64s:
        """Handles of all undecided tuples, ascending."""
        return np.sort(self.held()[0])

    def next_deadline(self) -> int | None:
        """The moment on the caller's clock when `decide` must be called even if no tuple arrives; None for
        never.
        """
        slots, fresh = held_slots(self._pool), _joined(self._offered)
        least = min(
            self._pool.due[:, slots].min(initial=NEVER) if self._pool.due.size else NEVER,
            fresh.due[fresh.needs < RETAINED].min(initial=NEVER),
        )
        return None if least == NEVER else int(least)

    def flush(self) -> Int64s:
        """End the entry and forget everything; returns the handles of the held tuples, ascending, to
        publish.
        """
        ids = self.held_ids()
        self._clear()
        return ids

    def end(self, first: int, behind: int) -> Int64s:
        """End the keys with codes from `first` to before `behind`; returns the handles of their held tuples,
        ascending, to publish. Their other tuples expire with time. These keys must not be offered again.
        """
        at, stop = np.searchsorted(self._keys.codes, (first, behind))
        lists = zip(self._keys.starts[at:stop].flat, self._keys.counts[at:stop].flat, strict=True)
        slots = [self._places[start : start + count] for start, count in lists if count]
        found = [np.empty(0, np.int64)]
        if slots:
            held = np.unique(np.concatenate(slots))
            held = held[self._pool.needs[held] < RETAINED]
            self._pool.needs[held] |= RETAINED
            self._noted = True
            found.append(self._pool.ids[held])
        for fresh in self._offered:
            mine = (fresh.codes >= first) & (fresh.codes < behind) & (fresh.needs < RETAINED)
            fresh.needs[mine] |= RETAINED
            found.append(fresh.ids[mine])
        return np.sort(np.concatenate(found))

    def size(self) -> int:
        """The number of tuples kept: undecided ones, and those that can still bracket others."""
        return int(self._pool.taken[0]) + sum(len(fresh.ids) for fresh in self._offered)
