"""Evaluator of aggregates of the windows of one stream.

A window consists of panes, each as long as the slide (`panes`). A tuple is counted in its pane. When the
watermark has passed a window's end, the window's row is computed from its panes. A pane is removed together
with the last window that contains it. So a late tuple counts in those windows of its pane that haven't ended.
Cumulative windows with one start have the panes in common that end with one of them or before: these become
one pane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.dictionary_encoding import DictionaryEncoder
from tamis.evaluation.standing.aggregates.measures import EXACT_SUMS
from tamis.evaluation.standing.contract import Batch, Rows
from tamis.evaluation.standing.state import (
    number_from_text,
    number_to_text,
    pack_state,
    unpack_state,
)
from tamis.evaluation.standing.window_aggregates.closing import closed_windows, open_panes
from tamis.evaluation.standing.window_aggregates.panes import Panes
from tamis.evaluation.standing.window_aggregates.partials import (
    Partial,
    SortedBatch,
    partial_of,
    partials,
    value,
)
from tamis.evaluation.standing.window_aggregates.table import PartialTable, Places, concatenated
from tamis.expressions.nodes import Type
from tamis.expressions.vectorized.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.query.computed_columns import with_computed, with_values
from tamis.query.model import WINDOW_COLUMNS, WINDOW_START, Aggregate, Catalog, Query

_NONE: Places = np.empty(0, np.int64)


class WindowedGroups:
    """See `StandingEvaluator`. `late` counts the tuples that arrived after one of their windows had ended,
    and so are missing in its row.
    """

    def __init__(self, query: Query, catalog: Catalog) -> None:
        catalog = with_computed(catalog, query)
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
        self._panes = Panes(window)
        self._by = tuple(column for column in grouping.by if column.name not in WINDOW_COLUMNS)
        self._computed = [column for _, column in grouping.computed]
        self._partials = partials(grouping.aggregates)
        self._tables = [partial.empty() for partial in self._partials]
        self._groups = DictionaryEncoder()
        self._texts = [DictionaryEncoder() for _ in self._partials]
        self._ended: int | None = None  # the last window that has

    def take(self, stream: str, batch: Batch, rows: int) -> Rows:
        """See `StandingEvaluator`. Only the watermark completes rows."""
        columns = {(self._alias, name): vector for name, vector in batch.items()}
        keep = np.ones(rows, np.bool_)
        for conjunct in self._query.conjuncts:
            keep &= holds(conjunct.expr, columns, rows)
        pane = self._panes.of(np.asarray(batch[self._time].data, np.int64))
        if self._ended is not None:
            self.late += int(np.count_nonzero(keep & (pane - self._panes.width < self._ended)))
            keep &= self._panes.last_window(pane) > self._ended
            pane = self._panes.joined(pane, self._ended)
        at = np.flatnonzero(keep)
        if len(at):
            taken: Batch = {name: vector.take(at) for name, vector in batch.items()}
            taken = with_values(taken, len(at), self._computed)
            self._count(pane[at], taken)
        return self._nothing

    def _count(self, pane: Places, taken: Batch) -> None:
        batch = SortedBatch.of(pane, self._encoded([taken[column.name] for column in self._by], len(pane)))
        for i, partial in enumerate(self._partials):
            new = partial.of(batch, taken, self._texts[i])
            if len(new):
                self._tables[i] = _added(self._tables[i], new, partial)

    def _encoded(self, by: list[Vector], rows: int) -> Places:
        if not by:
            return np.full(rows, self._groups.encode([()])[0], np.int64)
        lists = [_plain(vector) for vector in by]
        return self._groups.encode(lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)))

    def advance(self, stream: str, watermark: int) -> Rows:
        """See `StandingEvaluator`: the rows of the windows that have ended, in order of their ends and
        groups.
        """
        last, width = self._panes.ended(watermark), self._panes.width
        if self._ended is not None and last <= self._ended:
            return self._nothing
        panes = self._tables[0].keys[0]
        first = int(panes[0]) - width + 1 if len(panes) else last + 1
        if self._ended is not None:
            first = max(first, self._ended + 1)
        parts = []
        for closed, kept in closed_windows(self._partials, self._tables, self._panes, first, last):
            parts.append(self._rows(closed))
            self._tables = kept
        self._ended = last
        self._tables = open_panes(self._partials, self._tables, self._panes, last)
        self._forget()
        return Rows.concat([self._nothing, *parts])

    def _rows(self, tables: list[PartialTable]) -> Rows:
        """The rows of some windows. The first table lists all windows and groups that have a row."""
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
                edges = self._panes.starts if column.name == WINDOW_START else self._panes.ends
                columns[column.alias, column.name] = Vector(edges(window))
        return columns

    def _table_of(self, aggregate: Aggregate) -> int:
        """The number of the table from which an aggregate is computed."""
        wanted = partial_of(aggregate)
        return next(i for i, one in enumerate(self._partials) if replace(one, measures=()) == wanted)

    def _ordered(self, window: Places, columns: dict[tuple[str, str], Vector]) -> Places:
        """The order by window, then by the values of the group, NULL last. It doesn't depend on the order of
        arrival.
        """
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
        return Rows(selected, np.full(count, -1, np.int64), self._panes.ends(window) - 1)

    @cached_property
    def _nothing(self) -> Rows:
        read = [*self._grouping.by]
        read += [self._grouping.value(number) for number in range(len(self._grouping.aggregates))]
        return self._selected({(c.alias, c.name): Vector.from_list([], c.type) for c in read}, _NONE)

    def _forget(self) -> None:
        """Forget groups and texts that no entry uses any more."""
        if self._groups.sparse(len(self._tables[0])):
            renamed = self._groups.keep(np.asarray(self._tables[0].keys[1], np.int64))
            self._tables = [
                one.with_keys(one.keys[0], renamed[np.asarray(one.keys[1], np.int64)]) for one in self._tables
            ]
        for i, (texts, table) in enumerate(zip(self._texts, self._tables, strict=True)):
            if texts.sparse(len(table)):
                renamed = texts.keep(np.asarray(table.keys[2], np.int64))
                self._tables[i] = PartialTable(
                    (*table.keys[:2], renamed[np.asarray(table.keys[2], np.int64)]), table.measures
                )

    def entries(self) -> int:
        """See `StandingEvaluator`: groups of panes, and each value that `median` or `count(DISTINCT)`
        needs.
        """
        return sum(
            len(t) for p, t in zip(self._partials, self._tables, strict=True) if p.column is None or p.each
        )

    def dump(self) -> bytes:
        """See `StandingEvaluator`."""
        tables = [_dumped(*one) for one in zip(self._partials, self._tables, strict=True)]
        texts = [one.values() for one in self._texts]
        kept = [self._ended, self.late, self._groups.values(), texts, tables]
        return pack_state(self._form(), kept)

    def load(self, state: bytes) -> None:
        """See `StandingEvaluator`."""
        self._ended, self.late, groups, texts, tables = unpack_state(state, self._form())
        self._groups = DictionaryEncoder([tuple(one) if isinstance(one, list) else one for one in groups])
        self._texts = [DictionaryEncoder(one) for one in texts]
        self._tables = [_restored(*one) for one in zip(self._partials, tables, strict=True)]

    def _form(self) -> list[object]:
        by = [[column.name, str(column.type)] for column in self._by]
        kept = [
            [
                p.column and [p.column.name, str(p.column.type)],
                p.measures,
                p.each,
                *([p.order.name, str(p.order.type), p.greatest] if p.order is not None else []),
            ]
            for p in self._partials
        ]
        more = [self._window.offset, self._window.cumulative]
        return ["windows", self._window.slide, self._window.size, by, kept, *(more if any(more) else [])]


def _added(table: PartialTable, new: PartialTable, partial: Partial) -> PartialTable:
    """The table with a batch added; only the panes that the batch touches are sorted again."""
    first, last = new.keys[0][0], new.keys[0][-1]
    low, high = np.searchsorted(table.keys[0], first), np.searchsorted(table.keys[0], last, side="right")
    touched = partial.merged([table.take(slice(int(low), int(high))), new])
    return concatenated([table.take(slice(0, int(low))), touched, table.take(slice(int(high), len(table)))])


def _plain(vector: Vector) -> list[Any]:
    """Values as Python objects; -0.0 becomes 0.0."""
    return (
        vector.to_list()
        if vector.data.dtype.kind != "f"
        else Vector(vector.data + 0.0, vector.null).to_list()
    )


def _places(window: Places, group: Places) -> Callable[[Places, Places], Places]:
    """A function that finds the positions of windows and groups among the given ones, which are in order."""
    distinct = np.unique(window)
    many = int(group.max(initial=0)) + 1
    known = np.searchsorted(distinct, window) * many + group
    return lambda w, g: np.searchsorted(known, np.searchsorted(distinct, w) * many + g)


def _dumped(partial: Partial, table: PartialTable) -> list[Any]:
    """A table as JSON. Sums are text, because they may be larger than JSON's numbers."""
    if partial.order is not None:
        return [[key.tolist() for key in table.keys], [one.tolist() for one in table.measures]]
    measures = [
        [number_to_text(total) for total in one.tolist()] if name in EXACT_SUMS else one.tolist()
        for name, one in zip(partial.measures, table.measures, strict=True)
    ]
    return [[key.tolist() for key in table.keys], measures]


def _restored(partial: Partial, dumped: list[Any]) -> PartialTable:
    keys, measures = dumped
    of_keys, of_measures = partial.dtypes()
    names = partial.measures if partial.order is None else (None, None)
    read = [
        [number_from_text(total) for total in values] if name in EXACT_SUMS else values
        for name, values in zip(names, measures, strict=True)
    ]
    return PartialTable(
        tuple(np.array(values, kind) for values, kind in zip(keys, of_keys, strict=True)),
        tuple(np.array(values, kind) for values, kind in zip(read, of_measures, strict=True)),
    )
