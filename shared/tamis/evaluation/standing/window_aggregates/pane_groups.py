"""Groups of panes with their partial aggregates, and the rows of windows that are computed from them.

The rows that are counted may be tuples, or combinations of tuples of several sources. Their columns are named
by source and column.
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
from tamis.evaluation.standing.contract import Rows
from tamis.evaluation.standing.state import number_from_text, number_to_text
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
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectorized.evaluate import evaluate, holds
from tamis.expressions.vectors import Columns, Vector
from tamis.query.model import WINDOW_COLUMNS, WINDOW_START, Aggregate, Query

_NONE: Places = np.empty(0, np.int64)


class PaneGroups:
    """The groups of the panes of a query, which has a `Grouping`.

    `panes` numbers the panes and windows.
    """

    def __init__(self, query: Query, panes: Panes) -> None:
        assert query.grouping is not None
        self._query, self._grouping, self._panes = query, query.grouping, panes
        self._by = tuple(column for column in self._grouping.by if column.name not in WINDOW_COLUMNS)
        self._partials = partials(self._grouping.aggregates)
        self._tables = [partial.empty() for partial in self._partials]
        self._groups = DictionaryEncoder()
        self._texts = [DictionaryEncoder() for _ in self._partials]

    @property
    def first(self) -> int | None:
        """The first pane that has a group."""
        panes = self._tables[0].keys[0]
        return int(panes[0]) if len(panes) else None

    def count(self, pane: Places, taken: Columns) -> None:
        """Count rows in their panes."""
        by = [taken[column.alias, column.name] for column in self._by]
        batch = SortedBatch.of(pane, self._encoded(by, len(pane)))
        for i, partial in enumerate(self._partials):
            new = partial.of(batch, taken, self._texts[i])
            if len(new):
                self._tables[i] = _added(self._tables[i], new, partial)

    def _encoded(self, by: list[Vector], rows: int) -> Places:
        if not by:
            return np.full(rows, self._groups.encode([()])[0], np.int64)
        lists = [_plain(vector) for vector in by]
        return self._groups.encode(lists[0] if len(lists) == 1 else list(zip(*lists, strict=True)))

    def close(self, first: int, last: int) -> Rows:
        """The rows of the windows from `first` to `last`, in order of windows and groups. The panes that no
        later window has are removed.
        """
        parts = []
        for closed, kept in closed_windows(self._partials, self._tables, self._panes, first, last):
            parts.append(self._rows(closed))
            self._tables = kept
        self._tables = open_panes(self._partials, self._tables, self._panes, last)
        self._forget()
        return Rows.concat([self.nothing, *parts])

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
    def nothing(self) -> Rows:
        """No rows."""
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
        """Groups of panes, and each value that `median` or `count(DISTINCT)` needs."""
        return sum(
            len(t) for p, t in zip(self._partials, self._tables, strict=True) if p.column is None or p.each
        )

    def dumped(self) -> list[Any]:
        """The state as JSON."""
        tables = [_dumped(*one) for one in zip(self._partials, self._tables, strict=True)]
        texts = [one.values() for one in self._texts]
        return [self._groups.values(), texts, tables]

    def restore(self, dumped: list[Any]) -> None:
        """Continue from a state of the same form."""
        groups, texts, tables = dumped
        self._groups = DictionaryEncoder([tuple(one) if isinstance(one, list) else one for one in groups])
        self._texts = [DictionaryEncoder(one) for one in texts]
        self._tables = [_restored(*one) for one in zip(self._partials, tables, strict=True)]

    def form(self) -> list[object]:
        """The form of the state as JSON. Names of sources are part of it only if there are several."""
        several = len(self._query.sources) > 1

        def named(column: Column) -> list[str]:
            return [*([column.alias] if several else []), column.name, str(column.type)]

        kept = [
            [
                p.column and named(p.column),
                p.measures,
                p.each,
                *([*named(p.order), p.greatest] if p.order is not None else []),
            ]
            for p in self._partials
        ]
        window = self._panes.window
        more = [window.offset, window.cumulative]
        by = [named(one) for one in self._by]
        return ["windows", window.slide, window.size, by, kept, *(more if any(more) else [])]


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
