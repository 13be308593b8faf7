"""Tuples of one joined source of ASOF JOIN that may still be chosen.

The *horizon* is a time that no later tuple of the first stream asks before. Of each key, the last tuple
before the horizon is kept in a table; the tuples from the horizon on wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.kernels import njit
from tamis.operators.row_store import Store, WaitingTuples
from tamis.operators.time_join.key_codes import DictionaryEncoder

Ints = NDArray[np.int64]

Bools = NDArray[np.bool_]

_NEVER = -(1 << 63)


@njit(cache=True)
def latest(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    times: Ints, codes: Ints, asked_times: Ints, asked_codes: Ints, last: Ints
):
    """The last row of each asked code with a time up to the asked one; -1 if no row has both.

    `times` and `asked_times` ascend. `codes` are 0 or more; a negative asked code has no row. `last` has -1
    for each code, and afterwards the last row of each code.
    """
    found = np.full(len(asked_times), -1, np.int64)
    row = 0
    for at in range(len(asked_times)):
        while row < len(times) and times[row] <= asked_times[at]:
            last[codes[row]] = row
            row += 1
        if asked_codes[at] >= 0:
            found[at] = last[asked_codes[at]]
    while row < len(times):
        last[codes[row]] = row
        row += 1
    return found


class Candidates:
    """The tuples of one source. `key` has the places of its key columns among its columns."""

    def __init__(self, types: Sequence[Type], key: Sequence[int], most: int | None) -> None:
        """`most`: the greatest age of a chosen tuple in microseconds, None for any."""
        self._types, self._key, self._most = tuple(types), tuple(key), most
        self._horizon = _NEVER
        self._waiting = WaitingTuples(types)
        self._codes = DictionaryEncoder()
        self._table = Store(types)  # by code
        self._times: Ints = np.zeros(0, np.int64)  # by code; _NEVER if the table has no tuple

    def __len__(self) -> int:
        return len(self._waiting) + int(np.count_nonzero(self._times != _NEVER))

    def add(self, times: Ints, columns: Sequence[Vector]) -> int:
        """Add tuples; returns how many of them are before the horizon. These count for later rows alone."""
        known = np.ones(len(times), np.bool_)
        for place in self._key:  # a NULL is equal to nothing
            null = columns[place].null
            if null is not None:
                known &= ~null
        if not known.all():
            times, columns = times[known], [one.take(known) for one in columns]
        self._waiting.add(times, columns)
        return int(np.count_nonzero(times < self._horizon))

    def choose(self, horizon: int, asked: Ints, key: Sequence[Vector]) -> tuple[list[Vector], Ints]:
        """Advance to a horizon, and choose the last tuple at or before each asked time.

        `asked`: ascending times in [horizon before, horizon); `key`: the columns that must be equal to those
        of the tuples. Returns the columns of the chosen tuples and their times; where there is none, NULLs
        and -2^63.
        """
        times, columns = self._waiting.remove_before(horizon)
        codes = self._encoded(columns, len(times))
        self._grow()
        times, codes, columns = self._with_table_rows(times, codes, columns)
        order = _order(times, codes, columns)
        times, codes, columns = times[order], codes[order], [one.take(order) for one in columns]
        wanted = self._codes.find(_values(key, len(asked)))
        for one in key:
            if one.null is not None:
                wanted[one.null] = -1
        last = np.full(len(self._times), -1, np.int64)
        row = latest(times, codes, asked, wanted, last)
        chosen = self._gathered(row, wanted, times, columns)
        self._horizon = horizon
        changed = np.flatnonzero(last >= 0)
        self._times[changed] = times[last[changed]]
        self._table.put(changed, [one.take(last[changed]) for one in columns])
        return chosen

    def forget_before(self, time: int) -> None:
        """Forget tuples that are too old for all rows from a time on."""
        if self._most is None:
            return
        self._times[self._times < time - self._most] = _NEVER
        used = np.flatnonzero(self._times != _NEVER)
        if self._codes.sparse(len(used)):
            rows = [self._table.take(place, used) for place in range(len(self._types))]
            self._codes.keep(used)
            self._table = Store(self._types)
            self._table.append(rows, len(used))
            self._times = self._times[used]

    def dumped(self) -> list[Any]:
        """All tuples as JSON."""
        used = np.flatnonzero(self._times != _NEVER)
        table = [self._table.take(place, used).to_list() for place in range(len(self._types))]
        return [self._horizon, self._waiting.dumped(), self._times[used].tolist(), table]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore the dumped tuples."""
        self._horizon, waiting, times, table = dumped
        self._waiting.restore(waiting)
        columns = [Vector.from_list(one, kind) for one, kind in zip(table, self._types, strict=True)]
        self._encoded(columns, len(times))
        self._times = np.array(times, np.int64)
        self._table.append(columns, len(times))

    def _encoded(self, columns: Sequence[Vector], rows: int) -> Ints:
        return self._codes.encode(_values([columns[place] for place in self._key], rows))

    def _grow(self) -> None:
        more = len(self._codes) - len(self._times)
        if more:
            self._times = np.concatenate((self._times, np.full(more, _NEVER, np.int64)))
            self._table.grow(len(self._codes))

    def _with_table_rows(
        self, times: Ints, codes: Ints, columns: Sequence[Vector]
    ) -> tuple[Ints, Ints, list[Vector]]:
        """The tuples, with those of the table that may be later than a tuple that came late."""
        late = np.unique(codes[times < self._horizon])
        late = late[self._times[late] != _NEVER]
        if not len(late):
            return times, codes, list(columns)
        kept = [self._table.take(place, late) for place in range(len(self._types))]
        return (
            np.concatenate((times, self._times[late])),
            np.concatenate((codes, late)),
            [Vector.concat(pair) for pair in zip(columns, kept, strict=True)],
        )

    def _gathered(
        self, row: Ints, wanted: Ints, times: Ints, columns: Sequence[Vector]
    ) -> tuple[list[Vector], Ints]:
        """The chosen tuples: `row` among the given ones, or else that of the table with the wanted code."""
        other = np.flatnonzero((row < 0) & (wanted >= 0))
        other = other[self._times[wanted[other]] != _NEVER]
        place = np.where(row >= 0, row, len(times) + len(other))
        place[other] = len(times) + np.arange(len(other))
        all_times = np.concatenate((times, self._times[wanted[other]], [_NEVER]))
        chosen = [
            Vector.concat([one, self._table.take(at, wanted[other]), Vector.nulls(kind, 1)]).take(place)
            for at, (one, kind) in enumerate(zip(columns, self._types, strict=True))
        ]
        return chosen, all_times[place]


