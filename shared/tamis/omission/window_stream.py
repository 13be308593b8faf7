"""Stream form for hopping and tumbling windows: one entry's decisions over many keys, batch by batch.

The extremes of a pane are final once the watermark has passed the pane's end. Until then they are held (one
or two tuples a key), and other tuples are dropped at once. The extremes of complete panes go to
`OmissionState`, with panes for times. It gets panes in order and each as a whole, in whatever order tuples
arrive. So it retains the fewest tuples, unless a deadline or another entry publishes more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.omission.columns import NEVER, Bools, Flags, Floats, Int64s, Sides, as_delay, check_rule, int64s
from tamis.omission.stream import Decided, OmissionState, due_at, offered
from tamis.omission.window_batch import (
    DROPPED,
    HELD,
    PUBLISHED,
    RETAINED,
    extremes,
    panes_in,
)
from tamis.row_order import by_key_and_time

_ALWAYS = np.int64(-(2**63))


class _Rows(NamedTuple):
    """Columns of tuples of incomplete panes. `clocks`: the caller's clock at their arrival, `_ALWAYS` for
    tuples that an earlier decision has seen.
    """

    codes: Int64s
    panes: Int64s
    ids: Int64s
    times: Int64s
    values: Floats
    above_due: Int64s
    below_due: Int64s
    clocks: Int64s
    fate: Flags

    def pick(self, rows: Int64s | Bools) -> _Rows:
        return _Rows._make(column[rows] for column in self)


def _join(parts: list[_Rows]) -> _Rows:
    return _Rows._make(np.concatenate(column) for column in zip(*parts, strict=True))


def _no_rows() -> _Rows:
    none = np.empty(0, np.int64)
    return _Rows(none, none, none, none, np.empty(0, np.float64), none, none, none, np.empty(0, np.uint8))


class WindowState:
    """State of one entry over windows for one shard, with the interface of `OmissionState`.

    `slide`, `size`, `offset`: ticks of event time, as in `retained_in_windows`. `max_delay`: the longest
    time that a tuple waits, in ticks of the caller's clock; None for no limit, 0 publishes all. Held tuples
    are always less than `size` behind the watermark.
    """

    def __init__(
        self,
        slide: int,
        size: int,
        sides: Sides = "both",
        max_delay: int | None = None,
        offset: int = 0,
    ) -> None:
        n = panes_in(slide, size)
        check_rule(n, sides, max_delay)
        self._slide, self._offset = slide, offset
        self._above, self._below = sides != "below", sides != "above"
        self._filters = max_delay != 0
        self._delay = as_delay(max_delay)
        self._complete = OmissionState(n, sides, max_delay)
        self._pane = _ALWAYS  # the first pane that isn't complete
        self._clear()

    def _clear(self) -> None:
        self._open, self._offered = _no_rows(), list[_Rows]()
        self._ids, self._times = np.empty(0, np.int64), np.empty(0, np.int64)  # of complete panes

    def offer(
        self,
        key_codes: npt.ArrayLike,
        times: npt.ArrayLike,
        values: npt.ArrayLike,
        ids: npt.ArrayLike,
        now: int,
    ) -> None:
        """Take tuples that passed the entry's filter, until the next decision; all columns of shape (n,).

        `key_codes`: the omission key; `times`: event time in ticks; `values`: not NaN; `ids`: the caller's
        handles, ascending, and unique for a key; `now`: the caller's clock at their arrival. Raises
        `InputError`.
        """
        codes, at, value, handles = offered(key_codes, times, values, ids)
        n = len(handles)
        if n:
            due = due_at(now, self._delay)
            above, below = (np.full(n, due if asked else NEVER) for asked in (self._above, self._below))
            panes, clocks, fate = (
                (at - self._offset) // self._slide,
                np.full(n, now, np.int64),
                np.full(n, HELD),
            )
            self._offered.append(_Rows(codes, panes, handles, at, value, above, below, clocks, fate))

    def decide(self, watermark: int, now: int) -> Decided:
        """Decide the tuples that can be decided: extremes once their pane is complete or at their deadline,
        and the others of a pane at once.

        `watermark`: an event time; all tuples before it have arrived, except late ones. `now`: the caller's
        clock.
        """
        pane = NEVER if watermark == NEVER else np.int64((watermark - self._offset) // self._slide)
        ended, self._pane = pane > self._pane, max(pane, self._pane)
        fresh, self._offered = self._offered, []
        if not self._filters:
            rows = _join(fresh) if fresh else _no_rows()
            return Decided(np.sort(rows.ids[rows.fate == HELD]), np.empty(0, np.int64))
        published: list[Int64s] = []
        dropped: list[Int64s] = []
        if fresh or ended or self._open_deadline() <= now:
            rows = _join([self._open, *fresh])
            order = by_key_and_time(rows.codes, rows.panes)
            if order is not None:
                rows = rows.pick(order)
            last = np.full(len(rows.ids), now if now == NEVER else now + 1, np.int64)
            columns = rows.codes, rows.panes, rows.values, rows.above_due, rows.below_due, rows.clocks
            kept = extremes(*columns, last, self._above, self._below, rows.fate)
            published.append(rows.ids[rows.fate == PUBLISHED])
            dropped.append(rows.ids[rows.fate == DROPPED])
            rows.fate[rows.fate == PUBLISHED] = RETAINED
            rows.clocks[:] = _ALWAYS
            self._hand_over(rows.pick(kept & self._done(rows.panes)))
            self._open = rows.pick(kept & ~self._done(rows.panes))
        decided = self._complete.decide(int(self._pane), now)
        self._forget()
        return Decided(
            np.sort(np.concatenate([*published, decided.published])),
            np.sort(np.concatenate([*dropped, decided.dropped])),
        )

    def _done(self, panes: Int64s) -> Bools:
        return panes <= self._pane if self._pane == NEVER else panes < self._pane

    def _hand_over(self, rows: _Rows) -> None:
        """Offer the extremes of complete panes to the rule for time ranges."""
        if not len(rows.ids):
            return
        rows = rows.pick(np.argsort(rows.ids))
        due = np.minimum(rows.above_due, rows.below_due)
        # One offer for each deadline, since the tuples of an offer share it.
        for arrived in np.unique(due).tolist() if self._delay != NEVER else [int(NEVER)]:
            some = rows.pick(due == arrived) if self._delay != NEVER else rows
            at = arrived - int(self._delay) if arrived != NEVER else int(NEVER)
            self._complete.offer(some.codes, some.panes, some.values, some.ids, at)
        self._complete.note_published(rows.ids[rows.fate == RETAINED])
        ids = np.concatenate([self._ids, rows.ids])
        order = np.argsort(ids)
        self._ids, self._times = ids[order], np.concatenate([self._times, rows.times])[order]

    def _forget(self) -> None:
        """Forget the times of tuples that are no longer held, once these are half of all."""
        held = self._complete.held_ids()
        if 2 * len(held) < len(self._ids):
            still = np.isin(self._ids, held)
            self._ids, self._times = self._ids[still], self._times[still]

    def note_published(self, ids: npt.ArrayLike) -> None:
        """Note that another entry has published tuples: they are no longer held, and count as retained."""
        handles = np.unique(int64s("ids", ids))
        for rows in (self._open, *self._offered):
            rows.fate[np.isin(rows.ids, handles)] = RETAINED
        self._complete.note_published(handles)

    def held(self) -> tuple[Int64s, Int64s]:
        """Handles and event times of all undecided tuples, in no order."""
        ids = self._complete.held_ids()
        parts = [(ids, self._times[np.searchsorted(self._ids, ids)])]
        for rows in (self._open, *self._offered):
            parts.append((rows.ids[rows.fate == HELD], rows.times[rows.fate == HELD]))
        return np.concatenate([i for i, _ in parts]), np.concatenate([t for _, t in parts])

    def key_codes(self) -> Int64s:
        """Codes of all keys that have tuples here, in any order; other keys must not get these codes."""
        parts = (rows.codes for rows in (self._open, *self._offered))
        return np.concatenate([self._complete.key_codes(), *parts])

    def held_ids(self) -> Int64s:
        """Handles of all undecided tuples, ascending."""
        return np.sort(self.held()[0])

    def _open_deadline(self) -> np.int64:
        least = NEVER
        for rows in (self._open, *self._offered):
            held = rows.fate == HELD
            least = min(least, np.minimum(rows.above_due, rows.below_due)[held].min(initial=NEVER))
        return least

    def next_deadline(self) -> int | None:
        """The moment on the caller's clock when `decide` must be called even if no tuple arrives; None for
        never.
        """
        later = self._complete.next_deadline()
        least = min(int(self._open_deadline()), int(NEVER) if later is None else later)
        return None if least == NEVER else least

    def flush(self) -> Int64s:
        """End the entry and forget all tuples; returns the handles of held tuples, ascending, to publish."""
        ids = self.held_ids()
        self._complete.flush()
        self._clear()
        return ids

    def end(self, first: int, behind: int) -> Int64s:
        """End the keys with codes from `first` to before `behind`; returns the handles of their held tuples,
        ascending, to publish. These keys must not be offered again.
        """
        found = [self._complete.end(first, behind)]
        for rows in (self._open, *self._offered):
            mine = (rows.codes >= first) & (rows.codes < behind) & (rows.fate == HELD)
            rows.fate[mine] = RETAINED
            found.append(rows.ids[mine])
        return np.sort(np.concatenate(found))

    def size(self) -> int:
        """The number of tuples kept: undecided ones, and those that can still bracket others."""
        return self._complete.size() + sum(len(rows.ids) for rows in (self._open, *self._offered))
