"""Evaluator of aggregates of the sessions of one stream.

A session is a run of tuples of one key, each at most `gap` after the one before. It begins with its first
tuple and ends `gap` after its last tuple. With a greatest length, the session is cut at each multiple of this
length after its first tuple; each part is a session of its own, and begins and ends there.

Only tuples that aren't behind the watermark make sessions. Until the watermark has passed a tuple, it is
*pending*: it is kept under its own time, since a tuple with an earlier time may still come. When the
watermark passes it, it joins the session of its key, or begins one. A session is complete once the watermark
is later than its end. A tuple behind the watermark is counted in the open session of its key if that session
begins at or before it. Such a tuple doesn't prolong the session. So the rows depend only on event times and
on the watermark at the arrival of each tuple, and not on the order of arrival or the division into batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.operators.contract import Batch, Rows
from tamis.operators.state import pack_state, unpack_state
from tamis.operators.time_join.key_codes import DictionaryEncoder
from tamis.operators.windows.group_rows import Counted, GroupRows, Tables, places, with_computed_values
from tamis.operators.windows.row_joins import TableJoin
from tamis.operators.windows.table import Places
from tamis.plan import nodes

# Before every event time.
_NONE = -(2**63)


@dataclass(frozen=True)
class Runs:
    """Runs of tuples without gaps that the watermark has passed, one for each key, in the order of keys: the
    times of the first and of the last tuple.
    """

    keys: Places
    first: Places
    last: Places

    def at(self, keys: Places) -> tuple[Places, NDArray[np.bool_]]:
        """The rows of keys, and which keys have one."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return place, self.keys[place] == keys

    def take(self, at: NDArray[np.bool_]) -> Runs:
        """Some of the runs."""
        return Runs(self.keys[at], self.first[at], self.last[at])


def _no_runs() -> Runs:
    none = np.empty(0, np.int64)
    return Runs(none, none, none)