def _values(key: Sequence[Vector], rows: int) -> list[Any]:
    """The values of a key as hashable objects, equal where SQL has equal values."""
    lists = [one.data.tolist() for one in key]
    if not lists:
        return [()] * rows
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _order(times: Ints, codes: Ints, columns: Sequence[Vector]) -> Ints:
    """The order by time and code. Tuples that agree in both are ordered by their columns, NULL first."""
    order = np.lexsort((codes, times))
    same = (np.diff(times[order]) == 0) & (np.diff(codes[order]) == 0)
    if not same.any():
        return order
    tied = np.zeros(len(order), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    at = order[tied]
    keys: list[NDArray[Any]] = [times[at], codes[at]]
    for one in columns:
        keys += _sortable(one.take(at))
    order[tied] = at[np.lexsort(keys[::-1])]
    return order


def _sortable(vector: Vector) -> list[NDArray[Any]]:
    """Arrays whose lexicographic order is that of the values, NULL first; 0.0 is after -0.0."""
    data = vector.data
    null = np.zeros(len(data), np.bool_) if vector.null is None else vector.null
    if data.dtype == np.object_:
        return [~null, np.unique(np.where(null, "", data), return_inverse=True)[1]]
    given = np.where(null, data.dtype.type(0), data)
    return [~null, given, ~np.signbit(given)] if data.dtype.kind == "f" else [~null, given]
