"""The cuts of one topic at one shard (docs/cuts.md, rules 1 to 16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self

import numpy as np

from tamis.expressions.vectors import Columns, Vector
from tamis.messaging.records import END_OF_TIME
from tamis.omission.columns import Int64s
from tamis.operators.cuts.cut import ChainCommit, Cut
from tamis.operators.time_join.filter_dispatch import Bools, Dispatch
from tamis.operators.windows.boundaries import last_boundary, pane_starts
from tamis.operators.windows.cut_policy import full_cut_due, parts_of
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_document_sizes import document_bytes
from tamis.operators.windows.pane_rows import PaneRows
from tamis.plan.model import PaneGrid, PartialAggregation, TopicPlan
from tamis.plan.nodes import Grouping

START_OF_TIME = -(2**62)


class Readings(Protocol):
    """Decoded readings of one shard in the order of their offsets, which may have gaps. Times are
    microseconds.
    """

    @property
    def columns(self) -> Mapping[str, Vector]:
        """All columns of the stream, by name."""

    @property
    def times(self) -> Int64s:
        """The event times."""

    @property
    def offsets(self) -> Int64s:
        """The offsets, ascending."""

    def __len__(self) -> int: ...

    def view(self) -> Columns:
        """The columns with the empty alias."""

    def take(self, rows: np.ndarray) -> Self:
        """The readings with these numbers."""


class Drawing(NamedTuple):
    """The circumstances that decide the next cut. `next`: the offset of the next reading. `number`: that of
    the last cut on any topic. `born`: as in the edge's commits. `full`: all readings shall be sent. Times are
    microseconds, and `now` is by the clock.
    """

    number: int
    next: int
    watermark: int
    version: int
    born: int
    full: bool
    now: int


class Sending(NamedTuple):
    """A cut whose records may be sent: its rows, and the grouping that they have."""

    cut: Cut
    rows: PaneRows
    grouping: Grouping


class CutChain:
    """Readings of a shard from offset `since` on, and the cuts that send them.

    A cut is drawn for a commit (`draw`), is sent when that commit is durable (`made_durable`), and counts as
    sent when all of its records are safe. The next one is drawn only then.
    """

    def __init__(self, since: int, commit: ChainCommit | None = None) -> None:
        """`commit`: the last commit, after a restart."""
        commit = commit or ChainCommit(since, since, 0, since, START_OF_TIME)
        self.since = commit.since
        self._last = commit
        self._pending = commit.pending
        # Of the pending cut: its commit is durable; its rows were taken, and are here until its records are
        # made; so many of these aren't safe; the offset of its first reading.
        self._durable = commit.pending is not None
        self._taken = False
        self._sending: Sending | None = None
        self.unsafe = 0
        self._pending_first: int | None = None
        self._first: dict[int, int] = {}  # by open pane, the offset of its first reading
        self._opened_at = 0  # by the clock, when the first of these was read
        self._grids: tuple[PaneGrid, ...] = ()
        self._wanted: PartialAggregation | None = None
        self._open: OpenPanes | None = None
        self._form: Grouping | None = None  # of the open panes
        self._filter = Dispatch(())

    # ---- the plan

    def use(self, topic: TopicPlan, version: int) -> None:
        """Serve the queries of the topic that are in force under a plan version."""
        assert topic.partials is not None
        self.topic = topic
        self._wanted = topic.partials
        self._grids = tuple(grid for grid in topic.partials.grids if grid.serves(version))
        self._filter = Dispatch([entry.filter for entry in topic.entries], self._filter)

    # ---- readings

    def take(self, batch: Readings, now: int) -> Bools:
        """Take readings in the order of their offsets; returns those that pass the filter. Those that were
        sent before are read again for other topics only.
        """
        passing: Bools = self._filter.over(batch.columns, len(batch)).found[0]
        last = self._last
        unsent = passing & (batch.offsets >= last.done)
        if batch.offsets[0] < last.offset:
            unsent &= (batch.offsets >= last.offset) | (batch.times >= last.time)
        pending = self._pending
        if pending is not None and self._replaying and batch.offsets[-1] >= pending.offset:
            before = batch.offsets < pending.offset
            self._add(batch, np.flatnonzero(unsent & before), now)
            self.reached(pending.offset)
            unsent &= ~before
        self._add(batch, np.flatnonzero(unsent), now)
        return passing

    def _add(self, batch: Readings, rows: Int64s, now: int) -> None:
        if not len(rows) or not self._grids:
            return
        assert self._wanted is not None
        if self._open is None or (not self._first and self._form != self._wanted.grouping):
            self._form = self._wanted.grouping
            self._open = OpenPanes(self._form)
        some = batch if len(rows) == len(batch) else batch.take(rows)
        panes = pane_starts(some.times, self._grids)
        # What a cut has sent, or the pending one will send, ends at `time`: no row may lie on both sides.
        time = self._time
        panes = np.where(some.times >= time, np.maximum(panes, time), panes)
        if not self._first:
            self._opened_at = now
        distinct, first = np.unique(panes, return_index=True)
        for pane, offset in zip(distinct.tolist(), some.offsets[first].tolist(), strict=True):
            self._first.setdefault(pane, offset)
        self._open.add(panes, some.view(), len(some))

    def reached(self, offset: int) -> None:
        """All readings before `offset` were read, or the source doesn't have them any more."""
        if self._pending is not None and self._replaying and offset >= self._pending.offset:
            self._take_rows(self._pending)

    def source_begins_anew(self, first: int) -> None:
        """The offsets begin again, at `first`. What was read isn't read again."""
        self.reached(END_OF_TIME)
        self.since = first
        self._last = self._last._replace(since=first, done=first, offset=first)
        if self._pending is not None:
            self._pending = self._pending._replace(offset=first)
        self._first = dict.fromkeys(self._first, first)
        self._pending_first = None if self._pending_first is None else first

    # ---- cuts

    @property
    def _time(self) -> int:
        return self._last.time if self._pending is None else self._pending.time

    @property
    def _replaying(self) -> bool:
        """True until the readings of a cut from before the restart were read again."""
        return self._pending is not None and not self._taken

    @property
    def _sent(self) -> bool:
        """True if the records of the pending cut were made."""
        return self._taken and self._durable and self._sending is None

    def replayed(self, next_offset: int) -> bool:
        """True if all readings of the last cut were read again."""
        return not self._replaying and next_offset >= self._last.offset

    @property
    def settled(self) -> bool:
        """True if all records of the last cut are safe."""
        return self._pending is None or (self._sent and not self.unsafe)

    @property
    def overfull(self) -> bool:
        """True if open panes take up what a full cut frees, and none can be drawn before the last one is
        safe. Readings of the last cut, which come again after a restart, don't count.
        """
        if self._open is None or not self._first or self._replaying or self.settled:
            return False
        return full_cut_due(self._open, 0)

    @property
    def empty(self) -> bool:
        """True if every reading is in some cut."""
        return not self._first

    def draw(self, at: Drawing) -> bool:
        """Draw the next cut if there is reason to; returns True if there is a new one."""
        if not self.settled or not self.replayed(at.next):
            return False
        if self._pending is not None:
            cut = self._pending
            self._last = ChainCommit(self.since, self.done(at.next), cut.number, cut.offset, cut.time)
            self._pending = self._pending_first = None
            self._durable = self._taken = False
        time = self._last.time
        if at.watermark > START_OF_TIME and self._grids:
            bound = min(at.watermark, END_OF_TIME)
            time = max(time, END_OF_TIME if bound == END_OF_TIME else last_boundary(bound, self._grids))
        open_ = self._open if self._first else None
        full = at.full or (open_ is not None and full_cut_due(open_, at.now - self._opened_at))
        if time == self._last.time and not (full and self._first) and not self._late:
            return False
        self._take_rows(Cut(at.number + 1, at.next, time, full, 1, at.version, at.born), drawn=True)
        return True

    @property
    def _late(self) -> bool:
        """True if readings wait that were late when they were read."""
        return any(pane < self._last.time for pane in self._first)

    def _take_rows(self, cut: Cut, *, drawn: bool = False) -> None:
        before = None if cut.full else cut.time
        panes = [pane for pane in self._first if before is None or pane < before]
        self._pending_first = min((self._first.pop(pane) for pane in panes), default=None)
        self._taken = True
        if panes and self._open is not None and self._form is not None:
            rows = self._open.take(before)
            if drawn:  # a restart keeps the parts of the commit, whatever it finds in the source now
                cut = cut._replace(parts=parts_of(document_bytes(rows, self._form)))
            self._sending = Sending(cut, rows, self._form)
        self._pending = cut

    def made_durable(self) -> None:
        """The commit with the pending cut is durable."""
        self._durable = self._pending is not None

    def to_send(self) -> Sending | None:
        """The pending cut, once, when it may be sent; None also for a cut without rows."""
        if self._sending is None or not self._durable:
            return None
        sending, self._sending = self._sending, None
        return sending

    # ---- commits and progress

    @property
    def before(self) -> tuple[int, int]:
        """The offset and the time of the cut before the pending one."""
        return self._last.offset, self._last.time

    @property
    def progress(self) -> int:
        """The time of the last cut whose records were made."""
        return self._pending.time if self._pending is not None and self._sent else self._last.time

    def done(self, next_offset: int) -> int:
        """All readings of the chain before this offset are in Kafka. `next_offset`: of the next reading."""
        open_ = list(self._first.values())
        if self._pending_first is not None and not self.settled:
            open_.append(self._pending_first)
        return max(self._last.done, min(open_, default=next_offset))

    def commit(self, next_offset: int) -> ChainCommit:
        """The chain as a commit has it."""
        return self._last._replace(done=self.done(next_offset), pending=self._pending)

    @property
    def rows(self) -> int:
        """The number of rows of open panes."""
        return 0 if self._open is None else self._open.rows

    @property
    def bytes(self) -> int:
        """The memory of open panes."""
        return 0 if self._open is None else self._open.bytes
