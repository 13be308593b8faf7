"""Aggregates of the windows of one stream as a standing query.

A window is `width` panes, each as long as the slide. A tuple is counted in its pane; a window's row is made
of its panes' when the watermark has passed its end. A pane goes with the last window that has it, which is
the one that begins with it. So a late tuple counts in the windows of its pane that haven't ended.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.timeless.state import number_of, number_text, packed, unpacked
from tamis.evaluation.standing.windowed.closing import ended
from tamis.evaluation.standing.windowed.codes import Coded
from tamis.evaluation.standing.windowed.partials import Partial, Sorted, is_each, partials, value
from tamis.evaluation.standing.windowed.table import Places, Table, merged
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.query.model import WINDOW_COLUMNS, WINDOW_START, Aggregate, Catalog, Query

_NONE: Places = np.empty(0, np.int64)


class WindowedGroups:
    """See `Standing`. `late` counts the tuples that came when a window of theirs had ended, and so miss in
    its row.
    """

    def __init__(self, query: Query, catalog: Catalog) -> None:
        grouping, window = query.grouping, query.window
        assert grouping is not None
        assert window is not None
        (source,) = query.sources
        stream = catalog.streams[source.stream]
        assert stream.time is not None
        self.streams = frozenset({stream.name})
        self.late = 0
        self._query, self._grouping, self._window = query, grouping, window
        self._alias, self._time = source.alias, stream.time
        self._width = window.size // window.slide
        self._by = tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)
        self._partials = partials(grouping.aggregates)
        self._tables = [partial.empty() for partial in self._partials]
        self._groups = Coded()
        self._texts = [Coded() for _ in self._partials]
        self._ended: int | None = None  # the last window that has

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `Standing`: rows come with the watermark only."""
        columns = {(self._alias, name): vector for name, vector in batch.items()}
        keep = np.ones(rows, np.bool_)
        for conjunct in self._query.conjuncts:
            keep &= holds(conjunct.expr, columns, rows)
        pane = batch[self._time].data // self._window.slide
        if self._ended is not None:
            self.late += int(np.count_nonzero(keep & (pane - self._width < self._ended)))
            keep &= pane > self._ended
        at = np.flatnonzero(keep)
        if len(at):
            taken = {name: vector.take(at) for name, vector in batch.items()}
            self._count(np.asarray(pane[at], np.int64), taken)
        return self._nothing

    def _count(self, pane: Places, taken: Batch) -> None:
        batch = Sorted.of(pane, self._encoded([taken[column.name] for column in self._by], len(pane)))
        for i, partial in enumerate(self._partials):
            vector = None if partial.column is None else taken[partial.column.name]
            new = partial.of(batch, vector, self._texts[i])
            if len(new):
                self._tables[i] = _added(self._tables[i], new, partial)

    def _encoded(self, by: list[Vector], rows: int) -> Places:
        if not by:
            return np.full(rows, self._groups.encode([()])[0], np.int64)
        lists = [_plain(vector) for vector in by]
        return self._groups.encode(lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)))

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `Standing`: the rows of the windows that have ended, in order of their ends and groups."""
        last = watermark // self._window.slide - self._width
        if self._ended is not None and last <= self._ended:
            return self._nothing
        panes = self._tables[0].keys[0]
        first = int(panes[0]) - self._width + 1 if len(panes) else last + 1
        if self._ended is not None:
            first = max(first, self._ended + 1)
        parts = [self._rows(one) for one in ended(self._partials, self._tables, first, last, self._width)]
        self._ended = last
        self._tables = [one.take(one.keys[0] > last) for one in self._tables]
        self._forget()
        return Rows.concat([self._nothing, *parts])

    def _rows(self, tables: list[Table]) -> Rows:
        """The rows of some windows; the first table has all that have any."""
        window, group = (np.asarray(key, np.int64) for key in tables[0].keys[:2])
        count = len(window)
        columns = self._shown(window, group)
        place = _places(window, group)
        for number, aggregate in enumerate(self._grouping.aggregates):
            i = self._table_of(aggregate)
            own = tables[i]
            at = place(np.asarray(own.keys[0], np.int64), np.asarray(own.keys[1], np.int64))
            columns["", str(number)] = value(aggregate, self._partials[i], own, count, at)
        order = self._ordered(window, columns)
        if self._grouping.having is not None:
            order = order[holds(self._grouping.having, columns, count)[order]]
        found = {key: vector.take(order) for key, vector in columns.items()}
        return self._selected(found, window[order])

    def _shown(self, window: Places, group: Places) -> dict[tuple[str, str], Vector]:
        """The columns of GROUP BY."""
        values = self._groups.values()
        used, which = np.unique(group, return_inverse=True)
        keys = [values[code] for code in used.tolist()]
        columns = {}
        for i, column in enumerate(self._by):
            given = keys if len(self._by) == 1 else [key[i] for key in keys]
            columns[column.alias, column.name] = Vector.from_list(given, column.type).take(which)
        for column in self._grouping.by:
            if column.name in WINDOW_COLUMNS:
                after = 0 if column.name == WINDOW_START else self._window.size
                columns[column.alias, column.name] = Vector(window * self._window.slide + after)
        return columns

    def _table_of(self, aggregate: Aggregate) -> int:
        """Which partial gives an aggregate."""
        each = is_each(aggregate)
        return next(
            i for i, one in enumerate(self._partials) if (one.column, one.each) == (aggregate.column, each)
        )

    def _ordered(self, window: Places, columns: dict[tuple[str, str], Vector]) -> Places:
        """By window, then by the values of the group, NULL last: the same however tuples came."""
        keys: list[NDArray[Any]] = []
        for column in self._by:
            vector = columns[column.alias, column.name]
            null = np.zeros(len(vector), np.bool_) if vector.null is None else vector.null
            data = np.where(null, "", vector.data) if column.type is Type.VARCHAR else vector.data
            keys += [null, np.unique(np.where(null, data[:1], data), return_inverse=True)[1]]
        return np.lexsort((*reversed(keys), window))

    def _selected(self, columns: dict[tuple[str, str], Vector], window: Places) -> Rows:
        """The rows of windows. A window's time is its last moment, as in Flink."""
        count = len(window)
        selected = {one.name: evaluate(one.expr, columns, count) for one in self._query.select}
        times = window * self._window.slide + (self._window.size - 1)
        return Rows(selected, np.full(count, -1, np.int64), times)

    @cached_property
    def _nothing(self) -> Rows:
        read = [*self._grouping.by]
        read += [self._grouping.value(number) for number in range(len(self._grouping.aggregates))]
        return self._selected({(c.alias, c.name): Vector.from_list([], c.type) for c in read}, _NONE)

    def _forget(self) -> None:
        """Groups and texts that no entry has any longer."""
        if self._groups.crowded(len(self._tables[0])):
            renamed = self._groups.keep(np.asarray(self._tables[0].keys[1], np.int64))
            self._tables = [
                one.with_keys(one.keys[0], renamed[np.asarray(one.keys[1], np.int64)]) for one in self._tables
            ]
        for i, (texts, table) in enumerate(zip(self._texts, self._tables, strict=True)):
            if texts.crowded(len(table)):
                renamed = texts.keep(np.asarray(table.keys[2], np.int64))
                self._tables[i] = Table(
                    (*table.keys[:2], renamed[np.asarray(table.keys[2], np.int64)]), table.measures
                )

    def entries(self) -> int:
        """See `Standing`: groups of panes, and each value that `median` or `count(DISTINCT)` needs."""
        return sum(
            len(t) for p, t in zip(self._partials, self._tables, strict=True) if p.column is None or p.each
        )

    def dump(self) -> bytes:
        """See `Standing`."""
        tables = [_dumped(*one) for one in zip(self._partials, self._tables, strict=True)]
        texts = [one.values() for one in self._texts]
        kept = [self._ended, self.late, self._groups.values(), texts, tables]
        return packed(self._form(), kept)

    def load(self, state: bytes) -> None:
        """See `Standing`."""
        self._ended, self.late, groups, texts, tables = unpacked(state, self._form())
        self._groups = Coded([tuple(one) if isinstance(one, list) else one for one in groups])
        self._texts = [Coded(one) for one in texts]
        self._tables = [_restored(*one) for one in zip(self._partials, tables, strict=True)]

    def _form(self) -> list[object]:
        by = [[column.name, str(column.type)] for column in self._by]
        kept = [
            [p.column and [p.column.name, str(p.column.type)], p.measures, p.each] for p in self._partials
        ]
        return ["windows", self._window.slide, self._window.size, by, kept]