class SessionGroups:
    """Aggregates of sessions, with a row for each session and group once the session has ended. `late` counts
    the tuples that are in no session, because they came after the watermark had passed them and no session
    was open that began before them.
    """

    def __init__(self, node: nodes.Sessions) -> None:
        self.streams = frozenset({node.scan.stream})
        self.late = 0
        self._grouping = node.grouping
        self._alias, self._time = node.scan.alias, node.scan.time
        self._conditions = TableJoin(node.scan, (), ())
        self._of = GroupRows(node.grouping)
        self._session = session = node.session
        names = [column.name for column in self._of.by]
        self._key_places = [names.index(name) for name in session.by]
        self._mark = _NONE  # the watermark
        self._pending = self._of.empty()  # the first key is the time
        self._open = self._of.empty()  # the first key is the beginning of the session
        self._runs = _no_runs()
        self._keys = DictionaryEncoder()
        self._key_of: Places = np.empty(0, np.int64)  # the number of the key of each group

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """Count tuples behind the watermark in open sessions, and keep the others as pending; rows come only
        with the watermark.
        """
        columns = {(self._alias, name): vector for name, vector in batch.items()}
        for _, found in self._conditions.rows(columns, rows):
            times = np.asarray(found[self._alias, self._time].data, np.int64)
            self._count(
                times, self._of.counted(with_computed_values(self._grouping, found, len(times)), len(times))
            )
        return self._of.nothing

    def _count(self, times: Places, counted: Counted) -> None:
        """Count tuples that meet the conditions."""
        behind = times < self._mark
        if not behind.any():
            self._pending = self._of.added(self._pending, times, counted)
            return
        ahead, late = np.flatnonzero(~behind), np.flatnonzero(behind)
        if len(ahead):
            self._pending = self._of.added(self._pending, times[ahead], counted.take(ahead))
        starts, known = self._open_sessions(times[late], self._keys_of(counted.groups[late]))
        self.late += int(np.count_nonzero(~known))
        if known.any():
            self._open = self._of.added(self._open, starts[known], counted.take(late[known]))

    def _open_sessions(self, times: Places, keys: Places) -> tuple[Places, NDArray[np.bool_]]:
        """The beginnings of the sessions that are open at the watermark, for tuples behind it, and which
        tuples have such a session.
        """
        place, known = self._runs.at(keys)
        if not known.any():
            return times, known
        first, last = self._runs.first[place], self._runs.last[place]
        starts, ends = self._edges(first, last)
        return starts, known & (starts <= times) & (ends >= self._mark)

    def _edges(self, first: Places, last: Places) -> tuple[Places, Places]:
        """The beginning and the end of the session that a run's last tuple is in."""
        ends = last + self._session.gap
        if self._session.greatest is None:
            return first, ends
        starts = first + (last - first) // self._session.greatest * self._session.greatest
        return starts, np.minimum(ends, starts + self._session.greatest)

    def _keys_of(self, groups: Places) -> Places:
        """The numbers of the keys of groups."""
        if len(groups) and int(groups.max()) >= len(self._key_of):
            new = self._of.groups.values()[len(self._key_of) :]
            rows = [(one,) for one in new] if len(self._of.by) == 1 else new
            keys = [tuple(row[place] for place in self._key_places) for row in rows]
            self._key_of = np.concatenate((self._key_of, self._keys.encode(keys)))
        return self._key_of[groups]

    def advance(self, stream: str, watermark: int) -> Rows:
        """Move the pending tuples that the watermark has passed to their sessions; returns the rows of the
        sessions that have ended, in order of their ends and groups.
        """
        if watermark <= self._mark:
            return self._of.nothing
        self._mark = watermark
        passed = int(np.searchsorted(self._pending[0].keys[0], watermark))
        if not passed and not (self._edges(self._runs.first, self._runs.last)[1] < watermark).any():
            return self._of.nothing
        times, groups = (np.asarray(key[:passed], np.int64) for key in self._pending[0].keys[:2])
        keys = self._keys_of(groups)
        starts, sessions = self._extended(times, keys)
        self._join(times, groups, starts)
        if not (sessions.ends < watermark).any():
            return self._of.nothing
        ended, ends = self._taken(sessions, watermark)
        rows = self._of.rows(ended, np.asarray(ended[0].keys[0], np.int64), ends)
        self._forget()
        return rows

    def _extended(self, times: Places, keys: Places) -> tuple[Places, _Sessions]:
        """Extend the runs by tuples that the watermark has passed; returns the beginning of the session of
        each tuple, and all sessions that haven't ended before.
        """
        starts, ends = self._edges(self._runs.first, self._runs.last)
        known = _Sessions(self._runs.keys, starts, ends)
        if not len(times):
            self._keep(self._runs)
            return times, known
        order = np.lexsort((times, keys))
        key, time = keys[order], times[order]
        head = np.concatenate(([True], key[1:] != key[:-1]))
        place, has = self._runs.at(key)
        before = np.concatenate((time[:1], time[:-1]))
        if len(self._runs.keys):
            before = np.where(head, self._runs.last[place], before)
        new = np.where(head, ~has, False) | (time - before > self._session.gap)
        first = np.where(new, time, self._runs.first[place] if len(self._runs.keys) else time)
        at = np.maximum.accumulate(np.where(new | head, np.arange(len(time)), 0))
        first = first[at]
        tails = np.append(np.flatnonzero(head)[1:], len(head)) - 1
        begins, until = self._edges(first, time)
        closing = np.append((key[1:] != key[:-1]) | (begins[1:] != begins[:-1]), True)
        found = _Sessions(key[closing], begins[closing], until[closing])
        others = ~np.isin(self._runs.keys, key)
        merged = np.concatenate((self._runs.keys[others], key[tails]))
        by_key = np.argsort(merged)
        self._keep(
            Runs(
                merged[by_key],
                np.concatenate((self._runs.first[others], first[tails]))[by_key],
                np.concatenate((self._runs.last[others], time[tails]))[by_key],
            )
        )
        placed = np.empty(len(times), np.int64)
        placed[order] = begins
        return placed, known.replaced_by(found)

    def _keep(self, runs: Runs) -> None:
        """Keep the runs that a tuple at the watermark could still prolong."""
        self._runs = runs.take(runs.last + self._session.gap >= self._mark)

    def _join(self, times: Places, groups: Places, starts: Places) -> None:
        """Move the first tuples, which are all of these, from the pending ones to their sessions."""
        if not len(times):
            return
        place = places(times, groups)
        last = times[-1]
        for i, partial in enumerate(self._of.partials):
            table = self._pending[i]
            count = int(np.searchsorted(table.keys[0], last, side="right"))
            own = table.take(slice(0, count))
            at = place(np.asarray(own.keys[0], np.int64), np.asarray(own.keys[1], np.int64))
            self._open[i] = partial.merged([self._open[i], own.with_keys(starts[at])])
            self._pending[i] = table.take(slice(count, len(table)))

    def _taken(self, sessions: _Sessions, watermark: int) -> tuple[Tables, Places]:
        """Take the sessions that have ended out of the open ones: their tables, and the end of each row of
        the first table.
        """
        ended: Tables = []
        ends: Places = np.empty(0, np.int64)
        for i, table in enumerate(self._open):
            groups = np.asarray(table.keys[1], np.int64)
            until = sessions.ends_of(np.asarray(table.keys[0], np.int64), self._keys_of(groups))
            over = until < watermark
            ended.append(table.take(over))
            self._open[i] = table.take(~over)
            if i == 0:
                ends = until[over]
        return ended, ends

    def _forget(self) -> None:
        """Forget groups and texts that no entry uses any more, and then keys without a run."""
        self._pending, self._open = self._of.forget(self._pending, self._open)
        if len(self._of.groups) < len(self._key_of):
            self._key_of = np.empty(0, np.int64)
            renamed = self._keys.keep(self._runs.keys)[self._runs.keys]
            order = np.argsort(renamed)
            self._runs = Runs(renamed[order], self._runs.first[order], self._runs.last[order])

    def entries(self) -> int:
        """The number of pending tuples and groups of open sessions, of the values that `median` or
        `count(DISTINCT)` needs, and of runs.
        """
        return self._of.entries(self._pending) + self._of.entries(self._open) + len(self._runs.keys)

    def dump(self) -> bytes:
        """The watermark, the number of late tuples, the pending tuples, open sessions and runs, as JSON."""
        values = self._keys.values()
        runs = [
            [values[key] for key in self._runs.keys.tolist()],
            self._runs.first.tolist(),
            self._runs.last.tolist(),
        ]
        tables = [self._of.dump(self._pending), self._of.dump(self._open)]
        return pack_state(self._form(), [self._mark, self.late, *self._of.dump_values(), *tables, runs])

    def load(self, state: bytes) -> None:
        """Restore a dumped state. Raises RefusedError for the state of another query or version."""
        kept = unpack_state(state, self._form())
        self._mark, self.late, groups, texts, waiting, begun, (keys, first, last) = kept
        self._of.restore_values(groups, texts)
        self._pending, self._open = self._of.restored(waiting), self._of.restored(begun)
        self._keys = DictionaryEncoder([tuple(key) for key in keys])
        self._runs = Runs(np.arange(len(keys)), np.array(first, np.int64), np.array(last, np.int64))

    def _form(self) -> list[object]:
        session = self._session
        return ["sessions", session.gap, session.greatest, list(session.by), *self._of.form()]


@dataclass(frozen=True)
class _Sessions:
    """Sessions by key and beginning, with their ends."""

    keys: Places
    starts: Places
    ends: Places

    def replaced_by(self, others: _Sessions) -> _Sessions:
        """All sessions; of two with the same key and beginning, the other one."""
        parts = zip(
            (self.keys, self.starts, self.ends), (others.keys, others.starts, others.ends), strict=True
        )
        keys, starts, ends = (np.concatenate(pair) for pair in parts)
        order = np.lexsort((np.arange(len(keys)), keys, starts))
        keys, starts, ends = keys[order], starts[order], ends[order]
        last = np.append((keys[1:] != keys[:-1]) | (starts[1:] != starts[:-1]), True)[: len(keys)]
        return _Sessions(keys[last], starts[last], ends[last])

    def ends_of(self, starts: Places, keys: Places) -> Places:
        """The ends of sessions, which must be among these."""
        order = np.lexsort((self.keys, self.starts))
        find = places(self.starts[order], self.keys[order])
        return self.ends[order][find(starts, keys)]
