"""The stream form of bracket omission: one entry's decisions over many keys, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.omission.columns import (
    Int64s,
    Sides,
    by_key_and_time,
    check_rule,
    finite_order,
    int64s,
    same_length,
)
from tamis.omission.pool import (
    ABOVE,
    BELOW,
    RETAINED,
    Tuples,
    held,
    join,
    mark_published,
    no_keys,
    pack,
    room,
    take,
    with_keys,
    without_empty,
)
from tamis.omission.settle import advance
from tamis.omission.ticks import NEVER, as_delay, as_span


class Decided(NamedTuple):
    """Handles of the tuples decided now, ascending: to be published, and not needed by this entry."""

    published: Int64s
    dropped: Int64s


class OmissionState:
    """What one entry (filter, omission key, value, interval, sides) holds and remembers of one shard.

    `interval`: ticks of event time, 0 publishes all. `max_delay`: the longest that a tuple waits, in ticks
    of the caller's clock; None for no such cap (then it waits until the watermark decides), 0 publishes
    all. What is published hits every window of length `interval` as `retained` says, whatever the order of
    arrival, the batches and the watermarks; in order it is the same number of tuples.
    """

    def __init__(self, interval: int, sides: Sides = "both", max_delay: int | None = None) -> None:
        check_rule(interval, sides, max_delay)
        self._filters = interval > 0 and max_delay != 0
        self._interval, self._delay = as_span(interval), as_delay(max_delay)
        self._above, self._below = sides != "below", sides != "above"
        self._asks = np.uint8(self._above * ABOVE + self._below * BELOW)
        self._watermark = np.int64(-(2**63))
        self._clear()

    def _clear(self) -> None:
        self._keys, self._pool, self._used = no_keys(), room(0), 0
        self._offered: list[tuple[Int64s, Tuples]] = []

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
        unique, ascending; `now`: the caller's clock at their arrival. Raises `InputError`.
        """
        codes, at, value, handles = (
            int64s("key_codes", key_codes),
            int64s("times", times),
            finite_order("values", values),
            int64s("ids", ids),
        )
        same_length(key_codes=codes, times=at, values=value, ids=handles)
        if len(handles):
            due = NEVER if now > NEVER - self._delay else np.int64(now + self._delay)
            n = len(handles)
            above_due = np.full(n, due if self._above else NEVER)
            below_due = np.full(n, due if self._below else NEVER)
            fresh = Tuples(handles, at, value, above_due, below_due, np.full(n, self._asks))
            self._offered.append((codes, fresh))

    def decide(self, watermark: int, now: int) -> Decided:
        """Decide what can be decided: `watermark` in event time (all before it has come, but for late
        tuples), `now` on the caller's clock."""
        self._watermark = max(self._watermark, np.int64(watermark))
        codes, fresh = self._take_offered()
        if not self._filters:
            return Decided(np.sort(fresh.ids[fresh.asks != RETAINED]), np.empty(0, np.int64))
        new_codes = codes[np.append(True, codes[1:] != codes[:-1])] if len(codes) else codes
        keys = self._keys = with_keys(self._keys, new_codes)
        concerned = (keys.wake < self._watermark) | (keys.due <= now)
        if self._watermark == NEVER:
            concerned |= keys.counts > 0
        concerned[np.searchsorted(keys.codes, new_codes)] = True
        at = np.flatnonzero(concerned)
        bounds = np.append(np.searchsorted(codes, keys.codes[at]), len(codes))
        most = keys.counts[at] + np.diff(bounds)
        self._make_room(2 * int(most.sum()))
        used, published, dropped = advance(
            at,
            keys,
            self._pool,
            np.int64(self._used),
            bounds,
            fresh,
            room(int(most.max(initial=0))),
            self._interval,
            self._above,
            self._below,
            self._watermark,
            np.int64(now),
        )
        self._used = int(used)
        # Empty keys go when they are half of all, so that removing them costs no more than they did.
        if 2 * np.count_nonzero(keys.counts) < len(keys.counts):
            self._keys = without_empty(keys)
        return Decided(np.sort(published), np.sort(dropped))

    def _take_offered(self) -> tuple[Int64s, Tuples]:
        """What was offered since the last decision, ordered by key and time."""
        if not self._offered:
            return np.empty(0, np.int64), room(0)
        codes = np.concatenate([codes for codes, _ in self._offered])
        fresh = join([tuples for _, tuples in self._offered])
        self._offered = []
        order = by_key_and_time(codes, fresh.times)
        if order is None:
            return codes, fresh
        return codes[order], take(fresh, order)

    def _make_room(self, rows: int) -> None:
        """Have at least `rows` rows of the pool free behind those in use."""
        if self._used + rows > len(self._pool.ids):
            # Twice what is needed, so that moving all costs no more per tuple than taking it in.
            to = room(2 * (int(self._keys.counts.sum()) + rows))
            self._used = int(pack(self._keys, self._pool, to))
            self._pool = to

    def note_published(self, ids: npt.ArrayLike) -> None:
        """Tuples that another entry published: no longer held here, and retained as far as ties go.

        Handles that aren't held here are ignored.
        """
        handles = np.unique(int64s("ids", ids))
        if len(handles):
            mark_published(self._keys, self._pool, handles)
            for _, fresh in self._offered:
                fresh.asks[np.isin(fresh.ids, handles)] = RETAINED

    def held(self) -> tuple[Int64s, Int64s]:
        """Handles and event times of all undecided tuples, in no order."""
        ids, times = held(self._keys, self._pool)
        offered = [(t.ids[t.asks != RETAINED], t.times[t.asks != RETAINED]) for _, t in self._offered]
        return np.concatenate([ids, *(i for i, _ in offered)]), np.concatenate(
            [times, *(t for _, t in offered)]
        )

    def held_ids(self) -> Int64s:
        """Handles of all undecided tuples, ascending."""
        return np.sort(self.held()[0])

    def oldest_held_time(self) -> int | None:
        """The least event time that this entry can still publish, but for the watermark; None: it holds
        nothing."""
        times = self.held()[1]
        return int(times.min()) if len(times) else None

    def next_deadline(self) -> int | None:
        """When on the caller's clock `decide` must be called even if nothing arrives; None: never."""
        offered = (
            np.minimum(t.above_due, t.below_due)[t.asks != RETAINED].min(initial=NEVER)
            for _, t in self._offered
        )
        least = min(self._keys.due.min(initial=NEVER), *offered, NEVER)
        return None if least == NEVER else int(least)

    def flush(self) -> Int64s:
        """End the entry: handles of all that it holds, ascending, to be published; forgets everything."""
        ids = self.held_ids()
        self._clear()
        return ids

    def size(self) -> int:
        """How many tuples are kept: the undecided ones, and those remembered since they can still bracket."""
        return int(self._keys.counts.sum()) + sum(len(codes) for codes, _ in self._offered)