def _added(table: Table, new: Table, partial: Partial) -> Table:
    """A table with a batch's; only the panes that it touches are sorted anew."""
    first, last = new.keys[0][0], new.keys[0][-1]
    low, high = np.searchsorted(table.keys[0], first), np.searchsorted(table.keys[0], last, side="right")
    touched = merged([table.take(slice(int(low), int(high))), new], partial.ways)
    parts = [table.take(slice(0, int(low))), touched, table.take(slice(int(high), len(table)))]
    return Table(
        tuple(np.concatenate([part.keys[i] for part in parts]) for i in range(len(table.keys))),
        tuple(np.concatenate([part.measures[i] for part in parts]) for i in range(len(table.measures))),
    )


def _plain(vector: Vector) -> list[Any]:
    """Values as Python has them; -0.0 is 0.0."""
    return (
        vector.to_list()
        if vector.data.dtype.kind != "f"
        else Vector(vector.data + 0.0, vector.null).to_list()
    )


def _places(window: Places, group: Places) -> Callable[[Places, Places], Places]:
    """Where windows and groups stand among those given, which are in order."""
    distinct = np.unique(window)
    many = int(group.max(initial=0)) + 1
    known = np.searchsorted(distinct, window) * many + group
    return lambda w, g: np.searchsorted(known, np.searchsorted(distinct, w) * many + g)


def _dumped(partial: Partial, table: Table) -> list[Any]:
    """A table as JSON. Sums are of any size, and JSON's numbers aren't."""
    measures = [
        [number_text(total) for total in one.tolist()] if name == "total" else one.tolist()
        for name, one in zip(partial.measures, table.measures, strict=True)
    ]
    return [[key.tolist() for key in table.keys], measures]


def _restored(partial: Partial, dumped: list[Any]) -> Table:
    keys, measures = dumped
    of_keys, of_measures = partial.dtypes()
    read = [
        [number_of(total) for total in values] if name == "total" else values
        for name, values in zip(partial.measures, measures, strict=True)
    ]
    return Table(
        tuple(np.array(values, kind) for values, kind in zip(keys, of_keys, strict=True)),
        tuple(np.array(values, kind) for values, kind in zip(read, of_measures, strict=True)),
    )
